//! Usual hold time of one lock; used by the live rules and the preview.

use std::collections::VecDeque;
use std::sync::OnceLock;

/// Number of hold times stored per lock, newest last, and number required for a p95. Four bytes
/// each: 26 MB at the maximum number of locks.
const HOLDS_KEPT: usize = 64;
pub const SAMPLES_MIN: usize = 8;
/// In place of the length of an uncertain hold.
const UNCERTAIN: u32 = u32::MAX;

/// Length of an ended hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HoldLength {
    /// In milliseconds.
    Known(i64),
    /// It began or ended in an outage of its backend.
    Uncertain,
}

impl HoldLength {
    pub(super) fn new(ms: i64, is_uncertain: bool) -> Self {
        match is_uncertain {
            true => Self::Uncertain,
            false => Self::Known(ms.max(0)),
        }
    }

    pub(super) const fn known_ms(self) -> Option<i64> {
        match self {
            Self::Known(ms) => Some(ms),
            Self::Uncertain => None,
        }
    }
}

/// Usual hold time of one lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsualHold {
    pub p50_ms: i64,
    pub p95_ms: i64,
    /// Recent holds of uncertain length, which do not count: one long outage must not raise the
    /// threshold.
    pub uncertain: usize,
}

#[derive(Debug, Clone, Default)]
pub(super) struct HoldTimes {
    holds_ms: VecDeque<u32>,
    usual: OnceLock<Option<UsualHold>>,
}

impl HoldTimes {
    pub(super) fn add(&mut self, length: HoldLength) {
        // Removes before it pushes: one element more would double the capacity for every lock.
        if self.holds_ms.len() == HOLDS_KEPT {
            self.holds_ms.pop_front();
        }
        // `u32` milliseconds end at seven weeks; longer holds saturate.
        let ms = length.known_ms().map_or(UNCERTAIN, |ms| {
            u32::try_from(ms).unwrap_or(UNCERTAIN).min(UNCERTAIN - 1)
        });
        self.holds_ms.push_back(ms);
        self.usual = OnceLock::new();
    }

    /// `None` until enough holds of known length were recorded.
    pub(super) fn usual(&self) -> Option<UsualHold> {
        *self.usual.get_or_init(|| {
            let mut values = [0; HOLDS_KEPT];
            let known = self.holds_ms.iter().filter(|ms| **ms != UNCERTAIN);
            let count = known.zip(&mut values).map(|(ms, value)| *value = *ms).count();
            if count < SAMPLES_MIN {
                return None;
            }
            let place = |percent: usize| (count * percent).div_ceil(100) - 1;
            let (below, p95, _) = values[..count].select_nth_unstable(place(95));
            let p95_ms = i64::from(*p95);
            let (_, p50, _) = below.select_nth_unstable(place(50));
            Some(UsualHold {
                p50_ms: i64::from(*p50),
                p95_ms,
                uncertain: self.holds_ms.len() - count,
            })
        })
    }

    #[cfg(test)]
    pub(super) fn room(&self) -> (usize, usize) {
        (self.holds_ms.len(), self.holds_ms.capacity())
    }
}
