//! Previews over a gap: holdings before it and after it.

use super::preview::{H, Now, S, event, play_over_gaps};
use super::state_machine::rule;
use crate::alerts::{Preview, Rule};
use crate::history::{HistoryEvent, Run};
use crate::lock_detail::EventKind::{Acquired, Expired, Released, Renewed};
use crate::names::OwnerId;

const GAP: (i64, i64) = (10 * S, 40 * S);

/// Held for longer than 20 s.
fn long_held() -> Rule {
    let mut rule = rule("long_held");
    rule.condition.values = vec![None, Some(20 * S), Some(0)];
    rule
}

fn play(events: &[HistoryEvent], present: &Now) -> Preview {
    play_over_gaps(&long_held(), events, &[GAP], present, H)
}

fn firings(preview: &Preview) -> Vec<(i64, Option<i64>)> {
    let all = preview.firings.iter();
    all.map(|firing| (firing.at, firing.until)).collect()
}

#[test]
fn a_hold_over_a_gap_fires_after_it() {
    // Released by the same holder, or held by it now; it passed the threshold inside the gap.
    let acquired = event(0, Acquired, "a");
    let ended = play(&[acquired.clone(), event(60 * S, Released, "a")], &Now(None));
    assert_eq!(firings(&ended), [(GAP.1, Some(60 * S))]);
    assert_eq!(ended.gaps, [GAP]);
    let held = play(&[acquired], &Now(Some("w")));
    assert_eq!(firings(&held), [(GAP.1, None)]);
}

#[test]
fn a_hold_that_ended_in_a_gap_does_not_fire() {
    // Free now, held by another owner now, or released or acquired by another owner after the
    // gap.
    let acquired = event(0, Acquired, "a");
    let other = |at, kind| HistoryEvent {
        owner: Some(OwnerId::new("other")),
        ..event(at, kind, "a")
    };
    for present in [Now(None), Now(Some("other"))] {
        assert_eq!(play(std::slice::from_ref(&acquired), &present).count, 0);
    }
    let released = [acquired.clone(), other(90 * S, Released)];
    assert_eq!(play(&released, &Now(None)).count, 0);
    let taken_over = [acquired, other(50 * S, Acquired), other(55 * S, Released)];
    assert_eq!(play(&taken_over, &Now(None)).count, 0);
}

#[test]
fn an_alert_keeps_firing_through_a_gap() {
    // Fires before the gap: still held after it, and ended in it.
    let gap = (30 * S, 60 * S);
    let acquired = event(0, Acquired, "a");
    let over = [acquired.clone(), event(90 * S, Released, "a")];
    let on = play_over_gaps(&long_held(), &over, &[gap], &Now(None), H);
    assert_eq!(firings(&on), [(21 * S, Some(90 * S))]);
    let gone = play_over_gaps(&long_held(), &[acquired], &[gap], &Now(None), H);
    assert_eq!(firings(&gone), [(21 * S, Some(gap.1))]);
}

#[test]
fn time_in_a_gap_does_not_count_for_the_duration() {
    // Pending for 5 s of 20 s when the gap begins.
    let mut rule = long_held();
    rule.timing.for_ms = 20 * S;
    let events = [event(0, Acquired, "a"), event(90 * S, Released, "a")];
    let seen = play_over_gaps(&rule, &events, &[(26 * S, 60 * S)], &Now(None), H);
    assert_eq!(firings(&seen), [(75 * S, Some(90 * S))]);
}

#[test]
fn renewals_after_a_gap_show_the_same_holder() {
    // Renewed every 10 s of 30 s before and after the gap, then silent: near expiry fires once,
    // before the end.
    let run = |from: i64, count: u32| HistoryEvent {
        run: Some(Run {
            count,
            until: from + i64::from(count - 1) * 10 * S,
        }),
        ..event(from, Renewed, "a")
    };
    let gap = (110 * S, 150 * S);
    let events = [
        event(0, Acquired, "a"),
        run(10 * S, 10),
        run(160 * S, 10),
        event(280 * S, Expired, "a"),
    ];
    let seen = play_over_gaps(&rule("near_expiry"), &events, &[gap], &Now(None), H);
    assert_eq!(seen.count, 1);
    assert!(
        (250 * S..275 * S).contains(&seen.firings[0].at),
        "{:?}",
        seen.firings
    );
}
