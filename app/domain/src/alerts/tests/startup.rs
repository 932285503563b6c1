//! A backend that is down when the process starts, and a process that restarts during an
//! outage.

use super::state_machine::rule;
use crate::alerts::evaluate::{Active, Subject, round};
use crate::alerts::rule::Rule;
use crate::alerts::state_machine::AlertPhase;
use crate::alerts::{ConditionResult, evaluate_backends};
use crate::backend::{BackendKind, BackendStatus, BackendView, WatchState};
use crate::names::BackendName;
use crate::observation::Coverage;
use crate::reported::Reported;

/// Never observed; `failed` scans have failed.
fn never_seen(failed: usize) -> BackendView {
    let status = if failed == 0 {
        BackendStatus::Starting
    } else {
        BackendStatus::Down
    };
    BackendView {
        name: BackendName::parse("orders").unwrap(),
        kind: BackendKind::Postgres,
        address: String::new(),
        status,
        observed_at: None,
        age_ms: None,
        poll_interval_ms: 2_000,
        coverage: Coverage::Complete,
        fault: None,
        locks: 0,
        waiters: Reported::unknown("not reported"),
        needing_attention: 0,
        clock_offset_ms: Reported::unknown("not reported"),
        clock_error_ms: 0,
        answers_ms: vec![None; failed],
        version: Reported::unknown("not reported"),
        watch: WatchState::Off {
            why: "not reported".to_owned(),
        },
        passes: failed as u64,
        relist_differences: 0,
        sources: Vec::new(),
        capabilities: Vec::new(),
        rights: Vec::new(),
        past_faults: Vec::new(),
        clusters: Vec::new(),
        is_limited: false,
    }
}

fn seen_at(age_ms: i64) -> BackendView {
    BackendView {
        status: if age_ms > 4_000 {
            BackendStatus::Stale
        } else {
            BackendStatus::Live
        },
        age_ms: Some(age_ms),
        answers_ms: vec![Some(3)],
        ..never_seen(0)
    }
}

/// One round a second from `from`, each with its view of the backend.
fn play(rule: &Rule, mut active: Vec<Active>, from: i64, views: &[BackendView]) -> (Vec<Active>, usize) {
    let mut over = 0;
    for (second, view) in (0..).zip(views) {
        let judged = evaluate_backends(0, rule, std::slice::from_ref(view));
        let is_unknown = judged
            .iter()
            .any(|(_, sign, _)| *sign == ConditionResult::Unknown);
        let found = judged.into_iter().filter_map(|(.., found)| found).collect();
        let rules = std::slice::from_ref(rule);
        let outcome = round(rules, active, found, &|_, _| is_unknown, from + second * 1_000);
        over += outcome.over.len();
        active = outcome.active;
    }
    (active, over)
}

fn fired_at(active: &[Active]) -> Option<i64> {
    active.iter().find_map(|alert| match alert.phase {
        AlertPhase::Firing { fired_at, .. } => Some(fired_at),
        AlertPhase::Pending { .. } => None,
    })
}

/// A scan every two seconds, all failing.
fn outage(seconds: usize) -> Vec<BackendView> {
    (0..seconds)
        .map(|second| never_seen(second.div_ceil(2)))
        .collect()
}

#[test]
fn outage_at_startup_waits_for_the_rule_like_any_other() {
    // Fails if the first failed scan raises an alert: a backend that was observed before has
    // two polls to come back.
    let mut rule = rule("backend_unreachable");
    assert_eq!(fired_at(&play(&rule, Vec::new(), 0, &outage(5)).0), None);
    let at_start = fired_at(&play(&rule, Vec::new(), 0, &outage(60)).0).unwrap();
    let later: Vec<BackendView> = (0..60).map(|second| seen_at(second * 1_000)).collect();
    let in_the_middle = fired_at(&play(&rule, Vec::new(), 0, &later).0).unwrap();
    assert_eq!((at_start, in_the_middle), (5_000, 5_000));
    rule.timing.for_ms = 30_000;
    assert_eq!(fired_at(&play(&rule, Vec::new(), 0, &outage(35)).0), None);
    let (active, _) = play(&rule, Vec::new(), 0, &outage(60));
    assert_eq!(fired_at(&active), Some(35_000));
    assert_eq!(
        active[0].subject,
        Subject::Backend(BackendName::parse("orders").unwrap())
    );
    // It came up in the meantime.
    let mut short = outage(20);
    short.extend((0..60).map(|_| seen_at(0)));
    assert_eq!(fired_at(&play(&rule, Vec::new(), 0, &short).0), None);
}

#[test]
fn a_restart_in_an_outage_neither_repeats_nor_resolves() {
    // Fails if the restarted process resolves the alert before its first scan, or fires it a
    // second time.
    let mut rule = rule("backend_unreachable");
    rule.timing.for_ms = 30_000;
    let (active, _) = play(&rule, Vec::new(), 0, &outage(60));
    let (after, over) = play(&rule, active.clone(), 60_000, &outage(60));
    assert_eq!((fired_at(&after), over, after.len()), (fired_at(&active), 0, 1));
    // Pending across a restart: it continues, and the time until the new process has a result
    // does not count.
    let (pending, _) = play(&rule, Vec::new(), 0, &outage(20));
    assert_eq!((fired_at(&pending), pending.len()), (None, 1));
    let (after, over) = play(&rule, pending, 20_000, &outage(60));
    assert_eq!((fired_at(&after), over), (Some(40_000), 0));
    // Up again at the restart: one resolved notification.
    let (after, over) = play(
        &rule,
        active,
        60_000,
        &[never_seen(0), never_seen(1), seen_at(0), seen_at(0)],
    );
    assert_eq!((after.len(), over), (0, 1));
}
