//! All forms with their texts, and the geometry for any numbers.

use chrono::DateTime;
use proptest::prelude::*;

use super::*;
use crate::backend::BackendKind;
use crate::names::{BackendName, LockId, Resource, Source};
use crate::safety::{Safety, SafetyClass};
use crate::state::StateReason;

pub(crate) fn lock(remaining_ms: Reported<i64>) -> Lock {
    Lock {
        id: LockId {
            backend: BackendName::parse("orders-db").unwrap(),
            source: Source::fixed("key"),
            resource: Resource::from("a:b"),
        },
        kind: BackendKind::Redis,
        owner_id: Reported::unknown("not reported"),
        owner_count: 1,
        lease_id: Reported::unknown("not reported"),
        generation: Reported::unknown("not reported"),
        fencing_token: Reported::absent("Redis issues no fencing tokens"),
        acquired_at: Reported::unknown("not reported"),
        expires_at: Reported::unknown("not reported"),
        held_ms: Reported::unknown("not reported"),
        held_at_least_ms: 0,
        ttl_ms: Reported::Value(30_000),
        remaining_ms,
        waiter_count: Reported::unknown("not reported"),
        state: LockState::Healthy,
        reasons: Vec::new(),
        safety: Safety {
            class: SafetyClass::Efficiency,
            why: "no token".into(),
        },
        renewal: Reported::unknown("no cadence yet"),
        observed_at: DateTime::UNIX_EPOCH,
        age_ms: 400,
        track_ms: Some(30_000),
        notch_ms: Some(10_000),
        low_marks_ms: vec![19_400, 20_600],
        session_bound: false,
    }
}

fn stale(remaining_ms: i64, age_ms: i64) -> Lock {
    Lock {
        state: LockState::Stale,
        age_ms,
        ..lock(Reported::Value(remaining_ms))
    }
}

#[test]
fn each_form_has_its_label() {
    // One lock per form, in the order of the visual reference.
    let session = Lock {
        session_bound: true,
        ..lock(Reported::absent("session"))
    };
    let locks = [
        lock(Reported::Value(27_000)),
        stale(7_000, 14_000),
        lock(Reported::absent("PTTL is \u{2212}1")),
        session,
        lock(Reported::unknown("a stream is no lock")),
        lock(Reported::Value(-372_000)),
    ];
    let labels = locks.each_ref().map(|lock| label(lock, 0));
    assert_eq!(
        labels,
        [
            "27.0 s",
            "\u{2264} 7.0 s",
            "no TTL",
            "no lease",
            "unknown",
            "\u{2212}6 m 12 s"
        ]
    );
    let forms = locks.each_ref().map(form);
    assert_eq!(
        forms,
        [
            Form::Leased,
            Form::Leased,
            Form::NoTtl,
            Form::Session,
            Form::Unknown,
            Form::Expired
        ]
    );
}

#[test]
fn the_bar_shows_time_left_with_marks_and_notch() {
    let bar = ExpiryBar::from_lock(&lock(Reported::Value(27_000)), 0);
    assert_eq!(
        (bar.left, bar.notch, bar.tone),
        (90.0, Some(33.33), Severity::Healthy)
    );
    assert_eq!(bar.low_marks, [64.67, 68.67]);
    assert_eq!(
        title(&lock(Reported::Value(27_000))),
        "27.0 s of 30 s left. Renewals came with 19.4 s to 20.6 s left. Near expiry below 10.0 s."
    );
}

#[test]
fn lease_that_ends_between_readings_stops_at_zero() {
    // Only a reading can confirm the expiry; it may have been renewed meanwhile.
    assert_eq!(label(&lock(Reported::Value(1_200)), 5_000), "0.0 s");
    assert_eq!(label(&lock(Reported::Value(-1_000)), 5_000), "\u{2212}6.0 s");
    assert_eq!(label(&stale(-3_000, 14_000), 0), "\u{2264} 0.0 s");
    assert!(title(&stale(-3_000, 14_000)).contains("has expired since"));
}

#[test]
fn the_colour_depends_on_the_lease_only() {
    // A contended or long-held lock that renews stays healthy; a silent one below a more severe
    // state does not.
    let with = |states: &[LockState]| {
        let reasons = states
            .iter()
            .map(|state| StateReason {
                state: *state,
                why: String::new(),
            })
            .collect();
        ExpiryBar::from_lock(
            &Lock {
                reasons,
                state: states[0],
                ..lock(Reported::Value(9_000))
            },
            0,
        )
        .tone
    };
    assert_eq!(
        with(&[LockState::LongHeld, LockState::Contended]),
        Severity::Healthy
    );
    assert_eq!(
        with(&[LockState::Orphaned, LockState::NotRenewing]),
        Severity::Critical
    );
    assert_eq!(with(&[LockState::NearExpiry]), Severity::Warning);
    assert_eq!(with(&[LockState::Stale, LockState::NotRenewing]), Severity::Blind);
}

#[test]
fn axis_has_round_labels_and_ends_with_the_track() {
    let labels = |ms| axis(ms).into_iter().map(|tick| tick.label).collect::<Vec<_>>();
    assert_eq!(
        labels(30_000),
        ["0 s", "5 s", "10 s", "15 s", "20 s", "25 s", "30 s"]
    );
    assert_eq!(
        labels(90_000),
        ["0 s", "15 s", "30 s", "45 s", "1 m", "1 m 15 s", "1 m 30 s"]
    );
    assert_eq!(labels(27_340), ["0 s", "5 s", "10 s", "15 s", "20 s", "27.3 s"]);
    assert_eq!(
        labels(86_400_000),
        ["0 s", "4 h", "8 h", "12 h", "16 h", "20 h", "1 d"]
    );
    assert_eq!(labels(400), ["0 s", "100 ms", "200 ms", "300 ms", "400 ms"]);
    assert!(labels(0).is_empty());
}

proptest! {
    #[test]
    fn every_length_stays_on_the_track(
        remaining in any::<i64>(), track in proptest::option::of(any::<i64>()), elapsed in any::<i64>(),
        lows in proptest::collection::vec(any::<i64>(), 0..9), notch in proptest::option::of(any::<i64>()),
    ) {
        let mut lock = lock(Reported::Value(remaining));
        (lock.track_ms, lock.low_marks_ms, lock.notch_ms) = (track, lows, notch);
        let bar = ExpiryBar::from_lock(&lock, elapsed);
        let all = bar.low_marks.iter().chain(&bar.notch).chain([&bar.left]);
        for length in all {
            prop_assert!((0.0..=100.0).contains(length));
        }
        prop_assert!(!title(&lock).is_empty() && !label(&lock, elapsed).is_empty());
        let ticks = axis(track_ms(&lock));
        prop_assert!(ticks.windows(2).all(|pair| pair[0].at < pair[1].at));
        prop_assert!(ticks.len() <= 8);
    }

    #[test]
    fn time_only_ever_shortens_the_bar(remaining in 1i64..60_000, elapsed in 0i64..70_000, more in 0i64..5_000) {
        let lock = lock(Reported::Value(remaining));
        prop_assert!(ExpiryBar::from_lock(&lock, elapsed + more).left <= ExpiryBar::from_lock(&lock, elapsed).left);
        prop_assert_eq!(ExpiryBar::from_lock(&lock, elapsed).form, Form::Leased);
    }
}
