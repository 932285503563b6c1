//! Converts a held key and its session to the observed lock. Pure.

use domain::format;
use domain::generation::Generation;
use domain::limits::OWNER_CHARS_MAX;
use domain::names::{OwnerId, Resource, Source};
use domain::observation::{Lifetime, ObservedCondition, ObservedLock};
use domain::reported::Reported;
use domain::token::FencingToken;

use super::entry::{ConsulSession, HeldKey, SEMAPHORE_FLAGS};
use super::lock_delays::LockDelay;
use crate::owner_value::cut;

const NO_TIME_LEFT: &str =
    "Consul does not report the time left of a session, which may last up to twice its TTL";
const NO_TTL: &str = "the session has no TTL: it ends when its node or one of its checks fails";
pub(super) const HIDDEN_SESSION: &str =
    "the token may not read the session; grant session_prefix with policy read";
pub(super) const SEMAPHORE: &str = "it is a contender of a Consul semaphore, and may be waiting: the semaphore's .lock key lists the holders";
const NO_WAITERS: &str = "Consul has no record of sessions that wait for a key";
const NO_ACQUISITION: &str = "Consul records no wall time of an acquisition";
const NO_RENEWALS: &str = "Consul does not report the renewals of a session";
const FREE: &str = "no session holds the key";

pub(super) fn source() -> Source {
    Source::fixed("kv")
}

pub(super) fn resource(key: &str) -> Resource {
    Resource::from_bytes(key.as_bytes())
}

/// The session's name and node; its id where it has no name or cannot be read.
pub(super) fn owner(id: &str, session: Option<&ConsulSession>) -> OwnerId {
    let text = match session {
        None => format!("session:{id}"),
        Some(session) if session.name.is_empty() => format!("session:{id}@{}", session.node),
        Some(session) => format!("{}@{}", session.name, session.node),
    };
    OwnerId::new(cut(&text, OWNER_CHARS_MAX))
}

/// Distinguishes holdings: a session may hold a key again, which raises the lock index, unless
/// the key was deleted meanwhile, which changes the create index.
pub(super) fn generation(held: &HeldKey) -> Generation {
    Generation::new(format!(
        "session:{}@{}.{}",
        held.session, held.lock_index, held.create_index
    ))
}

/// `session`: `None` if the token may not read it. `owner`: its text, shared by its keys.
pub(super) fn lock(held: &HeldKey, session: Option<&ConsulSession>, owner: OwnerId) -> ObservedLock {
    ObservedLock {
        source: source(),
        resource: resource(&held.key),
        owner: Reported::Value(owner),
        owner_count: 1,
        sharers: Vec::new(),
        lease_id: Reported::Value(held.session.clone().into_boxed_str()),
        generation: if held.flags == SEMAPHORE_FLAGS {
            Reported::unknown(SEMAPHORE)
        } else {
            Reported::Value(generation(held))
        },
        fencing_token: Reported::Value(FencingToken::new(held.lock_index)),
        acquired_at: Reported::unknown(NO_ACQUISITION),
        renewed_at: Reported::unknown(NO_RENEWALS),
        lifetime: lifetime(session),
        waiter_count: Reported::unknown(NO_WAITERS),
        oldest_waiter_ms: None,
        line: Vec::new(),
        condition: (held.flags == SEMAPHORE_FLAGS).then(|| ObservedCondition::Unrecognised {
            why: SEMAPHORE.into(),
        }),
    }
}

fn lifetime(session: Option<&ConsulSession>) -> Lifetime {
    match session.map(ConsulSession::ttl_ms) {
        None => Lifetime::SessionTtl {
            ttl_ms: Reported::unknown(HIDDEN_SESSION),
            why: HIDDEN_SESSION.into(),
        },
        Some(None) => Lifetime::Session { why: NO_TTL.into() },
        Some(Some(ms)) => Lifetime::SessionTtl {
            ttl_ms: Reported::Value(ms),
            why: NO_TIME_LEFT.into(),
        },
    }
}

/// A key whose session was invalidated: it has no holder, and no client can acquire it yet.
pub(super) fn delayed(key: &Resource, delay: &LockDelay, remaining_ms: i64) -> ObservedLock {
    let why = format!(
        "Its session was invalidated: no session can acquire it until the lock-delay of {} has passed",
        format::period(delay.length_ms)
    );
    ObservedLock {
        source: source(),
        resource: key.clone(),
        owner: Reported::Value(delay.owner.clone()),
        owner_count: 1,
        sharers: Vec::new(),
        lease_id: Reported::absent(FREE),
        generation: Reported::absent(FREE),
        fencing_token: Reported::absent(FREE),
        acquired_at: Reported::absent(FREE),
        renewed_at: Reported::absent(FREE),
        lifetime: Lifetime::Leased {
            remaining_ms,
            ttl_ms: Reported::Value(delay.length_ms),
        },
        waiter_count: Reported::unknown(NO_WAITERS),
        oldest_waiter_ms: None,
        line: Vec::new(),
        condition: Some(ObservedCondition::Orphaned { why: why.into() }),
    }
}
