//! Diagnoses and their sentences, and client libraries on a simulated clock.

mod clients;

use proptest::prelude::*;

use super::*;

fn leased(remaining_ms: i64, cadence: Option<(i64, i64)>) -> Facts<'static> {
    Facts {
        lifetime: LifetimeFacts::Leased {
            remaining_ms,
            track_ms: 30_000,
        },
        cadence: cadence.map(|(every, silent)| CadenceFacts {
            interval_ms: every,
            longest_ms: every,
            silent_ms: silent,
        }),
        renewals: if cadence.is_some() { 2 } else { 0 },
        near_below_ms: cadence.map(|(every, _)| near_below_ms(every, 30_000, 500, 0)),
        sampling_ms: 500,
        waiters: Some(0),
        oldest_waiter_ms: None,
        condition: None,
        is_long_held: false,
    }
}

#[test]
fn a_late_but_steady_renewer_is_never_flagged() {
    // Renews a 30 s lease every 25 s: 5 s are left each time, before and after its interval is
    // learnt.
    for left in (5_000..30_000).step_by(100) {
        assert_eq!(diagnose(&leased(left, None)).worst(), LockState::Healthy);
        assert_eq!(
            diagnose(&leased(left, Some((25_000, 30_000 - left)))).worst(),
            LockState::Healthy
        );
    }
}

#[test]
fn a_silent_renewer_is_flagged_five_seconds_before_its_end() {
    // Renewed every 10 s, then fell silent.
    let at = |silent: i64| diagnose(&leased(30_000 - silent, Some((10_000, silent)))).worst();
    assert_eq!(at(14_000), LockState::Healthy);
    assert_eq!(at(16_000), LockState::NearExpiry);
    assert_eq!(at(24_700), LockState::NotRenewing);
    assert_eq!(at(30_001), LockState::Expired);
}

#[test]
fn each_state_has_a_reason_with_numbers() {
    let silent = leased(4_100, Some((10_000, 25_900)));
    let reasons = explain(&silent, diagnose(&silent));
    assert_eq!(
        reasons[0].why,
        "Renewed every 10.0 s, silent for 25.9 s. Expires in 4.1 s."
    );
    let mut waiting = leased(20_000, None);
    waiting.waiters = Some(3);
    waiting.oldest_waiter_ms = Some(38_000);
    let reasons = explain(&waiting, diagnose(&waiting));
    assert_eq!(reasons[0].why, "3 wait for it. Oldest waiter 38.0 s.");
}

proptest! {
    #[test]
    fn every_verdict_has_a_reason_per_state_worst_first(
        remaining in -10_000i64..40_000, every in 1i64..40_000, silent in 0i64..60_000,
        known in any::<bool>(), waiters in proptest::option::of(0u32..5),
    ) {
        let mut facts = leased(remaining, known.then_some((every, silent)));
        facts.waiters = waiters;
        let verdict = diagnose(&facts);
        let reasons = explain(&facts, verdict);
        prop_assert_eq!(reasons[0].state, verdict.worst());
        prop_assert!(reasons.windows(2).all(|pair| pair[0].state < pair[1].state));
        prop_assert!(reasons.iter().all(|reason| !reason.why.is_empty()));
    }

    #[test]
    fn silence_only_ever_makes_it_worse(every in 1i64..20_000, silent in 0i64..29_000) {
        let before = diagnose(&leased(30_000 - silent, Some((every, silent)))).worst();
        let after = diagnose(&leased(30_000 - silent - 500, Some((every, silent + 500)))).worst();
        prop_assert!(after <= before);
    }
}
