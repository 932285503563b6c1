//! Details of one made-up lock.

use chrono::TimeDelta;
use domain::blockers::Blocker;
use domain::lock::Lock;
use domain::lock_detail::{EventKind, Fresh, LastHolding, LockDetail, PastLock, SeenEvent};
use domain::names::OwnerId;
use domain::observation::{RawField, Session, Waiter};
use domain::reported::Reported;

use crate::canned::Moment;

/// Shown as released.
const PAST: &str = "tenant_311:ledger-post";

/// Adds a fresh reading and past events to the lock.
pub(crate) fn with_fresh_reading(detail: LockDetail, now: Moment) -> LockDetail {
    let (lock, status) = (&detail.lock, detail.backend_status);
    let is_past = lock.id.resource.text() == PAST;
    LockDetail {
        no_unlock: status
            .blinds_rows()
            .then(|| format!("{} is {}", lock.id.backend, status.as_str())),
        fresh: if is_past {
            Reported::absent("its owner released it")
        } else if lock.id.resource.text() == "tenant_204:import:0430" {
            Reported::unknown("it did not answer within 2.0 s")
        } else if status.blinds_rows() {
            Reported::unknown("the backend does not answer")
        } else {
            Reported::Value(fresh(lock, now))
        },
        past: is_past.then(|| PastLock {
            last: LastHolding::from_events(&seen_events(lock, now)),
            newest_token: None,
        }),
        seen: seen_events(lock, now),
        ..detail
    }
}

fn fresh(lock: &Lock, now: Moment) -> Fresh {
    let waiters = lock.waiter_count.known().copied().unwrap_or(0);
    Fresh {
        waiters: (1..=waiters).map(waiter).collect(),
        owners: lock.owner_id.known().cloned().into_iter().collect(),
        blockers: if lock.session_bound {
            vec![blocker(lock)]
        } else {
            Vec::new()
        },
        session: lock.session_bound.then(session),
        quorum: crate::redlock::quorum(lock),
        raw: raw(lock),
        related_locks: if lock.session_bound {
            vec!["its session also holds relation:orders:public.invoices".to_owned()]
        } else {
            Vec::new()
        },
        read_at: now.wall,
    }
}

fn waiter(position: u32) -> Waiter {
    Waiter {
        position,
        owner_id: OwnerId::new(format!("worker-{}", 8 + position)),
        waited_ms: if position == 3 {
            Reported::unknown("it queued before the console watched")
        } else {
            Reported::Value(2_291_000 / i64::from(position))
        },
        lease_remaining_ms: (position == 1).then_some(21_000),
    }
}

fn blocker(lock: &Lock) -> Blocker {
    let waits = |owner: &str, pid, ms, blocks| Blocker {
        owner_id: owner.to_owned(),
        pid: Some(pid),
        doing: "active: UPDATE invoices SET sealed = true".to_owned(),
        holds: "waits for ExclusiveLock on advisory 72707369".to_owned(),
        waited_ms: Some(ms),
        blocks,
    };
    Blocker {
        owner_id: lock.owner_id.known().map(ToString::to_string).unwrap_or_default(),
        pid: Some(41_877),
        doing: "idle in transaction".to_owned(),
        holds: "ExclusiveLock on advisory 72707369".to_owned(),
        waited_ms: None,
        blocks: vec![
            waits(
                "migrate",
                52_001,
                61_000,
                vec![waits("report-3", 52_114, 12_000, Vec::new())],
            ),
            waits("worker-14", 52_090, 4_200, Vec::new()),
        ],
    }
}

fn session() -> Session {
    Session {
        pid: 41_877,
        application_name: "deploy-api".to_owned(),
        client_address: Some("10.2.4.17".to_owned()),
        state: "idle in transaction".to_owned(),
        query: "SELECT pg_advisory_lock(72707369)".to_owned(),
        transaction_age_ms: Some(860_000),
    }
}

fn raw(lock: &Lock) -> Vec<RawField> {
    let field = |name: &str, value: String| RawField {
        name: name.to_owned(),
        value,
    };
    let mut fields = vec![field("resource", lock.id.resource.text())];
    fields.extend(
        lock.owner_id
            .known()
            .map(|owner| field("owner_id", owner.to_string())),
    );
    fields.extend(
        lock.lease_id
            .known()
            .map(|lease| field("lease_id", lease.clone())),
    );
    fields.extend(
        lock.fencing_token
            .known()
            .map(|token| field("fencing_token", token.to_string())),
    );
    fields.extend(
        lock.expires_at
            .known()
            .map(|at| field("expires_at", at.to_string())),
    );
    fields.push(field(
        "metadata",
        r#"{"host":"ip-10-2-4-17","pid":4121,"note":"<b>not markup</b>"}"#.to_owned(),
    ));
    fields
}

fn seen_events(lock: &Lock, now: Moment) -> Vec<SeenEvent> {
    let event = |kind, ago_ms: i64, owner: &str| SeenEvent {
        trace_id: None,
        not_before: None,
        waited_ms: None,
        kind,
        at: now.wall - TimeDelta::milliseconds(ago_ms),
        owner_id: Some(OwnerId::new(owner)),
        fencing_token: lock.fencing_token.known().copied(),
    };
    let owner = lock.owner_id.known().map(ToString::to_string).unwrap_or_default();
    let held = lock.held_at_least_ms;
    let is_past = lock.id.resource.text() == PAST;
    let released = is_past.then(|| event(EventKind::Released, 1_000.min(held), &owner));
    let before = vec![
        event(EventKind::Renewed, 3_000.min(held), &owner),
        event(EventKind::Reclaimed, held, &owner),
        event(EventKind::Expired, held + 1_000, "worker-3"),
        event(EventKind::Acquired, held + 900_000, "worker-3"),
    ];
    released.into_iter().chain(before).collect()
}
