//! Geometry of the expiry bar, in per cent of its track, and its texts. Drawn by the
//! `ExpiryBar` components.
//!
//! Takes a lock as sent by the server and its age. It does not diagnose: colours come from the
//! server's states, and a lease that runs out between two readings stops at zero, because only
//! a reading can confirm its expiry.

mod axis;
mod text;

pub use axis::{AxisTick, axis};
pub use text::{label, marks_sentence, title};

use crate::lock::Lock;
use crate::reported::Reported;
use crate::state::{LockState, Severity};

/// Kind of drawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A bar for the time left.
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
pub struct ExpiryBar {
    pub form: Form,
    /// Hue of the bar, for the lease only: a long-held lock that renews is healthy here.
    pub tone: Severity,
    pub left: f64,
    pub low_marks: Vec<f64>,
    pub notch: Option<f64>,
}

impl ExpiryBar {
    /// `elapsed_ms`: since the server answered.
    pub fn from_lock(lock: &Lock, elapsed_ms: i64) -> Self {
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

/// Depends on the observation only, so it stays the same until the next reading.
pub fn form(lock: &Lock) -> Form {
    match &lock.remaining_ms {
        _ if lock.session_bound => Form::Session,
        Reported::Value(ms) if *ms > 0 || lock.is_stale() => Form::Leased,
        // The lease ran out after the last scan, and the holder may have renewed it.
        Reported::Value(_) if lock.state == LockState::Unknown => Form::Unknown,
        Reported::Value(_) => Form::Expired,
        Reported::NotApplicable(_) => Form::NoTtl,
        Reported::Unknown(_) => Form::Unknown,
    }
}

/// Time left in milliseconds; not below zero unless the expiry was observed.
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

/// Length of the whole track in milliseconds; the time left if the TTL is unknown.
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
    // Two decimals are a hundredth of a pixel; server and browser round alike.
    (share * 10_000.0).round() / 100.0
}

fn tone(lock: &Lock, form: Form) -> Severity {
    if lock.is_stale() {
        return Severity::Blind;
    }
    match form {
        Form::Expired => Severity::Critical,
        // A heartbeat takes the place of an expiry: no warning.
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
        LockState::Expired | LockState::NotRenewing => Some(Severity::Critical),
        LockState::NearExpiry => Some(Severity::Warning),
        LockState::DualOwner
        | LockState::Split
        | LockState::QuorumLost
        | LockState::Orphaned
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
