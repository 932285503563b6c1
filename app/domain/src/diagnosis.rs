//! The rules that name a lock's state, and the sentence that says why. Pure: facts in, verdict out.
//!
//! Facts are taken at the moment of the backend's last reading, never at the moment of display: silence that
//! nobody listened to is no evidence. `judge` allocates nothing, because it runs for every lock of every pass;
//! `explain` writes the sentences and runs for the rows that someone looks at.

use crate::human;
use crate::observation::Condition;
use crate::state::{LockState, Reason};

/// A holder that was never seen to renew is near expiry below this share of its TTL. One eighth lets a holder
/// that renews a 30 s lease every 25 s drop to 5 s again and again without being accused.
pub const NEAR_SHARE: i64 = 8;
/// A holder has fallen silent after so many of its longest intervals, in hundredths.
pub const SILENT_INTERVALS: i64 = 250;
/// Where it can be done, a silent holder is named at least this long before its lease ends, in milliseconds.
pub const WARN_BEFORE_END_MS: i64 = 5_000;

/// How the lock ends, as of the reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LifetimeFacts<'a> {
    /// `track_ms` is the TTL, or the most that was ever left where the backend does not tell the TTL.
    Leased {
        remaining_ms: i64,
        track_ms: i64,
    },
    NoTtl {
        why: &'a str,
    },
    Session,
    Unknown {
        why: &'a str,
    },
}

/// A learnt rhythm, as of the reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CadenceFacts {
    pub interval_ms: i64,
    pub longest_ms: i64,
    pub silent_ms: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts<'a> {
    pub lifetime: LifetimeFacts<'a>,
    pub cadence: Option<CadenceFacts>,
    pub renewals: u32,
    /// How late a renewal may be seen: the poll period and the grain of the backend's clock, in milliseconds.
    pub sampling_ms: i64,
    pub waiters: Option<u32>,
    pub oldest_waiter_ms: Option<i64>,
    pub condition: Option<&'a Condition>,
    /// An enabled rule says that it is held for too long.
    pub is_long_held: bool,
}

/// The states that hold, as a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Verdict(u16);

impl Verdict {
    fn with(self, state: LockState, holds: bool) -> Self {
        if holds {
            Self(self.0 | 1 << state.rank())
        } else {
            self
        }
    }

    pub const fn holds(self, state: LockState) -> bool {
        self.0 & (1 << state.rank()) != 0
    }

    /// The worst that holds; healthy when nothing does.
    pub fn worst(self) -> LockState {
        LockState::from_rank(self.0.trailing_zeros() as usize).unwrap_or(LockState::Healthy)
    }
}

/// Silence from which one renewal counts as missed.
pub const fn near_after_ms(longest_ms: i64, sampling_ms: i64) -> i64 {
    longest_ms + longest_ms / 2 + sampling_ms
}

/// Silence from which the holder counts as not renewing: two and a half intervals, or sooner where that would
/// leave less than [`WARN_BEFORE_END_MS`]; never before one renewal counts as missed.
pub const fn silent_after_ms(longest_ms: i64, sampling_ms: i64, track_ms: i64) -> i64 {
    silent_after(longest_ms, sampling_ms, track_ms, SILENT_INTERVALS, 0)
}

/// The same for another patience, in hundredths of intervals, and for somebody who looks only every `lag_ms`: what is
/// found at the next look is still found in time.
pub const fn silent_after(
    longest_ms: i64,
    sampling_ms: i64,
    track_ms: i64,
    intervals: i64,
    lag_ms: i64,
) -> i64 {
    let patient = longest_ms * intervals / 100 + sampling_ms;
    let latest = track_ms - WARN_BEFORE_END_MS - sampling_ms - lag_ms;
    let near = near_after_ms(longest_ms, sampling_ms);
    let wanted = if latest < patient { latest } else { patient };
    if wanted < near { near } else { wanted }
}

/// What is left when the lock will be called near expiry: the notch on its runway.
pub const fn notch_ms(cadence: Option<CadenceFacts>, track_ms: i64, sampling_ms: i64) -> i64 {
    let left = match cadence {
        Some(cadence) => track_ms - near_after_ms(cadence.longest_ms, sampling_ms),
        None => track_ms / NEAR_SHARE,
    };
    if left < 0 { 0 } else { left }
}

pub fn judge(facts: &Facts<'_>) -> Verdict {
    let is_expired =
        matches!(facts.lifetime, LifetimeFacts::Leased { remaining_ms, .. } if remaining_ms <= 0);
    let mut verdict = Verdict::default()
        .with(
            LockState::TwoBelievers,
            // A lease that has ended has no holder that could act beside another one.
            !is_expired && matches!(facts.condition, Some(Condition::TwoBelievers { .. })),
        )
        .with(LockState::LongHeld, facts.is_long_held)
        .with(
            LockState::Contended,
            facts.waiters.is_some_and(|waiters| waiters > 0),
        )
        .with(
            LockState::HolderGone,
            matches!(facts.condition, Some(Condition::HolderGone { .. })),
        )
        .with(
            LockState::Unknown,
            matches!(facts.condition, Some(Condition::Unrecognised { .. })),
        );
    match facts.lifetime {
        LifetimeFacts::Leased {
            remaining_ms,
            track_ms,
        } => {
            let expired = remaining_ms <= 0;
            let (near, silent) = match facts.cadence {
                Some(cadence) => (
                    cadence.silent_ms > near_after_ms(cadence.longest_ms, facts.sampling_ms),
                    cadence.silent_ms > silent_after_ms(cadence.longest_ms, facts.sampling_ms, track_ms),
                ),
                None => (remaining_ms < track_ms / NEAR_SHARE, false),
            };
            verdict = verdict
                .with(LockState::ExpiredPresent, expired)
                .with(LockState::NotRenewing, silent && !expired)
                .with(LockState::NearExpiry, near && !silent && !expired);
        }
        LifetimeFacts::NoTtl { .. } => verdict = verdict.with(LockState::NoTtl, true),
        LifetimeFacts::Session => {}
        LifetimeFacts::Unknown { .. } => verdict = verdict.with(LockState::Unknown, true),
    }
    verdict
}

/// One sentence per state that holds, worst first; one for a healthy lock too.
pub fn explain(facts: &Facts<'_>, verdict: Verdict) -> Vec<Reason> {
    let mut reasons: Vec<Reason> = LockState::ALL
        .into_iter()
        .filter(|state| verdict.holds(*state))
        .map(|state| Reason {
            state,
            why: sentence(state, facts),
        })
        .collect();
    if reasons.is_empty() {
        reasons.push(Reason {
            state: LockState::Healthy,
            why: sentence(LockState::Healthy, facts),
        });
    }
    if let (Some(Condition::Note { why }), Some(first)) = (facts.condition, reasons.first_mut()) {
        first.why = format!("{} {why}.", first.why);
    }
    reasons
}

fn sentence(state: LockState, facts: &Facts<'_>) -> String {
    match state {
        LockState::ExpiredPresent => expired_sentence(facts),
        LockState::NotRenewing | LockState::NearExpiry => silence_sentence(state, facts),
        LockState::Contended => contended_sentence(facts),
        LockState::HolderGone | LockState::Unknown => match (facts.condition, facts.lifetime) {
            (Some(Condition::HolderGone { why } | Condition::Unrecognised { why }), _) => format!("{why}."),
            (_, LifetimeFacts::Unknown { why }) => format!("{why}."),
            _ => "This backend does not tell enough to judge it.".to_owned(),
        },
        LockState::NoTtl => match facts.lifetime {
            LifetimeFacts::NoTtl { why } => format!("It never expires by itself: {why}."),
            _ => "It never expires by itself.".to_owned(),
        },
        LockState::Healthy => healthy_sentence(facts),
        LockState::TwoBelievers => match facts.condition {
            Some(Condition::TwoBelievers { why }) => format!("{why}."),
            _ => format!("It is {}.", state.word()),
        },
        LockState::LongHeld => "It is held for longer than a rule allows.".to_owned(),
        LockState::Stale => format!("It is {}.", state.word()),
    }
}

fn remaining(facts: &Facts<'_>) -> i64 {
    match facts.lifetime {
        LifetimeFacts::Leased { remaining_ms, .. } => remaining_ms,
        LifetimeFacts::NoTtl { .. } | LifetimeFacts::Session | LifetimeFacts::Unknown { .. } => 0,
    }
}

fn expired_sentence(facts: &Facts<'_>) -> String {
    let ago = human::duration(-remaining(facts));
    match facts.cadence {
        Some(cadence) => format!(
            "Its lease ran out {ago} ago and the record is still there. It renewed every {} until then.",
            human::duration(cadence.interval_ms)
        ),
        None => format!("Its lease ran out {ago} ago and the record is still there."),
    }
}

fn silence_sentence(state: LockState, facts: &Facts<'_>) -> String {
    let left = human::duration(remaining(facts));
    match (facts.cadence, facts.lifetime) {
        (Some(cadence), _) if state == LockState::NotRenewing => format!(
            "Renewed every {}, silent for {}. Expires in {left}.",
            human::duration(cadence.interval_ms),
            human::duration(cadence.silent_ms)
        ),
        (Some(cadence), _) => format!(
            "One renewal missed. It renews every {}; the last was {} ago.",
            human::duration(cadence.interval_ms),
            human::duration(cadence.silent_ms)
        ),
        (None, LifetimeFacts::Leased { track_ms, .. }) => {
            let renewed = if facts.renewals == 0 {
                "Never seen to renew"
            } else {
                "Renewed once"
            };
            format!("{renewed}; {left} of {} left.", human::duration(track_ms))
        }
        (None, _) => format!("{left} left."),
    }
}

fn contended_sentence(facts: &Facts<'_>) -> String {
    let waiting = match facts.waiters {
        Some(1) => "One waits for it.".to_owned(),
        Some(count) => format!("{} wait for it.", human::count(u64::from(count))),
        None => String::new(),
    };
    match facts.oldest_waiter_ms {
        Some(ms) => format!("{waiting} Oldest waiter {}.", human::duration(ms)),
        None => waiting,
    }
}

fn healthy_sentence(facts: &Facts<'_>) -> String {
    match (facts.cadence, facts.lifetime) {
        (Some(cadence), _) => format!(
            "It renews every {}, the last was {} ago.",
            human::duration(cadence.interval_ms),
            human::duration(cadence.silent_ms)
        ),
        (None, LifetimeFacts::Session) => "It lives as long as the session that holds it.".to_owned(),
        (None, _) => "Its lease runs and nobody waits.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
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
            sampling_ms: 500,
            waiters: Some(0),
            oldest_waiter_ms: None,
            condition: None,
            is_long_held: false,
        }
    }

    #[test]
    fn a_late_but_steady_renewer_is_never_accused() {
        // Renews a 30 s lease every 25 s: it falls to 5 s each time, before and after its cadence is learnt.
        for left in (5_000..30_000).step_by(100) {
            assert_eq!(judge(&leased(left, None)).worst(), LockState::Healthy);
            assert_eq!(
                judge(&leased(left, Some((25_000, 30_000 - left)))).worst(),
                LockState::Healthy
            );
        }
    }

    #[test]
    fn a_silent_renewer_is_named_at_least_five_seconds_before_its_end() {
        // Used to renew every 10 s, then falls silent.
        let at = |silent: i64| judge(&leased(30_000 - silent, Some((10_000, silent)))).worst();
        assert_eq!(at(14_000), LockState::Healthy);
        assert_eq!(at(16_000), LockState::NearExpiry);
        assert_eq!(at(24_700), LockState::NotRenewing);
        assert_eq!(at(30_001), LockState::ExpiredPresent);
    }

    #[test]
    fn each_state_says_why_with_its_numbers() {
        let silent = leased(4_100, Some((10_000, 25_900)));
        let reasons = explain(&silent, judge(&silent));
        assert_eq!(
            reasons[0].why,
            "Renewed every 10.0 s, silent for 25.9 s. Expires in 4.1 s."
        );
        let mut waiting = leased(20_000, None);
        waiting.waiters = Some(3);
        waiting.oldest_waiter_ms = Some(38_000);
        let reasons = explain(&waiting, judge(&waiting));
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
            let verdict = judge(&facts);
            let reasons = explain(&facts, verdict);
            prop_assert_eq!(reasons[0].state, verdict.worst());
            prop_assert!(reasons.windows(2).all(|pair| pair[0].state < pair[1].state));
            prop_assert!(reasons.iter().all(|reason| !reason.why.is_empty()));
        }

        #[test]
        fn silence_only_ever_makes_it_worse(every in 1i64..20_000, silent in 0i64..29_000) {
            let before = judge(&leased(30_000 - silent, Some((every, silent)))).worst();
            let after = judge(&leased(30_000 - silent - 500, Some((every, silent + 500)))).worst();
            prop_assert!(after <= before);
        }
    }
}
