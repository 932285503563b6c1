//! Converts a lock node to the observed lock. Pure.

use std::sync::Arc;

use domain::generation::Generation;
use domain::limits::WAITERS_KEPT_MAX;
use domain::names::{OwnerId, Resource, Source};
use domain::observation::{InLine, Lifetime, ObservedCondition, ObservedLock, Sharer, WaitIdentity};
use domain::reported::Reported;
use domain::token::FencingToken;
use domain::waits::{IdentityField, WaitParty};
use sha2::{Digest, Sha256};

use super::node::{Contender, LockNode, OwnerRead, session_text};

/// Sharers whose numbers are written out; more are represented by their number and a hash.
const GENERATIONS_SHOWN: usize = 4;

const NO_TIMES: &str = "ZooKeeper does not report the timeout of a session or the time left of it";
const NO_ACQUISITION: &str =
    "ZooKeeper records when a contender joined the queue, not when it became the holder";
const NO_RENEWALS: &str = "ZooKeeper does not report the heartbeats of a session";
pub(super) const HIDDEN: &str =
    "its ACL hides its children from this account; grant it READ on this node and the nodes below it";

pub(super) fn source() -> Source {
    Source::fixed("node")
}

pub(super) fn resource(path: &str) -> Resource {
    Resource::from_bytes(path.as_bytes())
}

fn lifetime() -> Lifetime {
    Lifetime::SessionTtl {
        ttl_ms: Reported::unknown(NO_TIMES),
        why: NO_TIMES.into(),
    }
}

impl LockNode {
    pub(super) fn lock(&self) -> ObservedLock {
        let first = self.queue.first();
        let waiting = self.waiters();
        ObservedLock {
            source: source(),
            resource: resource(&self.path),
            owner: Reported::Value(self.first.owner.clone()),
            owner_count: u32::try_from(self.holder_count()).unwrap_or(u32::MAX),
            sharers: self.sharers(),
            lease_id: Reported::Value(session_text(self.first.session).into_boxed_str()),
            generation: Reported::Value(generation(self.holders())),
            fencing_token: match first.and_then(|first| u64::try_from(first.czxid).ok()) {
                Some(czxid) => Reported::Value(FencingToken::new(czxid)),
                None => Reported::unknown("ZooKeeper gave no czxid"),
            },
            acquired_at: Reported::unknown(NO_ACQUISITION),
            renewed_at: Reported::unknown(NO_RENEWALS),
            lifetime: lifetime(),
            waiter_count: Reported::Value(u32::try_from(waiting.len()).unwrap_or(u32::MAX)),
            oldest_waiter_ms: None,
            line: self.wait_queue(),
            condition: self
                .first
                .note
                .map(|why| ObservedCondition::Note { why: why.into() }),
        }
    }

    fn sharers(&self) -> Vec<Sharer> {
        let holders = self.holders();
        if holders.len() < 2 {
            return Vec::new();
        }
        let owner = |at: usize| {
            let mut owners = self.queue_owners.holders.iter();
            let (_, owner) = owners.find(|(place, _)| *place == at)?;
            Some(owner.owner.clone())
        };
        let sharer = |(at, holder): (usize, &Contender)| Sharer {
            generation: generation(std::slice::from_ref(holder)),
            owner: owner(at),
            token: u64::try_from(holder.czxid).ok().map(FencingToken::new),
        };
        holders.iter().enumerate().map(sharer).collect()
    }

    /// Generation that each waiter will have as the only holder.
    fn wait_queue(&self) -> Vec<InLine> {
        let waiters = self.waiters().iter().take(WAITERS_KEPT_MAX).enumerate();
        let holders = self.queue_owners.holders.iter();
        let holders: Vec<Arc<WaitParty>> = holders.map(|(_, owner)| party(owner)).collect();
        let more_blockers = self.holder_count().saturating_sub(holders.len());
        let identity = |at: usize| {
            let (_, owner) = self.queue_owners.waiters.iter().find(|(place, _)| *place == at)?;
            Some(Box::new(WaitIdentity {
                party: party(owner),
                wants: None,
                blocked_by: holders.clone(),
                more_blockers: u32::try_from(more_blockers).unwrap_or(u32::MAX),
            }))
        };
        let queued = |(at, waiter)| InLine {
            generation: generation(std::slice::from_ref(waiter)),
            waited_ms: None,
            identity: identity(at),
        };
        waiters.map(queued).collect()
    }
}

/// All nodes of one session belong to one client.
fn party(owner: &OwnerRead) -> Arc<WaitParty> {
    let session = session_text(owner.session);
    let by_session = format!("session:{session}");
    let data = Some(owner.owner.as_str()).filter(|data| *data != by_session);
    let fields = [
        (IdentityField::Owner, data),
        (IdentityField::Session, Some(session.as_str())),
    ];
    Arc::new(WaitParty::new(session.as_str(), owner.owner.clone(), fields))
}

/// A node whose children cannot be listed: it may be a lock, and its holder is unknown.
pub(super) fn hidden(path: &str) -> ObservedLock {
    ObservedLock {
        source: source(),
        resource: resource(path),
        owner: Reported::<OwnerId>::unknown(HIDDEN),
        owner_count: 1,
        sharers: Vec::new(),
        lease_id: Reported::unknown(HIDDEN),
        generation: Reported::unknown(HIDDEN),
        fencing_token: Reported::unknown(HIDDEN),
        acquired_at: Reported::unknown(HIDDEN),
        renewed_at: Reported::unknown(HIDDEN),
        lifetime: lifetime(),
        waiter_count: Reported::unknown(HIDDEN),
        oldest_waiter_ms: None,
        line: Vec::new(),
        condition: Some(ObservedCondition::Unrecognised { why: HIDDEN.into() }),
    }
}

/// The zxids that created the holders' nodes: a release is bound to all of them.
pub(super) fn generation(holders: &[Contender]) -> Generation {
    let numbers: Vec<String> = holders
        .iter()
        .map(|holder| format!("{:x}", holder.czxid))
        .collect();
    let (shown, rest) = numbers.split_at(numbers.len().min(GENERATIONS_SHOWN));
    let mut text = format!("czxid:0x{}", shown.join("+0x"));
    if !rest.is_empty() {
        let digest: [u8; 32] = Sha256::digest(rest.join("+").as_bytes()).into();
        let [a, b, c, d, e, f, g, h, ..] = digest;
        let hash = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
        text.push_str(&format!("+{}:{hash:016x}", rest.len()));
    }
    Generation::new(text)
}
