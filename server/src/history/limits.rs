//! Limits of history, with their units.

use std::time::Duration;

/// What was seen is written down this often: so much of it is lost when the process is killed.
pub const WRITE_EVERY: Duration = Duration::from_millis(500);
/// That nothing happened is noted this often.
pub const ALIVE_EVERY: Duration = Duration::from_secs(5);
/// A writer that was not heard of for longer leaves a gap.
pub const GAP_MIN: Duration = Duration::from_secs(15);
/// A server whose turn it is not remembers what it saw for this long, for when it takes over.
pub const STANDBY: Duration = Duration::from_secs(60);
/// How long a turn to write, or to evaluate alerts, lasts unless it is renewed, in seconds.
pub const TURN_S: i64 = 8;
/// After the server with a turn was killed or paused, another one has it within so long, in seconds.
pub const TAKEOVER_S_MAX: i64 = 10;
/// Renewals that go on, and sums that grow, are written this often: so much of them is lost when the process is killed.
pub const SUMS_EVERY: Duration = Duration::from_secs(5);
/// Locks whose renewals are folded at one time.
pub const RUNS_MAX: usize = 200_000;
/// Events of one page.
pub const PAGE_MAX: usize = 10_000;
/// Refused writes and losses of leases that wait to be written.
pub const OWN_MAX: usize = 10_000;
/// Longer than this between two looks, and nobody has watched meanwhile, in milliseconds.
pub const LOOK_MS_MAX: i64 = 5_000;
/// Events kept at most, whatever their age: some 4 GB in SQLite, 187 MB a million with their indexes.
pub const EVENTS_MAX: i64 = 20_000_000;
/// Rows that one step of pruning removes, so that no write waits long for it.
pub const PRUNED_AT_ONCE: i64 = 5_000;
/// Minutes of sums that one step of pruning removes.
pub const PRUNED_MINUTES: i64 = 60;
/// Between two looks for what is too old.
pub const PRUNE_EVERY: Duration = Duration::from_secs(30);

const _: () = assert!(GAP_MIN.as_secs() > ALIVE_EVERY.as_secs());
// The others ask for it once a second, and once more where an answer is late.
const _: () = assert!(TURN_S + 2 <= TAKEOVER_S_MAX);
// A turn that ran out has passed on before the other servers forget what they saw.
const _: () = assert!(STANDBY.as_secs() > 2 * TURN_S.unsigned_abs() + ALIVE_EVERY.as_secs());
