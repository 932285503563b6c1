//! Diagnosis of a lock: the rules that determine its states, and their reasons. Pure.
//!
//! Facts are of the moment of the backend's last reading, never of the moment of display:
//! silence during which nothing was read is no evidence. `diagnose` allocates nothing, because
//! it runs for every lock of every scan; `explain` writes the sentences and runs only for
//! displayed locks.

mod reasons;

pub use reasons::explain;

use crate::observation::ObservedCondition;
use crate::state::LockState;

/// A holder without observed renewals is near expiry below this fraction of its TTL. One eighth
/// lets a holder that renews a 30 s lease every 25 s drop to 5 s repeatedly without a false
/// alarm.
pub const NEAR_SHARE: i64 = 8;
/// A holder is silent after this many of its longest intervals, in hundredths.
pub const SILENT_INTERVALS: i64 = 250;
/// A holder with observed renewals is near expiry below this in any case, in milliseconds; with
/// a short TTL below one eighth of it.
pub const LAST_MS: i64 = 250;
/// Reason for a lock whose lease ran out after it was last read.
pub const RAN_OUT: &str = "Its lease ran out after the last scan, unless the holder renewed it since";
/// A silent holder is reported at least this long before its lease ends if possible, in
/// milliseconds.
pub const WARN_BEFORE_END_MS: i64 = 5_000;

/// How the lock ends, as of the reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LifetimeFacts<'a> {
    /// `track_ms` is the TTL, or the largest time left observed if the backend does not report
    /// the TTL.
    Leased {
        remaining_ms: i64,
        track_ms: i64,
    },
    /// The lease of a silent holder ran out this long ago, after the last reading.
    RanOut {
        ago_ms: i64,
    },
    /// No expiry; silence longer than `stale_after_ms` counts as not renewing.
    Heartbeat {
        silent_ms: i64,
        stale_after_ms: i64,
    },
    NoTtl {
        why: &'a str,
    },
    Session,
    Unknown {
        why: &'a str,
    },
}

/// Learnt renewal interval, as of the reading.
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
    /// Below this, less is left than at any earlier renewal; see [`near_below_ms`].
    pub near_below_ms: Option<i64>,
    /// How late a renewal may be observed: poll interval plus clock resolution of the backend,
    /// in milliseconds.
    pub sampling_ms: i64,
    pub waiters: Option<u32>,
    pub oldest_waiter_ms: Option<i64>,
    pub condition: Option<&'a ObservedCondition>,
    /// An enabled rule reports it as held for too long.
    pub is_long_held: bool,
}

/// Set of states that hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StateSet(u16);

impl StateSet {
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

    /// The worst state; healthy if the set is empty.
    pub fn worst(self) -> LockState {
        LockState::from_rank(self.0.trailing_zeros() as usize).unwrap_or(LockState::Healthy)
    }
}

/// Time left below which a holder is clearly later than at any earlier renewal. `used_ms` is
/// the most of the TTL that had run down at a renewal: half of it may be missed, as in
/// [`near_after_ms`], but never more than half of what was left then.
pub fn near_below_ms(used_ms: i64, track_ms: i64, sampling_ms: i64, grain_ms: i64) -> i64 {
    let low_ms = track_ms - used_ms;
    let slack_ms = (used_ms / 2 + sampling_ms).min(low_ms / 2).max(grain_ms);
    (low_ms - slack_ms).max(LAST_MS.min(track_ms / NEAR_SHARE))
}

/// Silence from which one renewal counts as missed.
pub const fn near_after_ms(longest_ms: i64, sampling_ms: i64) -> i64 {
    longest_ms + longest_ms / 2 + sampling_ms
}

/// Silence from which the holder counts as not renewing: two and a half intervals, or earlier
/// if that would leave less than [`WARN_BEFORE_END_MS`]; never before one renewal counts as
/// missed.
pub const fn silent_after_ms(longest_ms: i64, sampling_ms: i64, track_ms: i64) -> i64 {
    silent_after(longest_ms, sampling_ms, track_ms, SILENT_INTERVALS, 0)
}

/// The same for another factor, in hundredths of intervals, and for an observer that reads only
/// every `lag_ms`: the next reading must still be in time.
pub const fn silent_after(
    longest_ms: i64,
    sampling_ms: i64,
    track_ms: i64,
    intervals: i64,
    lag_ms: i64,
) -> i64 {
    let after_intervals = longest_ms * intervals / 100 + sampling_ms;
    let latest = track_ms - WARN_BEFORE_END_MS - sampling_ms - lag_ms;
    let near_limit = near_after_ms(longest_ms, sampling_ms);
    let limit = if latest < after_intervals {
        latest
    } else {
        after_intervals
    };
    if limit < near_limit { near_limit } else { limit }
}

/// Time left at which the lock will be near expiry: the notch on its expiry bar.
pub fn notch_ms(
    cadence: Option<CadenceFacts>,
    near_below_ms: Option<i64>,
    track_ms: i64,
    sampling_ms: i64,
) -> i64 {
    let by_silence = cadence.map(|cadence| track_ms - near_after_ms(cadence.longest_ms, sampling_ms));
    let never_renewed = track_ms / NEAR_SHARE;
    by_silence.max(near_below_ms).unwrap_or(never_renewed).max(0)
}

/// Milliseconds after the reading at which time alone changes the state; `None` if it does not.
pub fn changes_after_ms(facts: &Facts<'_>) -> Option<i64> {
    if let LifetimeFacts::Heartbeat {
        silent_ms,
        stale_after_ms,
    } = facts.lifetime
    {
        return Some(stale_after_ms - silent_ms + 1).filter(|ms| *ms > 0);
    }
    let LifetimeFacts::Leased {
        remaining_ms,
        track_ms,
    } = facts.lifetime
    else {
        return None;
    };
    let notch = notch_ms(facts.cadence, facts.near_below_ms, track_ms, facts.sampling_ms);
    let silent = facts.cadence.map(|cadence| {
        let after = silent_after_ms(cadence.longest_ms, facts.sampling_ms, track_ms);
        after - cadence.silent_ms + 1
    });
    [Some(remaining_ms), Some(remaining_ms - notch + 1), silent]
        .into_iter()
        .flatten()
        .filter(|ms| *ms > 0)
        .min()
        .filter(|_| remaining_ms > 0)
}

/// State of a lock whose lease ran out after it was last read with state `read`. A holder that
/// was silent then has expired; any other may have renewed since, so the state is unknown until
/// the next scan.
pub const fn state_after_end(read: LockState) -> LockState {
    match read {
        LockState::NotRenewing | LockState::NearExpiry => LockState::Expired,
        LockState::Expired | LockState::Orphaned | LockState::Stale => read,
        LockState::DualOwner
        | LockState::Split
        | LockState::QuorumLost
        | LockState::NoTtl
        | LockState::LongHeld
        | LockState::Contended
        | LockState::Unknown
        | LockState::Healthy => LockState::Unknown,
    }
}

pub fn diagnose(facts: &Facts<'_>) -> StateSet {
    let is_expired = match facts.lifetime {
        LifetimeFacts::Leased { remaining_ms, .. } => remaining_ms <= 0,
        LifetimeFacts::RanOut { .. } => true,
        LifetimeFacts::Heartbeat { .. }
        | LifetimeFacts::NoTtl { .. }
        | LifetimeFacts::Session
        | LifetimeFacts::Unknown { .. } => false,
    };
    let mut verdict = StateSet::default()
        .with(
            LockState::DualOwner,
            // The holder of an ended lease cannot conflict with another.
            !is_expired && matches!(facts.condition, Some(ObservedCondition::DualOwner { .. })),
        )
        .with(LockState::LongHeld, facts.is_long_held)
        .with(
            LockState::Contended,
            facts.waiters.is_some_and(|waiters| waiters > 0),
        )
        .with(
            LockState::Orphaned,
            matches!(facts.condition, Some(ObservedCondition::Orphaned { .. })),
        )
        .with(
            LockState::Split,
            !is_expired && matches!(facts.condition, Some(ObservedCondition::Split { .. })),
        )
        .with(
            LockState::QuorumLost,
            !is_expired && matches!(facts.condition, Some(ObservedCondition::QuorumLost { .. })),
        )
        .with(
            LockState::Unknown,
            matches!(
                facts.condition,
                Some(ObservedCondition::Unrecognised { .. } | ObservedCondition::Undecided { .. })
            ),
        );
    match facts.lifetime {
        LifetimeFacts::Leased {
            remaining_ms,
            track_ms,
        } => {
            let expired = remaining_ms <= 0;
            let (near, silent) = match facts.cadence {
                Some(cadence) => (
                    is_below_low(facts, remaining_ms)
                        || cadence.silent_ms > near_after_ms(cadence.longest_ms, facts.sampling_ms),
                    cadence.silent_ms > silent_after_ms(cadence.longest_ms, facts.sampling_ms, track_ms),
                ),
                None if facts.near_below_ms.is_some() => (is_below_low(facts, remaining_ms), false),
                None => (remaining_ms < track_ms / NEAR_SHARE, false),
            };
            verdict = verdict
                .with(LockState::Expired, expired)
                .with(LockState::NotRenewing, silent && !expired)
                .with(LockState::NearExpiry, near && !silent && !expired);
        }
        LifetimeFacts::RanOut { .. } => verdict = verdict.with(LockState::Expired, true),
        LifetimeFacts::Heartbeat {
            silent_ms,
            stale_after_ms,
        } => verdict = verdict.with(LockState::NotRenewing, silent_ms > stale_after_ms),
        LifetimeFacts::NoTtl { .. } => verdict = verdict.with(LockState::NoTtl, true),
        LifetimeFacts::Session => {}
        LifetimeFacts::Unknown { .. } => verdict = verdict.with(LockState::Unknown, true),
    }
    verdict
}

/// Less is left than at any earlier renewal.
pub fn is_below_low(facts: &Facts<'_>, remaining_ms: i64) -> bool {
    facts.near_below_ms.is_some_and(|below| remaining_ms < below)
}
#[cfg(test)]
mod tests;
