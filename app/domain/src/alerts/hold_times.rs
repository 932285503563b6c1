//! Usual hold time of one lock; used by the live rules and the preview.

use std::collections::VecDeque;
use std::sync::OnceLock;

/// Number of hold times stored per lock, newest last, and number required for a p95. Four bytes
/// each: 26 MB at the maximum number of locks.
const HOLDS_KEPT: usize = 64;
pub const SAMPLES_MIN: usize = 8;

#[derive(Debug, Default)]
pub(super) struct HoldTimes {
    holds_ms: VecDeque<u32>,
    p95: OnceLock<Option<i64>>,
}

impl HoldTimes {
    pub(super) fn add(&mut self, ms: i64) {
        // Removes before it pushes: one element more would double the capacity for every lock.
        if self.holds_ms.len() == HOLDS_KEPT {
            self.holds_ms.pop_front();
        }
        // `u32` milliseconds end at seven weeks; longer holds saturate.
        self.holds_ms
            .push_back(u32::try_from(ms.max(0)).unwrap_or(u32::MAX));
        self.p95 = OnceLock::new();
    }

    /// `None` until enough holds were recorded.
    pub(super) fn p95_ms(&self) -> Option<i64> {
        *self.p95.get_or_init(|| {
            let count = self.holds_ms.len();
            if count < SAMPLES_MIN {
                return None;
            }
            let mut values = [0; HOLDS_KEPT];
            let (front, back) = self.holds_ms.as_slices();
            values[..front.len()].copy_from_slice(front);
            values[front.len()..count].copy_from_slice(back);
            let place = (count * 95).div_ceil(100) - 1;
            let (_, p95, _) = values[..count].select_nth_unstable(place);
            Some(i64::from(*p95))
        })
    }

    #[cfg(test)]
    pub(super) fn room(&self) -> (usize, usize) {
        (self.holds_ms.len(), self.holds_ms.capacity())
    }
}
