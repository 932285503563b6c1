//! Every limit of the domain, with its unit, in one place. Adapters and HTTP reject larger
//! values.

/// Longest resource name that an adapter stores, in bytes; a longer one is reported as partial
/// coverage.
pub const RESOURCE_BYTES_MAX: usize = 64 * 1024;
/// Longest owner shown, in characters; the rest is in the raw record.
pub const OWNER_CHARS_MAX: usize = 1024;
/// Rows per page: default and maximum.
pub const PAGE_ROWS_DEFAULT: u32 = 100;
pub const PAGE_ROWS_MAX: u32 = 1000;
/// Names, owners and identities of these rows, in bytes: a page of long ones has fewer rows, at
/// least one.
pub const PAGE_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Longest prefix and search text of a query, in bytes.
pub const QUERY_BYTES_MAX: usize = 4096;
/// Children of one node of the name tree in one response.
pub const PREFIX_CHILDREN_MAX: usize = 1000;
/// Names of these children, in bytes: more than one of the longest names.
pub const PREFIX_CHILDREN_BYTES_MAX: usize = 1024 * 1024;
/// Waiters and owners stored per lock; the counts are exact, the lists are truncated.
pub const WAITERS_KEPT_MAX: usize = 1000;
/// Waiters per lock, and blockers per waiter, that scans identify for the graph of waits. As
/// written in the statements of the lease stores.
pub const WAITERS_IDENTIFIED_MAX: usize = 32;
/// Low-water marks stored per lock, newest last.
pub const LOW_MARKS_MAX: usize = 8;

const _: () = assert!(PAGE_ROWS_DEFAULT <= PAGE_ROWS_MAX);
const _: () = assert!(RESOURCE_BYTES_MAX < PAGE_BYTES_MAX);
const _: () = assert!(WAITERS_IDENTIFIED_MAX <= WAITERS_KEPT_MAX);
const _: () = assert!(QUERY_BYTES_MAX <= RESOURCE_BYTES_MAX);
const _: () = assert!(RESOURCE_BYTES_MAX < PREFIX_CHILDREN_BYTES_MAX);
