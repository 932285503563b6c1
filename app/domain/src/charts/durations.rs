//! Hold and wait times: distribution on a log scale, percentiles, and the position of one
//! hold.

use serde::{Deserialize, Serialize};

use super::scale::Log;
use super::ticks;
use super::timeline::{Begin, Block, End};

/// Bars of the distribution.
const BARS: usize = 24;
const PERCENT: u64 = 100;

/// Finished holds: lengths in milliseconds with their counts, shortest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Holds {
    lengths: Vec<(i64, u64)>,
    uncertain: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bar {
    pub from_ms: f64,
    pub until_ms: f64,
    pub count: u64,
}

/// The drawing's data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    pub scale: Log,
    pub bars: Vec<Bar>,
    pub total: u64,
    pub p50: i64,
    pub p95: i64,
    pub p99: i64,
}

/// With fewer durations a chart warns that the sample is small.
pub const FEW: u64 = 10;

/// A distribution with what it is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DurationChart {
    /// `None`: none has ended.
    pub distribution: Option<Distribution>,
    /// Durations that are known only between two bounds; they count with the middle.
    pub uncertain: u64,
    pub current: Option<CurrentDuration>,
    pub of: DurationsOf,
}

/// The locks that a distribution is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum DurationsOf {
    ThisLock,
    /// A template of names.
    Prefix(String),
    AllLocks,
}

/// A hold or a wait that goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CurrentDuration {
    pub ms: i64,
    /// Above the 95th percentile of enough others.
    pub is_long: bool,
    /// Per cent of the others that are shorter.
    pub shorter_percent: u64,
}

impl DurationChart {
    pub fn new(durations: &Holds, current_ms: Option<i64>, of: DurationsOf) -> Self {
        let is_long =
            |ms: i64| durations.count() >= FEW && durations.percentile(95).is_some_and(|p95| ms > p95);
        Self {
            distribution: durations.distribution(current_ms),
            uncertain: durations.uncertain(),
            current: current_ms.map(|ms| CurrentDuration {
                ms,
                is_long: is_long(ms),
                shorter_percent: durations.shorter_than(ms),
            }),
            of,
        }
    }

    pub fn count(&self) -> u64 {
        self.distribution.as_ref().map_or(0, |it| it.total)
    }
}

impl Holds {
    pub fn new(lengths_ms: Vec<i64>) -> Self {
        Self::counted(lengths_ms.into_iter().map(|ms| (ms, 1)))
    }

    /// From lengths with counts, as a histogram has them.
    pub fn counted(lengths: impl IntoIterator<Item = (i64, u64)>) -> Self {
        let mut lengths: Vec<(i64, u64)> = lengths.into_iter().filter(|(ms, _)| *ms >= 0).collect();
        lengths.sort_unstable();
        Self {
            lengths,
            uncertain: 0,
        }
    }

    /// Number of holds whose length is known only between two bounds.
    #[must_use]
    pub fn with_uncertain(self, uncertain: u64) -> Self {
        Self { uncertain, ..self }
    }

    pub const fn uncertain(&self) -> u64 {
        self.uncertain
    }

    /// Only blocks of which both ends were observed. A block that began or ended in an outage
    /// counts with the middle of its bounds.
    pub fn from_blocks(blocks: &[Block]) -> Self {
        let is_whole = |block: &&Block| {
            let is_end_seen = !matches!(block.end, End::Now | End::Displaced | End::Unseen);
            block.begin == Begin::Seen && is_end_seen && block.leases == 1
        };
        let ranges: Vec<(i64, i64)> = blocks
            .iter()
            .filter(is_whole)
            .map(Block::length_range_ms)
            .collect();
        let uncertain = ranges
            .iter()
            .filter(|(shortest, longest)| shortest != longest)
            .count();
        let middles = ranges
            .iter()
            .map(|(shortest, longest)| shortest + (longest - shortest) / 2);
        Self::new(middles.collect()).with_uncertain(uncertain as u64)
    }

    pub fn count(&self) -> u64 {
        self.lengths.iter().map(|(_, count)| count).sum()
    }

    /// The smallest hold that `percent` of the holds do not exceed; `None` without holds.
    pub fn percentile(&self, percent: u64) -> Option<i64> {
        let rank = (self.count() * percent.min(PERCENT)).div_ceil(PERCENT).max(1);
        let mut before = 0;
        let reaches = |(_, count): &&(i64, u64)| {
            before += count;
            before >= rank
        };
        self.lengths.iter().find(reaches).map(|(ms, _)| *ms)
    }

    /// Per cent of the holds that are shorter.
    pub fn shorter_than(&self, ms: i64) -> u64 {
        let shorter = self.lengths.iter().take_while(|(hold, _)| *hold < ms);
        shorter.map(|(_, count)| count).sum::<u64>() * PERCENT / self.count().max(1)
    }

    /// `now_ms`: a hold that the drawing must include.
    pub fn distribution(&self, now_ms: Option<i64>) -> Option<Distribution> {
        let (low, high) = (self.lengths.first()?.0, self.lengths.last()?.0);
        let scale = ticks::duration_scale(low.min(now_ms.unwrap_or(low)), high.max(now_ms.unwrap_or(high)));
        let mut bars: Vec<Bar> = (0..BARS)
            .map(|part| Bar {
                from_ms: scale.part_begins(part, BARS),
                until_ms: scale.part_begins(part + 1, BARS),
                count: 0,
            })
            .collect();
        for (hold, count) in &self.lengths {
            bars[scale.part(*hold as f64, BARS)].count += count;
        }
        Some(Distribution {
            scale,
            bars,
            total: self.count(),
            p50: self.percentile(50)?,
            p95: self.percentile(95)?,
            p99: self.percentile(99)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn percentiles_are_holds_that_happened() {
        // A hundred holds of 1 to 100 s: the nearest rank.
        let holds = Holds::new((1..=100).rev().map(|s| s * 1_000).collect());
        let summary = [50, 95, 99, 100, 0].map(|percent| holds.percentile(percent));
        assert_eq!(
            summary,
            [
                Some(50_000),
                Some(95_000),
                Some(99_000),
                Some(100_000),
                Some(1_000)
            ]
        );
        assert_eq!((holds.shorter_than(95_500), holds.shorter_than(0)), (95, 0));
        assert_eq!(Holds::default().percentile(95), None);
        assert_eq!(Holds::default().distribution(Some(5)), None);
    }

    proptest! {
        #[test]
        fn every_hold_is_in_exactly_one_bar(holds in proptest::collection::vec(0_i64..100_000_000_000, 1..300), now in proptest::option::of(0_i64..100_000_000_000)) {
            let holds = Holds::new(holds);
            let summary = holds.distribution(now).unwrap();
            prop_assert_eq!(summary.bars.iter().map(|bar| bar.count).sum::<u64>(), holds.count());
            prop_assert!(summary.p50 <= summary.p95 && summary.p95 <= summary.p99);
            if let Some(now) = now {
                prop_assert!(summary.scale.high() >= now as f64);
            }
        }
    }
}
