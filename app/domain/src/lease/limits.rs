//! Every limit of the lease service, with its unit, in one place; also in docs/lease-limits.md.

/// Longest resource and owner, in bytes of UTF-8.
pub const RESOURCE_BYTES_MAX: usize = 512;
pub const OWNER_BYTES_MAX: usize = 256;
/// TTL in seconds; the maximum is configurable up to a lease's longest lifetime.
pub const TTL_SECONDS_MIN: i64 = 1;
pub const TTL_SECONDS_MAX: i64 = 3_600;
/// Longest wait of one acquire, in seconds.
pub const WAIT_SECONDS_MAX: i64 = 60;
/// Waiters of one resource. Further acquires are answered at once, as without a wait.
pub const QUEUE_MAX: usize = 1_000;
/// Metadata as JSON, in bytes.
pub const METADATA_BYTES_MAX: usize = 4_096;
/// Body of one request, in bytes.
pub const BODY_BYTES_MAX: usize = 64 * 1024;
/// Operations of one batch call, and its body in bytes.
pub const BATCH_OPERATIONS_MAX: usize = 512;
pub const BATCH_BODY_BYTES_MAX: usize = 256 * 1024;
/// Total life of one lease by renewal, in milliseconds.
pub const LIFETIME_MS_MAX: i64 = 24 * 3_600 * 1_000;
/// How long an idempotency key is stored, in milliseconds.
pub const KEY_WINDOW_MS: i64 = 10 * 60 * 1_000;
pub const KEY_CHARS_MAX: usize = 128;
/// Rows per page.
pub const LIST_ROWS_DEFAULT: u32 = 100;
pub const LIST_ROWS_MAX: u32 = 1_000;
/// Names of reporters (`source` of a rejection) and operator texts (`by`, `reason`), in bytes.
pub const SOURCE_BYTES_MAX: usize = 256;
pub const REASON_BYTES_MAX: usize = 2_048;
/// Largest integer that JavaScript represents exactly; tokens never exceed it.
pub const TOKEN_MAX: u64 = (1 << 53) - 1;
/// Step by which an epoch raises every token, so that a token issued by a lost part of the
/// store is never issued again.
pub const EPOCH_STEP: u64 = 1 << 32;

const _: () = assert!(TTL_SECONDS_MAX * 1_000 <= LIFETIME_MS_MAX);
const _: () = assert!(RESOURCE_BYTES_MAX + OWNER_BYTES_MAX + METADATA_BYTES_MAX < BODY_BYTES_MAX);
const _: () = assert!(LIST_ROWS_DEFAULT <= LIST_ROWS_MAX);
const _: () = assert!(WAIT_SECONDS_MAX * 1_000 < KEY_WINDOW_MS);
