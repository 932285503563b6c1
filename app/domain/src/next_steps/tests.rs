//! Next steps per state; none claims what no lock service can know.

use super::*;
use crate::backend::BackendFailure;
use crate::backend::BackendKind;
use crate::expiry_bar::lock_for_tests;
use crate::lock_detail::Fresh;
use crate::names::OwnerId;
use crate::observation::{Session, Waiter};
use crate::state::StateReason;

fn detail(states: &[LockState]) -> LockDetail {
    let mut lock = lock_for_tests(Reported::Value(4_100));
    lock.state = states[0];
    lock.reasons = states
        .iter()
        .map(|state| StateReason {
            state: *state,
            why: String::new(),
        })
        .collect();
    lock.owner_id = Reported::Value(OwnerId::new("worker-7"));
    let fresh = Fresh {
        waiters: Vec::new(),
        owners: Vec::new(),
        blockers: Vec::new(),
        quorum: None,
        session: None,
        raw: Vec::new(),
        related_locks: Vec::new(),
        read_at: lock.observed_at,
    };
    let backend_status = BackendStatus::Live;
    LockDetail {
        lock,
        backend_status,
        backend_fault: None,
        no_unlock: None,
        fresh: Reported::Value(fresh),
        seen: Vec::new(),
        past: None,
        charts: None,
    }
}

fn heads(detail: &LockDetail) -> Vec<String> {
    next_steps(detail).into_iter().map(|step| step.head).collect()
}

#[test]
fn every_state_has_at_most_four_steps_and_none_claims_safety() {
    for state in LockState::ALL {
        let detail = detail(&[state, LockState::Contended]);
        let steps = next_steps(&detail);
        assert!((1..=STEPS_MAX).contains(&steps.len()), "{state:?}");
        assert!(
            steps
                .iter()
                .all(|step| !step.body.contains("safe") && step.body.ends_with('.')),
            "{state:?}"
        );
    }
    assert_eq!(heads(&detail(&[LockState::Healthy])), [NOTHING]);
}

#[test]
fn an_unreachable_backend_is_the_first_step() {
    // A holder that was silent when its backend went away: first the backend, then the holder.
    let mut blind = detail(&[LockState::Stale, LockState::NotRenewing]);
    blind.backend_status = BackendStatus::Down;
    let at = blind.lock.observed_at;
    blind.backend_fault = Some(BackendFailure {
        message: "refused".to_owned(),
        remedy: "Start it.".to_owned(),
        at,
        times: 3,
    });
    let steps = next_steps(&blind);
    assert_eq!(steps[0].head, "Restore orders-db first: it is down.");
    assert!(steps[0].body.ends_with("Start it."));
    assert_eq!(steps[1].head, "Check worker-7 now.");
    assert!(!steps[1].body.contains("ends by itself"));
}

#[test]
fn the_next_waiter_is_named_only_with_a_queue_order() {
    let mut queued = detail(&[LockState::Contended]);
    let waiter = |position, name: &str| Waiter {
        position,
        owner_id: OwnerId::new(name),
        waited_ms: Reported::unknown("not reported"),
        lease_remaining_ms: None,
    };
    if let Reported::Value(fresh) = &mut queued.fresh {
        fresh.waiters = vec![waiter(2, "worker-3"), waiter(1, "worker-9")];
    }
    assert!(queued.next_waiter().is_none());
    queued.lock.kind = BackendKind::Etcd;
    assert!(next_steps(&queued)[0].body.ends_with("worker-9 is next."));
}

#[test]
fn idle_transactions_have_a_step_and_released_locks_none() {
    let mut idle = detail(&[LockState::Healthy]);
    idle.lock.session_bound = true;
    if let Reported::Value(fresh) = &mut idle.fresh {
        fresh.session = Some(Session {
            pid: 41_877,
            application_name: "deploy-api".to_owned(),
            client_address: None,
            state: "idle in transaction".to_owned(),
            query: String::new(),
            transaction_age_ms: Some(720_000),
        });
    }
    assert_eq!(heads(&idle), ["Let its owner commit or roll back."]);
    idle.fresh = Reported::absent("the lock is free");
    assert_eq!(heads(&idle), ["Not held."]);
}
