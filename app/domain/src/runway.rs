//! Geometry of the lease runway, in per cent of its track, and the words beside it. Drawn by the `Runway` components.
//!
//! Takes a lock as the server sent it and how long ago that was. It does not diagnose: colours come from the
//! states that the server found, and a lease that runs out between two readings stops at zero, because only a
//! reading can say that it expired.

mod axis;
mod sentence;

pub use axis::{AxisTick, axis};
pub use sentence::{label, marks_sentence, title};

use crate::known::Known;
use crate::lock::Lock;
use crate::state::{LockState, Severity};

/// What kind of drawing a lock gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A bar of what is left.
    Leased,
    /// An empty track with a mark at its start.
    Expired,
    /// An arrow: it never ends by itself.
    NoTtl,
    /// Dots: it lives as long as a session.
    Session,
    /// A dashed outline.
    Unknown,
}

/// One drawing. Every length is in per cent of the track, from 0 to 100.
#[derive(Debug, Clone, PartialEq)]
pub struct Runway {
    pub form: Form,
    /// Hue of the bar: it tells the lease only, so a long-held lock that renews is healthy here.
    pub tone: Severity,
    pub left: f64,
    pub low_marks: Vec<f64>,
    pub notch: Option<f64>,
}

impl Runway {
    /// `elapsed_ms`: since the server answered.
    pub fn of(lock: &Lock, elapsed_ms: i64) -> Self {
        let form = form(lock);
        let track = track_ms(lock);
        let is_bar = matches!(form, Form::Leased | Form::Expired);
        Self {
            form,
            tone: tone(lock, form),
            left: if form == Form::Leased {
                percent(left_ms(lock, elapsed_ms), track)
            } else {
                0.0
            },
            low_marks: if is_bar {
                lock.low_marks_ms.iter().map(|ms| percent(*ms, track)).collect()
            } else {
                Vec::new()
            },
            notch: lock
                .notch_ms
                .filter(|ms| is_bar && *ms > 0)
                .map(|ms| percent(ms, track)),
        }
    }
}

/// The form follows what was observed, so it stays the same until the next reading.
pub fn form(lock: &Lock) -> Form {
    match &lock.remaining_ms {
        _ if lock.session_bound => Form::Session,
        Known::Known(ms) if *ms > 0 || lock.is_stale() => Form::Leased,
        // The lease ran out after the last scan, and the holder may have renewed it.
        Known::Known(_) if lock.state == LockState::Unknown => Form::Unknown,
        Known::Known(_) => Form::Expired,
        Known::Absent(_) => Form::NoTtl,
        Known::Unknown(_) => Form::Unknown,
    }
}

/// What is left in milliseconds, never below zero for a lease that was not seen to expire.
pub fn left_ms(lock: &Lock, elapsed_ms: i64) -> i64 {
    let now = lock
        .remaining_ms
        .known()
        .copied()
        .unwrap_or(0)
        .saturating_sub(elapsed_ms.max(0));
    if form(lock) == Form::Expired {
        now
    } else {
        now.max(0)
    }
}

/// Length of the whole track in milliseconds; what is left when nothing better is known.
pub fn track_ms(lock: &Lock) -> i64 {
    lock.track_ms
        .filter(|ms| *ms > 0)
        .or_else(|| lock.ttl_ms.known().copied())
        .or_else(|| lock.remaining_ms.known().copied())
        .unwrap_or(0)
        .max(0)
}

fn percent(ms: i64, track_ms: i64) -> f64 {
    if track_ms <= 0 {
        return 0.0;
    }
    let share = ms.clamp(0, track_ms) as f64 / track_ms as f64;
    // Two decimals are a hundredth of a pixel; fewer digits are fewer bytes, and equal ones on both sides.
    (share * 10_000.0).round() / 100.0
}

fn tone(lock: &Lock, form: Form) -> Severity {
    if lock.is_stale() {
        return Severity::Blind;
    }
    match form {
        Form::Expired => Severity::Critical,
        // With a heartbeat in place of an expiry it is no warning.
        Form::NoTtl => {
            let graver = lock.reasons.iter().find_map(|reason| match reason.state {
                LockState::NoTtl => Some(Severity::Warning),
                state => lease_tone(state),
            });
            graver.unwrap_or(Severity::Healthy)
        }
        Form::Session | Form::Unknown => Severity::Blind,
        Form::Leased => lock
            .reasons
            .iter()
            .find_map(|reason| lease_tone(reason.state))
            .unwrap_or(Severity::Healthy),
    }
}

const fn lease_tone(state: LockState) -> Option<Severity> {
    match state {
        LockState::ExpiredPresent | LockState::NotRenewing => Some(Severity::Critical),
        LockState::NearExpiry => Some(Severity::Warning),
        LockState::TwoBelievers
        | LockState::HolderGone
        | LockState::NoTtl
        | LockState::LongHeld
        | LockState::Contended
        | LockState::Stale
        | LockState::Unknown
        | LockState::Healthy => None,
    }
}

#[cfg(test)]
pub(crate) use tests::lock as lock_for_tests;
#[cfg(test)]
mod tests;
