//! Limits of configuration values, with their units.

use std::ops::RangeInclusive;
use std::time::Duration;

/// `stale_after` of a lease table: time without a heartbeat.
pub const STALE_AFTER: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(7 * 86_400);
/// `poll_interval`: a shorter one only loads the backend, a longer one shows outdated locks.
pub const POLL_INTERVAL: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(600);
/// `timeout`: limit of one response of a backend.
pub const TIMEOUT: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(120);
/// `scan_timeout`: limit of one scan of a backend.
pub const SCAN_TIMEOUT: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(600);
/// `requests_per_second` of a ZooKeeper backend.
pub const REQUESTS_PER_SECOND: RangeInclusive<u32> = 100..=1_000_000;
/// `lease.max_ttl`: longest TTL that a client may ask for.
pub const MAX_TTL: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(24 * 3600);
/// `lease.max_lifetime`: longest lifetime of one lease with renewals.
pub const MAX_LIFETIME: RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_secs(30 * 24 * 3600);
/// `lease.max_clock_skew`: a larger one only delays the next owner of an expired lock.
pub const CLOCK_SKEW_MAX: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(10);
/// `lease.lock_delay`: pause after a forced unlock.
pub const LOCK_DELAY: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(3600);
/// `lease.released_retention`: longer than the window of idempotency keys, whose replay reads the lease.
pub const RELEASED_RETENTION: RangeInclusive<Duration> =
    Duration::from_secs(15 * 60)..=Duration::from_secs(30 * 24 * 3600);
const _: () = assert!(
    RELEASED_RETENTION.start().as_secs() > domain::lease::limits::KEY_WINDOW_MS.unsigned_abs() / 1_000
);
/// `lease.ended_retention`: of leases that expired or were unlocked.
pub const ENDED_RETENTION: RangeInclusive<Duration> =
    Duration::from_secs(15 * 60)..=Duration::from_secs(30 * 24 * 3600);
/// `history.retention`: how long events of locks are kept.
pub const HISTORY_RETENTION: RangeInclusive<Duration> =
    Duration::from_secs(3600)..=Duration::from_secs(366 * 24 * 3600);
/// `history.rollup_retention`: how long the sums for charts are kept.
pub const HISTORY_ROLLUP_RETENTION: RangeInclusive<Duration> =
    Duration::from_secs(3600)..=Duration::from_secs(366 * 24 * 3600);
/// `notify.resend_interval`: an alert lapses in an Alertmanager after four intervals without a resend.
pub const NOTIFY_RESEND: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(180);
/// `notify.max_retry_time`: how long a message is retried.
pub const NOTIFY_MAX_RETRY_TIME: RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_secs(7 * 24 * 3600);
/// `notify.growth_factor`: a group of alerts that has grown by it is notified again.
pub const NOTIFY_GROWTH_FACTOR: RangeInclusive<u32> = 2..=1_000;
/// `notify.group_interval`: time between two messages about one group; 0: no pause.
pub const NOTIFY_GROUP_INTERVAL: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(24 * 3600);
/// Elements of one list: backends, patterns, tables, names.
pub const LIST_MAX: usize = 1000;
/// Stores of `lease.store`.
pub const SHARDS_MAX: usize = 1 << domain::lease::SHARD_BITS_MAX;
/// Size of the configuration file, in bytes.
pub const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Size of the file of one secret, in bytes.
pub const SECRET_BYTES_MAX: u64 = 64 * 1024;
/// Longest channel name of Postgres, in bytes.
pub const CHANNEL_BYTES_MAX: usize = 63;
