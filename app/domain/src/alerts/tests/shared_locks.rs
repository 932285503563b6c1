//! Holds of shared locks, and ends that name another holder than their beginnings.

use super::gaps::outage;
use super::preview::{H, Now, S, event, play_gaps};
use super::state_machine::{immediate, lock, rule};
use crate::alerts::{Baseline, Gap, UsualHold};
use crate::history::{HistoryEvent, Run};
use crate::lock_detail::EventKind::{
    self, Acquired, Expired, Released, Renewed, ShareAcquired, ShareReleased,
};
use crate::names::OwnerId;

fn by(owner: &str, at: i64, kind: EventKind) -> HistoryEvent {
    HistoryEvent {
        owner: Some(OwnerId::new(owner)),
        ..event(at, kind, "a")
    }
}

fn apply(past: &mut Baseline, events: &[HistoryEvent]) {
    events.iter().for_each(|event| past.apply(event));
}

#[test]
fn the_hold_of_each_sharer_is_measured() {
    // Eight times: a holds for 60 s, and b from 10 s until 100 s, also after a.
    let mut past = Baseline::default();
    for start in (0..8).map(|number| number * H) {
        let events = [
            by("a", start, Acquired),
            by("b", start + 10 * S, ShareAcquired),
            by("a", start + 60 * S, ShareReleased),
            by("b", start + 100 * S, Released),
        ];
        apply(&mut past, &events);
    }
    let usual = UsualHold {
        p50_ms: 60 * S,
        p95_ms: 90 * S,
        uncertain: 0,
    };
    assert_eq!(past.usual_hold(&lock("a")), Some(usual));
}

#[test]
fn the_end_of_another_holder_measures_no_hold() {
    // Eight holds of a minute. Then the end of a hold and the next grant are not recorded, as while a server restarts.
    let mut past = Baseline::default();
    for start in (0..8).map(|number| number * H) {
        apply(
            &mut past,
            &[by("a", start, Acquired), by("a", start + 60 * S, Released)],
        );
    }
    apply(&mut past, &[by("a", 8 * H, Acquired), by("b", 11 * H, Released)]);
    assert_eq!(past.p95_ms(&lock("a")), Some(60 * S));
}

#[test]
fn a_preview_judges_the_recorded_owner_of_a_shared_lock() {
    // Held for longer than 20 s: by a until 30 s, then by b, which has held it since 5 s.
    let mut rule = rule("long_held");
    rule.condition.values = vec![None, Some(20 * S), Some(0)];
    let events = [
        by("a", 0, Acquired),
        by("b", 5 * S, ShareAcquired),
        by("c", 6 * S, ShareAcquired),
        by("c", 10 * S, ShareReleased),
        by("a", 30 * S, ShareReleased),
        by("b", 50 * S, Released),
    ];
    let seen = play_gaps(&rule, &events, &[], &Now(None), H);
    let firings = seen.firings.iter();
    let ends: Vec<_> = firings
        .map(|firing| (firing.owner.as_deref(), firing.until))
        .collect();
    assert_eq!(ends, [(Some("a"), Some(30 * S)), (Some("b"), Some(50 * S))]);
    assert_eq!((seen.firings[1].at, seen.acquisitions), (30 * S, 3));
}

/// Owners and times of near-expiry firings: a renewed 30 s until 100 s and leaves at 104 s; b, which joined at 5 s, lets
/// the lease run out.
fn near_expiry_of_the_next_owner(gaps: &[Gap]) -> Vec<(Option<String>, i64)> {
    let renewals = HistoryEvent {
        run: Some(Run {
            count: 10,
            until: 100 * S,
        }),
        ..by("a", 10 * S, Renewed)
    };
    let events = [
        by("a", 0, Acquired),
        by("b", 5 * S, ShareAcquired),
        renewals,
        by("a", 104 * S, ShareReleased),
        by("b", 130 * S, Expired),
    ];
    let seen = play_gaps(&immediate("near_expiry"), &events, gaps, &Now(None), H);
    let firings = seen.firings.into_iter();
    firings.map(|firing| (firing.owner, firing.at)).collect()
}

#[test]
fn the_next_owner_of_a_shared_lock_has_its_lease() {
    let expected = [(Some("b".to_owned()), 127 * S)];
    assert_eq!(near_expiry_of_the_next_owner(&[]), expected);
}

#[test]
fn the_next_owner_has_its_lease_across_an_outage() {
    // A renewal in an outage would be an event after it, and the renewal at 100 s is later than the gap.
    let gap = |span| Gap {
        backend: None,
        ..outage(span)
    };
    let expected = [(Some("b".to_owned()), 127 * S)];
    for known in [outage((101 * S, 103 * S)), gap((40 * S, 50 * S))] {
        let found = near_expiry_of_the_next_owner(std::slice::from_ref(&known));
        assert_eq!(found, expected, "{known:?}");
    }
    // In a gap after its last renewal, it may have been renewed.
    let unknown = near_expiry_of_the_next_owner(&[gap((101 * S, 103 * S))]);
    assert!(unknown.is_empty(), "{unknown:?}");
}
