//! Every limit of this adapter, with its unit, in one place.

use std::time::Duration;

/// Keys per SCAN step. More would occupy the server's only thread for longer than 1 ms at a
/// time.
pub(super) const SCAN_COUNT: u32 = 1000;
/// Pages read concurrently: enough that the server never waits for us.
pub(super) const PAGES_IN_FLIGHT: usize = 3;
/// Longest value that is read as a lock, and longest string kept of any reply, in bytes.
pub(super) const VALUE_BYTES_MAX: usize = 64 * 1024;
/// First bytes of a value that are read with its page; longer values are read individually.
pub(super) const VALUE_BYTES_FIRST: usize = 4 * 1024;
/// Most fields of a hash that is read as a lock, and most memory that the server may use for
/// it, in bytes. A read lock with as many readers takes about half of it.
pub(super) const HASH_FIELDS_MAX: i64 = 1000;
pub(super) const HASH_BYTES_MAX: u64 = 256 * 1024;
/// Size of long values and hashes read with one request, in bytes.
pub(super) const LONG_READ_BYTES_MAX: u64 = 1024 * 1024;
/// All strings of one reply, in bytes; the rest arrives as nil.
pub(super) const REPLY_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Elements of one reply, and bytes of a line in it: more close the connection.
pub(super) const REPLY_ELEMENTS_MAX: u64 = 100_000;
pub(super) const REPLY_LINE_BYTES_MAX: usize = 64 * 1024;
/// Names read with one request in `refresh`.
pub(super) const NAMES_PER_READ: usize = 500;

/// Poll intervals between checks of the watch's connection, and of the notification setting: 10
/// s and one minute with the default interval of 2 s.
pub(super) const PING_POLLS: u32 = 5;
pub(super) const RECHECK_POLLS: u32 = 30;
/// Shortest timeout for one of several nodes.
pub(super) const NODE_TIMEOUT_MIN: Duration = Duration::from_millis(200);
/// Time between two readings of a Redlock without a quorum: an acquire or a release in progress
/// changes it within this time.
pub(super) const CONFIRM_AFTER: Duration = Duration::from_millis(250);
/// Readings of such a lock until it counts as in motion.
pub(super) const CONFIRMS_MAX: u32 = 4;
/// Redirections of one command, and rounds over slots that move during a scan.
pub(super) const REDIRECTS_MAX: u32 = 5;
pub(super) const SLOT_ROUNDS_MAX: u32 = 3;
/// Most keys of one slot that are listed while it moves.
pub(super) const SLOT_KEYS_MAX: u32 = 10_000;

/// Backoff of the watch: first and longest wait.
pub(super) const BACKOFF_FIRST: Duration = Duration::from_millis(100);
pub(super) const BACKOFF_MAX: Duration = Duration::from_secs(10);

const _: () = assert!(PING_POLLS < RECHECK_POLLS);
const _: () = assert!(VALUE_BYTES_MAX <= domain::limits::RESOURCE_BYTES_MAX);
const _: () = assert!(VALUE_BYTES_FIRST < VALUE_BYTES_MAX && VALUE_BYTES_MAX as u64 <= LONG_READ_BYTES_MAX);
const _: () = assert!(HASH_BYTES_MAX <= LONG_READ_BYTES_MAX && LONG_READ_BYTES_MAX < REPLY_BYTES_MAX);
