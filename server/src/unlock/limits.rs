//! Limits of forced unlocks, with their units.

use std::time::Duration;

/// An intent may be confirmed for this long.
pub const INTENT_MAX: Duration = Duration::from_secs(120);
/// Wrong names until an intent is given up.
pub const MISMATCHES_MAX: u32 = 3;
/// Items of one bulk request.
pub const BULK_MAX: usize = 50;
/// A fresh reading of the lock, before the intent and after the act.
pub const LOOK_MAX: Duration = Duration::from_secs(5);
/// Before a second reading, when the first met a holder that was just going.
pub const LOOK_AGAIN: Duration = Duration::from_millis(30);
/// An act without an answer after this has an unknown outcome.
pub const ACT_MAX: Duration = Duration::from_secs(60);
/// What a clock of another server may be off, and a commit take, before an act counts as cut off.
pub const DEADLINE_SLACK: Duration = Duration::from_secs(5);
/// How often open unlocks are looked at.
pub const TEND_EVERY: Duration = Duration::from_millis(500);
/// After an unknown outcome the lock is read again after this, and then every…
pub const REREAD_FIRST: Duration = Duration::from_secs(2);
pub const REREAD_EVERY: Duration = Duration::from_secs(5);
/// Found as it was for this long, a lock has not been touched by an act whose answer was lost: it would have come through.
pub const STILL_HELD_FOR: Duration = Duration::from_secs(10);
/// So much before the newest known release others may be in the store that were not there yet: clocks of servers differ, and
/// a commit takes its time.
pub const RELEASES_OVERLAP: Duration = Duration::from_secs(30);
/// Unlocks that one round of tending takes on.
pub const TENDED_MAX: i64 = 100;
/// Unlocks that one query reads for charts.
pub const ACTED_PAGE: u32 = 500;

const _: () = assert!(LOOK_MAX.as_secs() < INTENT_MAX.as_secs());
const _: () = assert!(REREAD_EVERY.as_secs() < STILL_HELD_FOR.as_secs());
