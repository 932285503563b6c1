//! Every limit of notifications, with its unit, in one place.

use std::time::Duration;

/// One request, from the connection to the end of its answer.
pub const SEND_MAX: Duration = Duration::from_secs(5);
/// Of an answer so much is read, in bytes.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Of an answer so much is kept and shown, in characters.
pub const ANSWER_CHARS_SHOWN: usize = 2_000;
/// In the outbox's list, in characters.
pub const FAULT_CHARS_MAX: usize = 300;
/// How long a claim holds: longer than anything that is done under it.
pub const CLAIM_FOR: Duration = Duration::from_secs(15);
/// Receivers that are served at the same time: the store has other things to do, too.
pub const TURNS_MAX: usize = 8;
/// Messages that are claimed for one receiver at a time.
pub const CLAIMED_MAX: i64 = 4;
/// Looking for what is due, when nobody says that there is something.
pub const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The same where nothing is due before, and this server alone fills the outbox.
pub const LOOK_ANYWAY: Duration = Duration::from_secs(10);
/// Before the second attempt; twice as long before each that follows.
pub const BACKOFF_FIRST: Duration = Duration::from_secs(1);
pub const BACKOFF_MAX: Duration = Duration::from_secs(60);
/// Whatever a receiver asks for in `Retry-After`.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(3600);
/// The same of the same group is not said again within this.
pub const WINDOW: Duration = Duration::from_secs(300);
/// An Alertmanager is told after this what it was told at once, and from then on at its interval.
pub const RESEND_FIRST: Duration = Duration::from_secs(1);
/// What an Alertmanager did not take is said again after this, or at its interval if that is shorter.
pub const RESEND_MISSED: Duration = Duration::from_secs(5);
/// A firing alert that nobody renews lapses after so many intervals.
pub const RESENDS_UNTIL_LAPSE: u32 = 4;
/// How often the end of an alert is said again.
pub const RESOLVED_SENDS: i64 = 4;
/// Alerts in one request to an Alertmanager.
pub const STANDING_MAX: i64 = 500;
/// What arrived is kept this long.
pub const DELIVERED_KEPT: Duration = Duration::from_secs(7 * 24 * 3600);
pub const DEAD_KEPT: Duration = Duration::from_secs(30 * 24 * 3600);
pub const TEND_EVERY: Duration = Duration::from_secs(60);
/// Rows that are removed at a time.
pub const PRUNED_MAX: i64 = 500;

pub const RECEIVERS_MAX: usize = 50;
/// Of one receiver.
pub const URLS_MAX: usize = 8;
pub const URL_BYTES_MAX: usize = 2_048;
pub const NAME_BYTES_MAX: usize = 63;
pub const SECRET_BYTES_MIN: usize = 16;
pub const SECRET_BYTES_MAX: usize = 512;
/// Finding out, when a receiver is saved, where its name leads.
pub const RESOLVE_MAX: Duration = Duration::from_secs(2);
/// Rows of one page of the outbox.
pub const LISTED_MAX: i64 = 200;

const _: () = assert!(CLAIM_FOR.as_secs() > 2 * SEND_MAX.as_secs());
const _: () = assert!(WINDOW.as_secs() > CLAIM_FOR.as_secs());
