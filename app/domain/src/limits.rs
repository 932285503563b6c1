//! Every limit of the domain, with its unit, in one place. Adapters and HTTP refuse what is larger.

/// Longest resource name that an adapter keeps, in bytes; a longer one is reported as partial coverage.
pub const RESOURCE_BYTES_MAX: usize = 64 * 1024;
/// Longest owner shown, in characters; the rest is in the raw record.
pub const OWNER_CHARS_MAX: usize = 1024;
/// Rows of one answer: default and most.
pub const PAGE_ROWS_DEFAULT: u32 = 100;
pub const PAGE_ROWS_MAX: u32 = 1000;
/// Longest prefix and search text of a query, in bytes.
pub const QUERY_BYTES_MAX: usize = 4096;
/// Children of one node of the segment tree in one answer.
pub const PREFIX_CHILDREN_MAX: usize = 1000;
/// Waiters and owners kept per lock; the counts are exact, the lists are cut.
pub const WAITERS_KEPT_MAX: usize = 1000;
/// Low-water marks kept per lock, newest last.
pub const LOW_MARKS_MAX: usize = 8;

const _: () = assert!(PAGE_ROWS_DEFAULT <= PAGE_ROWS_MAX);
const _: () = assert!(QUERY_BYTES_MAX <= RESOURCE_BYTES_MAX);
