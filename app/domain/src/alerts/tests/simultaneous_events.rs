//! The preview of a window equals the live evaluation of each second.

use proptest::prelude::*;

use super::preview::{Now, S, event, feed};
use super::state_machine::rule;
use crate::alerts::state_machine::{AlertTransition, ConditionResult, step};
use crate::alerts::{Baseline, Playback, RefusedAcquire, Rule, evaluate_windows};
use crate::history::HistoryEvent;
use crate::lock_detail::EventKind;
use crate::names::BackendName;

const TO: i64 = 400 * S;

/// Firings by an evaluation at every second, as in the live evaluator.
fn live(rule: &Rule, events: &[HistoryEvent], refused: &[RefusedAcquire]) -> Vec<(i64, Option<i64>)> {
    let mut past = Baseline::default();
    past.refused(i64::MIN, refused.to_vec());
    let (mut phase, mut firings) = (None, Vec::new());
    let mut next = events.iter().peekable();
    for now in (0..TO).step_by(1_000) {
        while let Some(event) = next.next_if(|event| event.at <= now) {
            past.apply(event);
        }
        let sign = match evaluate_windows(0, rule, &past, now).is_empty() {
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
    playback.refused(refused);
    for event in events {
        feed(&mut playback, &Now(None), event);
    }
    let preview = playback.finish(&Now(None)).remove(0);
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

proptest! {
    #[test]
    fn windows_fire_and_resolve_at_the_live_seconds(
        id in prop::sample::select(vec!["contention", "wait_p95", "hold_near_ttl", "lease_losses"]),
        steps in proptest::collection::vec((0_i64..4_000, 0_usize..5, 0_u8..3), 1..120),
        refusals in proptest::collection::vec(0_i64..300, 0..20),
        window_s in 30_i64..90, for_s in 0_i64..20, keep_s in 0_i64..20,
    ) {
        let mut rule = rule(id);
        let params = rule.condition.kind.info().params;
        rule.condition.values = params.iter().map(|param| match param.name {
            "window" => Some(window_s * S),
            "count" | "at_least" => Some(2),
            "longer_than" => Some(3 * S),
            "share" => Some(100),
            _ => param.default,
        }).collect();
        (rule.timing.for_ms, rule.timing.keep_ms) = (for_s * S, keep_s * S);
        let mut at = 0;
        let events: Vec<HistoryEvent> = steps.into_iter().map(|(wait, kind, lock)| {
            at += wait;
            HistoryEvent { waiters: Some(1), ..event(at, KINDS[kind], &format!("jobs/{lock}")) }
        }).collect();
        let mut refusals = refusals;
        refusals.sort_unstable();
        let refused: Vec<RefusedAcquire> = refusals.into_iter().map(|second| RefusedAcquire {
            at: second * S,
            backend: BackendName::builtin(),
            prefix: "jobs/*".to_owned(),
            times: 1,
        }).collect();
        prop_assert_eq!(preview(&rule, &events, &refused), live(&rule, &events, &refused));
    }
}
