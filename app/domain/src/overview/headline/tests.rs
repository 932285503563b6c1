//! Headlines for each kind of incomplete data.

use super::*;
use crate::backend::{BackendKind, WatchState};
use crate::names::BackendName;
use crate::observation::Coverage;
use crate::reported::Reported;
use crate::state::StateCounts;

fn backend(name: &str, status: BackendStatus, age_ms: Option<i64>, locks: u64) -> BackendView {
    BackendView {
        name: BackendName::parse(name).unwrap(),
        kind: BackendKind::Redis,
        address: "127.0.0.1:6379".to_owned(),
        status,
        observed_at: None,
        age_ms,
        poll_interval_ms: 2_000,
        coverage: Coverage::Complete,
        fault: None,
        locks,
        waiters: Reported::unknown("not reported"),
        needing_attention: 0,
        clock_offset_ms: Reported::unknown("not reported"),
        clock_error_ms: 0,
        answers_ms: Vec::new(),
        version: Reported::unknown("not reported"),
        watch: WatchState::Off {
            why: "not reported".to_owned(),
        },
        passes: 0,
        relist_differences: 0,
        sources: Vec::new(),
        capabilities: Vec::new(),
        rights: Vec::new(),
        past_faults: Vec::new(),
        clusters: Vec::new(),
        is_limited: false,
    }
}

fn texts(backends: Vec<BackendView>, attention_total: u64, elapsed_ms: i64) -> (String, String) {
    let held_total = backends.iter().map(|backend| backend.locks).sum();
    let states = StateCounts::default();
    let overview = Overview {
        backends,
        attention: Vec::new(),
        attention_total,
        states,
        held_total,
        waiters_total: 0,
        deadlocks: Vec::new(),
        deadlocks_total: 0,
        revision: 1,
        charts: None,
    };
    let Finding { title, detail } = finding(&overview, elapsed_ms);
    (title, detail)
}

#[test]
fn health_is_claimed_only_with_complete_coverage() {
    // The healthy headline, then the same with one backend down.
    let live = || {
        vec![
            backend("a", BackendStatus::Live, Some(400), 1_000),
            backend("b", BackendStatus::Live, Some(1_200), 46),
        ]
    };
    assert_eq!(
        texts(live(), 0, 0),
        (
            "Nothing needs attention".into(),
            "1,046 locks on 2 backends, all read within 2 s.".into()
        )
    );
    let mut with_gone = live();
    with_gone.push(backend("c", BackendStatus::Down, None, 0));
    assert_eq!(
        texts(with_gone, 0, 0),
        (
            "Nothing visible needs attention".into(),
            "1,046 locks on 3 backends. c was never read: its locks are unknown.".into()
        )
    );
}

#[test]
fn coverage_gaps_are_named_with_their_age() {
    let backends = vec![
        backend("orders-db", BackendStatus::Live, Some(400), 11_643),
        backend("etcd-coord", BackendStatus::Stale, Some(14_000), 1_204),
        backend("new", BackendStatus::Starting, None, 0),
    ];
    let (title, detail) = texts(backends, 11, 1_000);
    assert_eq!(title, "11 locks need attention");
    assert_eq!(
        detail,
        "of 12,847 held on 3 backends. The 1,204 on etcd-coord, last seen 15 s ago, have no known state until it answers. \
         new is being read for the first time."
    );
}

#[test]
fn empty_starting_and_dead_installations_have_their_own_titles() {
    let one = |status| vec![backend("a", status, None, 0)];
    assert_eq!(texts(Vec::new(), 0, 0).0, "No backend is configured");
    assert_eq!(
        texts(one(BackendStatus::Starting), 0, 0).0,
        "Reading the backends for the first time"
    );
    assert_eq!(
        texts(one(BackendStatus::Down), 0, 0),
        (
            "No backend answers".into(),
            "a was never read: its locks are unknown.".into()
        )
    );
    let many = ["a", "b", "c", "d"].map(|name| backend(name, BackendStatus::Starting, None, 0));
    assert_eq!(
        texts(many.into(), 0, 0).1,
        "a, b and 2 more are being read for the first time."
    );
    assert_eq!(
        backends_title(&one(BackendStatus::Down)),
        "The backend does not answer"
    );
    assert_eq!(backends_title(&one(BackendStatus::Live)), "The backend answers");
}
