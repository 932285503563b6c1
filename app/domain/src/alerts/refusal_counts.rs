//! Refused acquires of one prefix over time, as running totals: a window is the difference of
//! two totals.

#[derive(Debug, Default)]
pub(super) struct RefusalCounts {
    /// Ascending times, each with the total including it.
    totals: Vec<(i64, u64)>,
}

impl RefusalCounts {
    pub(super) fn is_empty(&self) -> bool {
        self.totals.is_empty()
    }

    /// Adds refusals that are not older than those before them.
    pub(super) fn add(&mut self, at: i64, times: u64) {
        let total = self.totals.last().map_or(0, |(_, total)| *total) + times;
        match self.totals.last_mut().filter(|(last, _)| *last >= at) {
            Some(last) => last.1 = total,
            None => self.totals.push((at, total)),
        }
    }

    /// Removes refusals at or after `from`.
    pub(super) fn truncate(&mut self, from: i64) {
        self.totals
            .truncate(self.totals.partition_point(|(at, _)| *at < from));
    }

    /// Removes refusals before `from` once they are half of all, so that the cost of moving the
    /// rest is amortized.
    pub(super) fn forget(&mut self, from: i64) {
        let old = self.totals.partition_point(|(at, _)| *at < from);
        if old * 2 > self.totals.len() {
            // Keeps the last of them as the base total.
            self.totals
                .drain(..old.saturating_sub(usize::from(old < self.totals.len())));
        }
    }

    /// Refusals after `since` and up to `now`.
    pub(super) fn between(&self, since: i64, now: i64) -> u64 {
        self.up_to(now).saturating_sub(self.up_to(since))
    }

    fn up_to(&self, moment: i64) -> u64 {
        let behind = self.totals.partition_point(|(at, _)| *at <= moment);
        behind.checked_sub(1).map_or(0, |last| self.totals[last].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_excludes_its_start_and_includes_its_end() {
        let mut counts = RefusalCounts::default();
        for (at, times) in [(1_000, 2), (1_000, 1), (5_000, 4), (9_000, 8)] {
            counts.add(at, times);
        }
        assert_eq!(counts.between(0, 9_000), 15);
        assert_eq!(
            counts.between(1_000, 8_999),
            4,
            "its start is not in it, its end is"
        );
        counts.truncate(5_000);
        counts.add(6_000, 1);
        assert_eq!(counts.between(0, 9_000), 4);
    }
}
