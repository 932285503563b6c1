//! Limits of forced unlocks, with their units.

use std::time::Duration;

/// Time within which an intent must be confirmed.
pub const INTENT_MAX: Duration = Duration::from_secs(120);
/// Wrong names after which an intent is cancelled.
pub const MISMATCHES_MAX: u32 = 3;
/// Items of one bulk request.
pub const BULK_MAX: usize = 50;
/// Limit of a fresh read of the lock, before the intent and after the execution.
pub const FRESH_READ_TIMEOUT: Duration = Duration::from_secs(5);
/// Delay before a second read, when the first found a holder that was just releasing.
pub const SECOND_READ_DELAY: Duration = Duration::from_millis(30);
/// An execution without an answer after this time, counted from its claim, has an unknown outcome. Nothing is sent after it.
pub const ACT_MAX: Duration = Duration::from_secs(60);
/// Allowance for clock differences between replicas and for the commit, before an execution counts as interrupted.
pub const DEADLINE_SLACK: Duration = Duration::from_secs(5);
/// Interval at which open unlocks are checked.
pub const MAINTENANCE_INTERVAL: Duration = Duration::from_millis(500);
/// After an unknown outcome the lock is read again after this time, and then every [`REREAD_EVERY`] and a tenth of the time since
/// the outcome: the same holder may hold it for days.
pub const REREAD_FIRST: Duration = Duration::from_secs(2);
pub const REREAD_EVERY: Duration = Duration::from_secs(5);
/// If the same holder is still there after this time, the unknown outcome says so. It stays unknown: the release may take effect
/// later.
pub const STILL_HELD_FOR: Duration = Duration::from_secs(10);
/// Releases this long before the newest known one may still have been committed later: clocks of replicas differ and
/// commits take time.
pub const RELEASES_OVERLAP: Duration = Duration::from_secs(30);
/// Unlocks handled per maintenance round.
pub const UNLOCKS_PER_ROUND_MAX: i64 = 100;
/// Rows per query for charts.
pub const ACTED_PAGE: u32 = 500;

const _: () = assert!(FRESH_READ_TIMEOUT.as_secs() < INTENT_MAX.as_secs());
const _: () = assert!(REREAD_EVERY.as_secs() < STILL_HELD_FOR.as_secs());
