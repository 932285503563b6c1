//! Which rows of the store are past their retention: ended leases, idempotency keys and fencing rejections.
//!
//! A lease id begins with its creation time, so the primary key of `leases` is the order of creation. Two cursors follow
//! it, each at a distance behind the present: the first deletes the leases that were released after a short hold, the
//! second all that ended. Each visits a row once, so the cost follows the rate at which leases are granted, without an index on
//! `ended_at` that each release would have to write. A restart begins at the oldest row.
//!
//! **Invariant:** a lease that has not ended is never deleted, and neither is a row of `resource_tokens`.

use std::time::Duration;

use domain::duration::millis;
use domain::lease::limits::KEY_WINDOW_MS;
use domain::lease::{LeaseId, StoreTime};

/// 30 days.
const REJECTIONS_RETENTION_MS: i64 = 30 * 24 * 3_600 * 1_000;
/// The first cursor leaves a lease that was held longer than this to the second one. Milliseconds.
const SHORT_HOLD_MS: i64 = 10 * 60_000;

/// How long the store keeps ended leases; a request for a deleted lease gets 404.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseRetention {
    /// After a release by the owner.
    pub released: Duration,
    /// After an expiry or a forced unlock; never shorter than `released`.
    pub ended: Duration,
    /// The longest lifetime of a lease with renewals: an older lease has ended.
    pub lifetime_max: Duration,
}

/// Rows to delete: ended leases with ids after `after` up to `through`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PruneRange {
    pub(super) after: String,
    pub(super) through: String,
    pub(super) due: PruneDue,
}

/// A lease is past its retention if it ended before these times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PruneDue {
    pub(super) released_before: StoreTime,
    pub(super) ended_before: StoreTime,
}

impl LeaseRetention {
    pub(super) fn due(&self, now: StoreTime) -> PruneDue {
        let released = millis(self.released);
        PruneDue {
            released_before: now.plus(-released),
            ended_before: now.plus(-millis(self.ended).max(released)),
        }
    }

    /// Leases with a smaller id are old enough to be visited by the cursor.
    pub(super) fn visited_below(&self, cursor: PruneCursor, now: StoreTime) -> String {
        let due = self.due(now);
        let created_before = match cursor {
            PruneCursor::Released => due.released_before.ms() - SHORT_HOLD_MS,
            PruneCursor::Ended => due.ended_before.ms() - millis(self.lifetime_max),
        };
        LeaseId::from_parts(created_before.max(0), [0; 10]).to_string()
    }
}

/// Idempotency keys created before this time are past their window.
pub(super) fn keys_expired_before(now: StoreTime) -> StoreTime {
    now.plus(-KEY_WINDOW_MS)
}

/// Fencing rejections recorded before this time are past their retention.
pub(super) fn rejections_recorded_before(now: StoreTime) -> StoreTime {
    now.plus(-REJECTIONS_RETENTION_MS)
}

/// Positions of the two cursors: the last visited ids.
#[derive(Debug, Default)]
pub(super) struct PruneCursors {
    released: String,
    ended: String,
}

/// One of the two cursors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PruneCursor {
    Released,
    Ended,
}

impl PruneCursor {
    pub(super) const ALL: [Self; 2] = [Self::Released, Self::Ended];
}

impl PruneCursors {
    pub(super) fn position(&self, cursor: PruneCursor) -> &str {
        match cursor {
            PruneCursor::Released => &self.released,
            PruneCursor::Ended => &self.ended,
        }
    }

    pub(super) fn advance(&mut self, cursor: PruneCursor, through: String) {
        match cursor {
            PruneCursor::Released => self.released = through,
            PruneCursor::Ended => self.ended = through,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETENTION: LeaseRetention = LeaseRetention {
        released: Duration::from_secs(3_600),
        ended: Duration::from_secs(86_400),
        lifetime_max: Duration::from_secs(2 * 86_400),
    };

    fn id(created_ms: i64) -> String {
        LeaseId::from_parts(created_ms, [7; 10]).to_string()
    }

    #[test]
    fn a_cursor_visits_leases_once_they_can_be_due() {
        let now = StoreTime::from_ms(1_800_000_000_000);
        let hour_ms = 3_600_000;
        let visited = |cursor, age_ms: i64| id(now.ms() - age_ms) < RETENTION.visited_below(cursor, now);
        assert!(!visited(PruneCursor::Released, hour_ms + SHORT_HOLD_MS - 1));
        assert!(visited(PruneCursor::Released, hour_ms + SHORT_HOLD_MS + 1));
        // A lease that this cursor visits has ended and is past its retention, however long it was renewed.
        assert!(!visited(PruneCursor::Ended, 72 * hour_ms - 1));
        assert!(visited(PruneCursor::Ended, 72 * hour_ms + 1));
    }

    #[test]
    fn an_expired_lease_is_kept_at_least_as_long_as_a_released_one() {
        let short = LeaseRetention {
            ended: Duration::from_secs(60),
            ..RETENTION
        };
        let due = short.due(StoreTime::from_ms(1_800_000_000_000));
        assert_eq!(due.ended_before, due.released_before);
    }
}
