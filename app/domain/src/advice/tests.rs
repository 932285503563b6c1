//! Advice per state, and that it never promises what no lock service can know.

use super::*;
use crate::backend::Fault;
use crate::detail::Fresh;
use crate::names::OwnerId;
use crate::observation::{Session, Waiter};
use crate::runway::lock_for_tests;
use crate::state::Reason;

fn detail(states: &[LockState]) -> LockDetail {
    let mut lock = lock_for_tests(Known::Known(4_100));
    lock.state = states[0];
    lock.reasons = states
        .iter()
        .map(|state| Reason {
            state: *state,
            why: String::new(),
        })
        .collect();
    lock.owner_id = Known::Known(OwnerId::new("worker-7"));
    let fresh = Fresh {
        waiters: Vec::new(),
        owners: Vec::new(),
        blockers: Vec::new(),
        session: None,
        raw: Vec::new(),
        shares_fate_with: Vec::new(),
        read_at: lock.observed_at,
    };
    let backend_status = BackendStatus::Live;
    LockDetail {
        lock,
        backend_status,
        backend_fault: None,
        no_unlock: None,
        fresh: Known::Known(fresh),
        seen: Vec::new(),
        is_past: false,
        charts: crate::detail::LockCharts::default(),
    }
}

fn heads(detail: &LockDetail) -> Vec<String> {
    next_steps(detail).into_iter().map(|step| step.head).collect()
}

#[test]
fn every_state_has_advice_in_at_most_four_steps_and_none_says_safe() {
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
fn a_blind_backend_comes_before_anything_about_its_locks() {
    // A row that was silent when the backend went away: first the backend, then the row.
    let mut blind = detail(&[LockState::Stale, LockState::NotRenewing]);
    blind.backend_status = BackendStatus::Down;
    let at = blind.lock.observed_at;
    blind.backend_fault = Some(Fault {
        message: "refused".to_owned(),
        mend: "Start it.".to_owned(),
        at,
        times: 3,
    });
    let steps = next_steps(&blind);
    assert_eq!(steps[0].head, "Mend orders-db first: it is down.");
    assert!(steps[0].body.ends_with("Start it."));
    assert_eq!(steps[1].head, "Look at worker-7 now.");
    assert!(!steps[1].body.contains("ends by itself"));
}

#[test]
fn the_next_in_line_is_named_only_where_the_backend_keeps_order() {
    let mut queued = detail(&[LockState::Contended]);
    let waiter = |position, name: &str| Waiter {
        position,
        owner_id: OwnerId::new(name),
        waited_ms: Known::unknown("untold"),
        lease_remaining_ms: None,
    };
    if let Known::Known(fresh) = &mut queued.fresh {
        fresh.waiters = vec![waiter(2, "worker-3"), waiter(1, "worker-9")];
    }
    assert!(queued.next_in_line().is_none());
    queued.lock.kind = BackendKind::Etcd;
    assert!(next_steps(&queued)[0].body.ends_with("worker-9 is next."));
}

#[test]
fn an_idle_transaction_is_told_to_end_and_a_gone_lock_needs_nothing() {
    let mut idle = detail(&[LockState::Healthy]);
    idle.lock.session_bound = true;
    if let Known::Known(fresh) = &mut idle.fresh {
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
    idle.fresh = Known::absent("nobody holds it");
    assert_eq!(heads(&idle), ["Nothing is held."]);
}
