//! Changes that a server drops while it is not the leader, and the gap that they leave if no server has written them.

use std::collections::VecDeque;

use chrono::{DateTime, Utc};
use domain::duration::millis;

use super::limits::GAP_MIN;
use inventory::LockChange;

/// The write before the current one.
#[derive(Debug, Clone, Copy)]
pub(super) struct LastWrite {
    /// In milliseconds of the wall clock.
    pub(super) at: i64,
    pub(super) is_own: bool,
}

/// Times of the oldest and of the newest change that this server has dropped since its last write, in milliseconds of
/// the wall clock.
#[derive(Debug, Default)]
pub(super) struct DroppedChanges(Option<(i64, i64)>);

impl DroppedChanges {
    pub(super) fn drop_before(&mut self, limit: DateTime<Utc>, changes: &mut VecDeque<LockChange>) {
        while changes.front().is_some_and(|change| change.at < limit)
            && let Some(change) = changes.pop_front()
        {
            self.record(change.at.timestamp_millis());
        }
    }

    fn record(&mut self, at: i64) {
        let (oldest, newest) = self.0.unwrap_or((at, at));
        self.0 = Some((oldest.min(at), newest.max(at)));
    }

    /// The time that no server has recorded; this one observes since `resumed_at`.
    pub(super) fn gap(&self, last_write: LastWrite, resumed_at: i64) -> Option<(i64, i64)> {
        let last_at = last_write.at;
        if last_write.is_own {
            // A page may arrive after a write and be older.
            return self
                .0
                .map(|(oldest, newest)| (oldest.min(last_at), newest.max(last_at)));
        }
        // The other server has written the changes before its last write.
        match self.0.filter(|(_, newest)| *newest > last_at) {
            Some((_, newest)) => Some((last_at, newest.max(resumed_at))),
            None => (resumed_at - last_at > millis(GAP_MIN)).then_some((last_at, resumed_at)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESUMED_AT: i64 = 1_000;

    fn gap(dropped: &[i64], last_at: i64, is_own: bool) -> Option<(i64, i64)> {
        let mut changes = DroppedChanges::default();
        for at in dropped {
            changes.record(*at);
        }
        let last_write = LastWrite { at: last_at, is_own };
        changes.gap(last_write, RESUMED_AT)
    }

    #[test]
    fn dropped_changes_that_no_server_wrote_are_a_gap() {
        // The last write is of another server: before both drops, between them, after both.
        assert_eq!(gap(&[20_000, 30_000], 10_000, false), Some((10_000, 30_000)));
        assert_eq!(gap(&[20_000, 30_000], 25_000, false), Some((25_000, 30_000)));
        assert_eq!(gap(&[20_000, 30_000], 40_000, false), None);
    }

    #[test]
    fn all_dropped_changes_since_an_own_write_are_a_gap() {
        // Before both drops, and after one of a late page.
        assert_eq!(gap(&[20_000, 30_000], 10_000, true), Some((10_000, 30_000)));
        assert_eq!(gap(&[20_000], 25_000, true), Some((20_000, 25_000)));
        assert_eq!(gap(&[], 10_000, true), None);
    }

    #[test]
    fn a_time_before_the_observation_is_a_gap() {
        // Another server wrote 15 s before, and a millisecond earlier.
        let gap_ms = millis(GAP_MIN);
        assert_eq!(gap(&[], RESUMED_AT - gap_ms, false), None);
        let last_at = RESUMED_AT - gap_ms - 1;
        assert_eq!(gap(&[], last_at, false), Some((last_at, RESUMED_AT)));
    }
}
