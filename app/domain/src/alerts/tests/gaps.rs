//! Previews over a gap: holdings before it and after it.

use super::preview::{H, Now, S, event, play_gaps, play_over_gaps};
use super::state_machine::{immediate, rule};
use crate::alerts::{Baseline, Condition, Gap, Preview, Rule};
use crate::history::{HistoryEvent, Run};
use crate::lock_detail::EventKind::{Acquired, Expired, Released, Renewed};
use crate::names::{BackendName, OwnerId};
use crate::token::FencingToken;

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
fn one_token_after_a_gap_is_one_holder_of_any_name() {
    // The owner changes its text under its token; then under another token it is another holder.
    let held = |at, kind, owner: &str, token| HistoryEvent {
        owner: Some(OwnerId::new(owner)),
        token: Some(FencingToken::new(token)),
        ..event(at, kind, "a")
    };
    let renamed = [held(0, Acquired, "one", 7), held(60 * S, Released, "two", 7)];
    assert_eq!(firings(&play(&renamed, &Now(None))), [(GAP.1, Some(60 * S))]);
    let taken_over = [held(0, Acquired, "one", 7), held(60 * S, Released, "one", 8)];
    assert_eq!(play(&taken_over, &Now(None)).count, 0);
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
    let still_held = play_over_gaps(&long_held(), &over, &[gap], &Now(None), H);
    assert_eq!(firings(&still_held), [(21 * S, Some(90 * S))]);
    let ended_in_gap = play_over_gaps(&long_held(), &[acquired], &[gap], &Now(None), H);
    assert_eq!(firings(&ended_in_gap), [(21 * S, Some(gap.1))]);
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
    let seen = play_over_gaps(&immediate("near_expiry"), &events, &[gap], &Now(None), H);
    assert_eq!(seen.count, 1);
    assert!(
        (250 * S..275 * S).contains(&seen.firings[0].at),
        "{:?}",
        seen.firings
    );
}

/// Of the backend of the lock.
pub(super) fn outage((began, ended): (i64, i64)) -> Gap {
    Gap {
        backend: Some(BackendName::builtin()),
        began,
        ended,
    }
}

#[test]
fn an_outage_of_its_backend_does_not_count_for_the_duration() {
    // Held for longer than 20 s, for 20 s; pending for 5 s at the outage of 34 s, in which no
    // lock changes. An outage of another backend changes nothing.
    let mut rule = long_held();
    rule.timing.for_ms = 20 * S;
    let events = [event(0, Acquired, "a"), event(90 * S, Released, "a")];
    let span = (26 * S, 60 * S);
    let seen = play_gaps(&rule, &events, &[outage(span)], &Now(None), H);
    assert_eq!(firings(&seen), [(75 * S, Some(90 * S))]);
    assert_eq!((seen.gaps.len(), seen.outages), (0, 1));
    let other = Gap {
        backend: Some(BackendName::parse("orders").unwrap()),
        ..outage(span)
    };
    let seen = play_gaps(&rule, &events, &[other], &Now(None), H);
    assert_eq!(firings(&seen), [(41 * S, Some(90 * S))]);
    // To a rule on this backend alone it is a gap.
    rule.scope.backends = vec![BackendName::builtin()];
    let seen = play_gaps(&rule, &events, &[outage(span)], &Now(None), H);
    assert_eq!((seen.gaps.as_slice(), seen.outages), (&[span][..], 0));
}

#[test]
fn a_hold_that_ended_in_an_outage_does_not_fire() {
    // It passed its threshold only if it ended at the end of the outage, which is unknown.
    let ended = HistoryEvent {
        not_before: Some(8 * S),
        ..event(40 * S, Released, "a")
    };
    let seen = play_gaps(
        &long_held(),
        &[event(0, Acquired, "a"), ended],
        &[outage((12 * S, 41 * S))],
        &Now(None),
        H,
    );
    assert_eq!((seen.count, seen.uncertain_holds), (0, 1));
}

#[test]
fn an_outage_keeps_the_renewal_interval() {
    // Renewed every 10 s of 30 s before the outage and once in it, then silent: not renewing
    // fires before the end.
    let renewed = HistoryEvent {
        run: Some(Run {
            count: 10,
            until: 100 * S,
        }),
        ..event(10 * S, Renewed, "a")
    };
    let events = [
        event(0, Acquired, "a"),
        renewed,
        event(110 * S, Renewed, "a"),
        event(140 * S, Expired, "a"),
    ];
    let spans = [outage((104 * S, 112 * S))];
    let seen = play_gaps(&rule("not_renewing"), &events, &spans, &Now(None), H);
    assert_eq!(seen.count, 1, "{:?}", seen.firings);
    assert!(seen.firings[0].at <= 135 * S, "{:?}", seen.firings);
}

#[test]
fn holds_of_uncertain_length_do_not_raise_the_p95() {
    // Twenty holds of a minute; then two of up to two hours that ended in an outage, and one of
    // ten minutes: ten times the p95.
    let rule = {
        let mut rule = rule("long_held");
        rule.condition = Condition::default_of(rule.condition.kind);
        rule
    };
    let mut events = Vec::new();
    let mut hold = |at: i64, ms: i64, not_before: Option<i64>| {
        events.push(event(at, Acquired, "a"));
        events.push(HistoryEvent {
            not_before,
            ..event(at + ms, Released, "a")
        });
    };
    for n in 0..20 {
        hold(n * H, 60 * S, None);
    }
    hold(20 * H, 119 * 60 * S, Some(20 * H + 30 * S));
    hold(22 * H, 119 * 60 * S, Some(22 * H + 30 * S));
    hold(24 * H, 600 * S, None);
    let spans = [20, 22].map(|hour| outage((hour * H + 34 * S, hour * H + 119 * 60 * S + S)));
    let seen = play_gaps(&rule, &events, &spans, &Now(None), 26 * H);
    assert_eq!((seen.count, seen.uncertain_holds), (1, 2), "{:?}", seen.firings);
    assert_eq!(
        seen.firings[0].why,
        "Held for 3 m 01 s, 3 times its p95 of 1 m 00 s (2 holds of uncertain length not counted)."
    );
    let mut past = Baseline::default();
    events.iter().take(44).for_each(|event| past.apply(event));
    let usual = past.usual_hold(&super::state_machine::lock("a")).unwrap();
    assert_eq!((usual.p95_ms, usual.uncertain), (60 * S, 2));
}
