//! Limits of history, with their units.

use std::time::Duration;

use crate::leader_election::LEADER_TTL_S;

/// Interval at which changes are written; a killed process loses at most this much.
pub const WRITE_EVERY: Duration = Duration::from_millis(500);
/// Interval at which the writer records that it is alive.
pub const ALIVE_EVERY: Duration = Duration::from_secs(5);
/// A writer silent for longer leaves a gap.
pub const GAP_MIN: Duration = Duration::from_secs(15);
/// How long a replica that is not the leader keeps its changes, for a takeover.
pub const STANDBY: Duration = Duration::from_secs(60);
/// Write interval of continuing renewals and growing sums: a killed process loses at most this much of them.
pub const SUMS_EVERY: Duration = Duration::from_secs(5);
/// Locks whose runs are open at the same time.
pub const RUNS_MAX: usize = 200_000;
/// Events per page.
pub const PAGE_MAX: usize = 10_000;
/// Events of the local lease service that wait to be written.
pub const OWN_MAX: usize = 10_000;
/// Milliseconds between two samples after which the time counts as unobserved.
pub const SAMPLE_MS_MAX: i64 = 5_000;
/// Maximum number of events, which is estimated: some 4 GB in SQLite, 180 MB per million with indexes.
pub const EVENTS_MAX: i64 = 20_000_000;
/// Longest name whose events are stored, in bytes. An index entry of Postgres has at most 2,704, and has backend and source
/// too; a name in SQLite is stored up to three times.
pub const NAME_BYTES_MAX: usize = 2_048;
/// Milliseconds between two samples of a simulated past: the resolution of roll-ups.
pub const SIMULATED_SAMPLE_MS: i64 = 60_000;
/// Milliseconds of a simulated past that are written in one transaction.
pub const SIMULATED_WRITE_MS: i64 = 3_600_000;
/// Rows deleted per step, so that no write waits long.
pub const PRUNED_AT_ONCE: i64 = 5_000;
/// Cells of each step of roll-ups deleted at once: an hour at the step of a minute, 60 days at the step of a day.
pub const PRUNED_CELLS: i64 = 60;
/// Interval of the retention check.
pub const PRUNE_EVERY: Duration = Duration::from_secs(30);

// Events of the lease service are not checked.
const _: () = assert!(NAME_BYTES_MAX >= domain::lease::limits::RESOURCE_BYTES_MAX);
const _: () = assert!(GAP_MIN.as_secs() > ALIVE_EVERY.as_secs());
// A new leader takes over before the other replicas drop their buffered changes.
const _: () = assert!(STANDBY.as_secs() > 2 * LEADER_TTL_S.unsigned_abs() + ALIVE_EVERY.as_secs());

/// Entries of activity summed up without a pause: about half a millisecond.
pub(super) const ENTRIES_AT_ONCE: usize = 1_024;
