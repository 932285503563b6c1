//! How long one lock is usually held: live rules and the preview compare with it.

use std::collections::VecDeque;
use std::sync::OnceLock;

/// Holds of one lock that are remembered, newest last; and how many of them a p95 takes. Four bytes each: of as many locks
/// as are remembered they are 26 MB.
const HOLDS_KEPT: usize = 64;
pub const SAMPLES_MIN: usize = 8;

#[derive(Debug, Default)]
pub(super) struct HoldTimes {
    holds_ms: VecDeque<u32>,
    p95: OnceLock<Option<i64>>,
}

impl HoldTimes {
    pub(super) fn add(&mut self, ms: i64) {
        // First out, then in: one more than fits would double the room for all.
        if self.holds_ms.len() == HOLDS_KEPT {
            self.holds_ms.pop_front();
        }
        // What is held for longer than seven weeks was held for seven weeks.
        self.holds_ms
            .push_back(u32::try_from(ms.max(0)).unwrap_or(u32::MAX));
        self.p95 = OnceLock::new();
    }

    /// None before it was held often enough.
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
