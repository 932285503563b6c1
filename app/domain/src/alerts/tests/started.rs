//! A backend that is down when the process starts, and a process that starts again while it is.

use super::played::rule;
use crate::alerts::machine::Phase;
use crate::alerts::round::{Active, Subject, round};
use crate::alerts::rule::Rule;
use crate::alerts::{Sign, judge_backends};
use crate::backend::{BackendKind, BackendStatus, BackendView, WatchState};
use crate::known::Known;
use crate::names::BackendName;
use crate::observation::Coverage;

/// Never observed; so many passes have failed.
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
        poll_ms: 2_000,
        coverage: Coverage::Complete,
        fault: None,
        locks: 0,
        waiters: Known::unknown("untold"),
        needing_attention: 0,
        clock_offset_ms: Known::unknown("untold"),
        clock_error_ms: 0,
        answers_ms: vec![None; failed],
        version: Known::unknown("untold"),
        watch: WatchState::Off {
            why: "untold".to_owned(),
        },
        passes: failed as u64,
        relist_differences: 0,
        sources: Vec::new(),
        capabilities: Vec::new(),
        rights: Vec::new(),
        past_faults: Vec::new(),
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

/// One round a second from `from`, each with the backend as it is then.
fn play(rule: &Rule, mut active: Vec<Active>, from: i64, views: &[BackendView]) -> (Vec<Active>, usize) {
    let mut over = 0;
    for (second, view) in (0..).zip(views) {
        let judged = judge_backends(0, rule, std::slice::from_ref(view));
        let is_unknown = judged.iter().any(|(_, sign, _)| *sign == Sign::Unknown);
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
        Phase::Firing { fired_at, .. } => Some(fired_at),
        Phase::Pending { .. } => None,
    })
}

/// A pass every two seconds, none of which succeeds.
fn outage(seconds: usize) -> Vec<BackendView> {
    (0..seconds)
        .map(|second| never_seen(second.div_ceil(2)))
        .collect()
}

#[test]
fn an_outage_at_the_start_waits_as_long_as_one_in_the_middle_and_for_the_rule_s_for() {
    // Would catch an alert at the first pass that fails, while a backend that was seen has two polls to come back.
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
    // Would catch an end that is told because the new process has not looked yet, and a second beginning after it.
    let mut rule = rule("backend_unreachable");
    rule.timing.for_ms = 30_000;
    let (kept, _) = play(&rule, Vec::new(), 0, &outage(60));
    let (after, over) = play(&rule, kept.clone(), 60_000, &outage(60));
    assert_eq!((fired_at(&after), over, after.len()), (fired_at(&kept), 0, 1));
    // Pending over a restart: it goes on, and the time before the new process knows counts for nothing.
    let (pending, _) = play(&rule, Vec::new(), 0, &outage(20));
    assert_eq!((fired_at(&pending), pending.len()), (None, 1));
    let (after, over) = play(&rule, pending, 20_000, &outage(60));
    assert_eq!((fired_at(&after), over), (Some(40_000), 0));
    // Back at the restart: its end is told once.
    let (after, over) = play(
        &rule,
        kept,
        60_000,
        &[never_seen(0), never_seen(1), seen_at(0), seen_at(0)],
    );
    assert_eq!((after.len(), over), (0, 1));
}
