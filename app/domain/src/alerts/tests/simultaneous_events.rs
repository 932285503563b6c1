//! The preview of a window equals the live evaluation of each second.

use proptest::prelude::*;

use super::preview::{H, Now, S, event, feed};
use super::state_machine::rule;
use crate::alerts::state_machine::{AlertTransition, ConditionResult, step};
use crate::alerts::{
    Baseline, EvaluationResult, Playback, RefusedAcquire, Rule, RuleWindows, evaluate_windows,
};
use crate::history::HistoryEvent;
use crate::lock_detail::EventKind;
use crate::names::BackendName;

const TO: i64 = 400 * S;

/// Without history.
fn baseline(rule: &Rule) -> Baseline {
    let mut past = Baseline::default();
    past.add_windows([RuleWindows::new(rule)]);
    past
}

/// Firings by an evaluation at every second, as in the live evaluator.
fn live(rule: &Rule, events: &[HistoryEvent], refused: &[RefusedAcquire]) -> Vec<(i64, Option<i64>)> {
    let mut past = baseline(rule);
    past.refused(i64::MIN, refused.to_vec());
    let (mut phase, mut firings) = (None, Vec::new());
    let mut next = events.iter().peekable();
    for now in (0..TO).step_by(1_000) {
        while let Some(event) = next.next_if(|event| event.at <= now) {
            past.apply(event);
        }
        let sign = match evaluate_windows(0, rule, &mut past, now).unwrap().is_empty() {
            true => ConditionResult::Clear,
            false => ConditionResult::Holds,
        };
        let (after, change) = step(phase, sign, rule.timing, now);
        phase = after;
        match change {
            Some(AlertTransition::Fired) => firings.push((now, None)),
            Some(AlertTransition::Resolved) => firings.last_mut().unwrap().1 = Some(now),
            _ => {}
        }
    }
    firings
}

fn preview(rule: &Rule, events: &[HistoryEvent], refused: &[RefusedAcquire]) -> Vec<(i64, Option<i64>)> {
    let mut playback = Playback::new([rule], 0, TO);
    playback.refused(0, refused);
    for event in events {
        feed(&mut playback, &Now(None), event);
    }
    let preview = playback.finish(&Now(None), TO).remove(0);
    let firings = preview.firings.iter();
    firings.map(|firing| (firing.at, firing.until)).collect()
}

const KINDS: [EventKind; 5] = [
    EventKind::Acquired,
    EventKind::Waiting,
    EventKind::Released,
    EventKind::Expired,
    EventKind::Renewed,
];

/// Rules on prefixes with low thresholds.
fn rules() -> impl Strategy<Value = Rule> {
    let ids = prop::sample::select(vec!["contention", "wait_p95", "hold_near_ttl", "lease_losses"]);
    (ids, 30_i64..90, 0_i64..20, 0_i64..20).prop_map(|(id, window_s, for_s, keep_s)| {
        let mut rule = rule(id);
        let params = rule.condition.kind.info().params;
        let values = params.iter().map(|param| match param.name {
            "window" => Some(window_s * S),
            "count" | "at_least" => Some(2),
            "longer_than" => Some(3 * S),
            "share" => Some(100),
            _ => param.default,
        });
        rule.condition.values = values.collect();
        (rule.timing.for_ms, rule.timing.keep_ms) = (for_s * S, keep_s * S);
        rule
    })
}

/// Events of three locks, some of them uncertain.
fn events() -> impl Strategy<Value = Vec<HistoryEvent>> {
    let steps = (0_i64..4_000, 0_usize..5, 0_u8..3, proptest::bool::weighted(0.1));
    proptest::collection::vec(steps, 1..120).prop_map(|steps| {
        let mut at = 0;
        let events = steps.into_iter().map(|(wait, kind, lock, is_uncertain)| {
            at += wait;
            HistoryEvent {
                waiters: Some(1),
                not_before: is_uncertain.then_some(at),
                ..event(at, KINDS[kind], &format!("jobs/{lock}"))
            }
        });
        events.collect()
    })
}

fn refusals() -> impl Strategy<Value = Vec<RefusedAcquire>> {
    proptest::collection::vec(0_i64..300, 0..20).prop_map(|mut seconds| {
        seconds.sort_unstable();
        let refused = seconds.into_iter().map(|second| RefusedAcquire {
            at: second * S,
            backend: BackendName::builtin(),
            prefix: "jobs/*".to_owned(),
            times: 1,
        });
        refused.collect()
    })
}

proptest! {
    #[test]
    fn windows_fire_and_resolve_at_the_live_seconds(
        rule in rules(), events in events(), refused in refusals(),
    ) {
        prop_assert_eq!(preview(&rule, &events, &refused), live(&rule, &events, &refused));
    }

    #[test]
    fn a_continued_playback_equals_a_whole_one(
        rule in prop_oneof![rules(), Just(rule("long_held")), Just(rule("near_expiry"))],
        events in events(), refused in refusals(), place in 0_usize..120,
    ) {
        // Continued from a clone after any event; refusals since then are read again.
        let uninterrupted = {
            let mut playback = Playback::new([&rule], 0, 2 * TO);
            playback.refused(0, &refused);
            events.iter().for_each(|event| feed(&mut playback, &Now(None), event));
            playback.finish(&Now(None), TO)
        };
        let (before, after) = events.split_at(place.min(events.len()));
        let since = after.first().map_or(TO, |event| event.at);
        let mut playback = Playback::new([&rule], 0, 2 * TO);
        playback.refused(0, &refused);
        before.iter().for_each(|event| feed(&mut playback, &Now(None), event));
        let mut later = playback.clone();
        drop(playback.finish(&Now(None), since));
        later.refused(since, &refused);
        after.iter().for_each(|event| feed(&mut later, &Now(None), event));
        prop_assert_eq!(later.finish(&Now(None), TO), uninterrupted);
    }

    #[test]
    fn windows_from_a_replay_equal_learned_ones(
        rule in rules(), events in events(), place in 0_usize..120,
    ) {
        // A rule that is new at some event reads the past; then both see the same events.
        let (before, after) = events.split_at(place.min(events.len()));
        let (mut learned, mut replayed) = (baseline(&rule), Baseline::default());
        let mut playback = Playback::new([&rule], 0, TO);
        for event in before {
            learned.apply(event);
            replayed.apply(event);
            feed(&mut playback, &Now(None), event);
        }
        prop_assert_eq!(replayed.follow_windows(std::slice::from_ref(&rule), 0).len(), 1);
        replayed.add_windows(playback.into_windows());
        prop_assert!(replayed.follow_windows(std::slice::from_ref(&rule), 0).is_empty());
        for event in after {
            learned.apply(event);
            replayed.apply(event);
            let found = |past: &mut Baseline| evaluate_windows(0, &rule, past, event.at).unwrap();
            prop_assert_eq!(found(&mut replayed), found(&mut learned));
        }
    }
}

#[test]
fn a_window_counts_more_than_20_000_acquisitions() {
    // 15,000 holdings with a waiter, then 45,000 without, within an hour: a quarter of all was
    // waited for. Live and preview count the same.
    let mut rule = rule("contention");
    rule.condition.values = vec![Some(200), Some(5), Some(H)];
    let (mut past, mut playback) = (baseline(&rule), Playback::new([&rule], 0, H));
    let mut at = 0;
    for number in 0..60_000 {
        at += 50;
        let waiters = Some(u32::from(number < 15_000));
        let acquired = HistoryEvent {
            waiters,
            ..event(at, EventKind::Acquired, &format!("jobs/{}", number % 100))
        };
        past.apply(&acquired);
        feed(&mut playback, &Now(None), &acquired);
    }
    let live: Vec<EvaluationResult> = evaluate_windows(0, &rule, &mut past, at).unwrap();
    assert_eq!((live.len(), live[0].measure), (1, 250));
    let preview = playback.finish(&Now(None), H).remove(0);
    assert_eq!(preview.count, 1);
    let last = preview.series.iter().rev().find(|point| point.at <= at);
    // The worst within the point.
    assert!((250..=251).contains(&last.unwrap().measure.unwrap()));
}

#[test]
fn a_cut_window_is_named_as_such() {
    // More different waits in an hour than a window stores.
    let mut rule = rule("wait_p95");
    rule.condition.values = vec![Some(S), Some(5), Some(H)];
    let mut past = baseline(&rule);
    let alert_text = |past: &mut Baseline, at| evaluate_windows(0, &rule, past, at).unwrap().remove(0).why;
    let wait = |past: &mut Baseline, number: i64| {
        let (at, name) = (number * 20, format!("jobs/{}", number % 500));
        let waiting = HistoryEvent {
            waiters: Some(1),
            ..event(at, EventKind::Acquired, &name)
        };
        past.apply(&waiting);
        past.apply(&event(at + 2 * S + number, EventKind::Released, &name));
        at
    };
    (0..1_000).for_each(|number| {
        wait(&mut past, number);
    });
    assert!(
        alert_text(&mut past, 20 * S).contains("p95 of 1000 waits in 1 h"),
        "{}",
        alert_text(&mut past, 20 * S)
    );
    let at = (1_000..101_000)
        .map(|number| wait(&mut past, number))
        .last()
        .unwrap();
    let message = alert_text(&mut past, at);
    assert!(
        message.contains("p95 of the newest 100000 waits in 1 h"),
        "{message}"
    );
}
