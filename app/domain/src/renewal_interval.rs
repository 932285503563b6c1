//! Learns the renewal interval of a holder from observed renewals.
//!
//! An interval is known after two renewals. Silence is compared with the longest recent
//! interval, so that an uneven holder raises no false alarm by its own mean.

use crate::tick::Tick;

const INTERVALS_MAX: usize = crate::limits::LOW_MARKS_MAX;

/// Observed renewals of one acquisition. 80 bytes, boxed in the inventory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cadence {
    last: Tick,
    count: u32,
    /// Most of the TTL that had run down at a renewal, in milliseconds, over the whole
    /// acquisition.
    used_max_ms: u32,
    /// Intervals between renewals and time left at each, in milliseconds; rings of the newest.
    intervals_ms: [u32; INTERVALS_MAX],
    lows_ms: [u32; INTERVALS_MAX],
}

impl Cadence {
    /// The first observed renewal: at `at`, with `low_ms` left before it and `used_ms` of the
    /// TTL run down.
    pub fn begin(at: Tick, low_ms: i64, used_ms: i64) -> Self {
        let mut cadence = Self {
            last: at,
            count: 0,
            used_max_ms: 0,
            intervals_ms: [0; INTERVALS_MAX],
            lows_ms: [0; INTERVALS_MAX],
        };
        cadence.push_low(low_ms, used_ms);
        cadence.count = 1;
        cadence
    }

    /// Adds a renewal. After the clock was set back it counts, without an interval.
    pub fn renewed(&mut self, at: Tick, low_ms: i64, used_ms: i64) {
        self.push_low(low_ms, used_ms);
        let slot = (self.count as usize - 1) % INTERVALS_MAX;
        self.intervals_ms[slot] = u32::try_from(at.since(self.last).max(1)).unwrap_or(u32::MAX);
        self.last = self.last.max(at);
        self.count = self.count.saturating_add(1);
    }

    fn push_low(&mut self, low_ms: i64, used_ms: i64) {
        let clamp = |ms: i64| u32::try_from(ms.max(0)).unwrap_or(u32::MAX);
        self.lows_ms[self.count as usize % INTERVALS_MAX] = clamp(low_ms);
        self.used_max_ms = self.used_max_ms.max(clamp(used_ms));
    }

    /// Most of the TTL that had run down at a renewal, in milliseconds. Stored instead of the
    /// least time left: if a backend does not report the TTL, the known TTL grows with later
    /// readings, and this stays exact.
    pub const fn used_max_ms(&self) -> i64 {
        self.used_max_ms as i64
    }

    pub const fn last(&self) -> Tick {
        self.last
    }

    pub const fn count(&self) -> u32 {
        self.count
    }

    fn recent(&self) -> &[u32] {
        let known = (self.count as usize).saturating_sub(1).min(INTERVALS_MAX);
        &self.intervals_ms[..known]
    }

    /// Median of the recent intervals in milliseconds; `None` before the second renewal.
    pub fn interval_ms(&self) -> Option<i64> {
        // Called for every displayed lock: no allocation.
        let (mut intervals, count) = (self.intervals_ms, self.recent().len());
        let recent = intervals.get_mut(..count)?;
        recent.sort_unstable();
        recent.get(count / 2).map(|ms| i64::from(*ms))
    }

    /// Longest of the recent intervals in milliseconds; `None` before the second renewal.
    pub fn longest_ms(&self) -> Option<i64> {
        self.recent().iter().max().map(|ms| i64::from(*ms))
    }

    /// Time left at the newest renewals, oldest first, in milliseconds.
    pub fn low_marks_ms(&self) -> Vec<i64> {
        let stored = (self.count as usize).min(INTERVALS_MAX);
        let start = self.count as usize - stored;
        (start..self.count as usize)
            .map(|index| i64::from(self.lows_ms[index % INTERVALS_MAX]))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn cadence_is_known_from_the_second_renewal_on() {
        let mut cadence = Cadence::begin(Tick(10_000), 20_000, 10_000);
        assert_eq!(cadence.interval_ms(), None);
        cadence.renewed(Tick(20_000), 19_900, 10_100);
        cadence.renewed(Tick(32_000), 18_000, 12_000);
        assert_eq!(cadence.interval_ms(), Some(12_000));
        assert_eq!(cadence.longest_ms(), Some(12_000));
        assert_eq!(cadence.low_marks_ms(), [20_000, 19_900, 18_000]);
        assert_eq!(cadence.used_max_ms(), 12_000);
    }

    proptest! {
        #[test]
        fn median_never_exceeds_the_longest_and_marks_stay_bounded(steps in proptest::collection::vec((0i64..100_000, -5i64..50_000), 1..40)) {
            let mut at = 0;
            let mut cadence = Cadence::begin(Tick(0), 0, 0);
            for (step, low) in &steps {
                at += step;
                cadence.renewed(Tick(at), *low, *step);
            }
            prop_assert!(cadence.interval_ms() <= cadence.longest_ms());
            prop_assert_eq!(cadence.low_marks_ms().len(), (steps.len() + 1).min(INTERVALS_MAX));
            prop_assert_eq!(cadence.last(), Tick(at));
        }
    }
}
