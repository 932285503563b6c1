//! Limits of notifications, with their units.

use std::time::Duration;

/// Timeout of one request, from the connection to the end of the response.
pub const SEND_MAX: Duration = Duration::from_secs(5);
/// Bytes read of a response.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Characters of a response that are stored and shown.
pub const ANSWER_CHARS_SHOWN: usize = 2_000;
/// Characters of an error in the outbox list.
pub const FAULT_CHARS_MAX: usize = 300;
/// Duration of a claim: longer than any work done under it.
pub const CLAIM_FOR: Duration = Duration::from_secs(15);
/// Receivers served concurrently, which limits the load on the store.
pub const RECEIVERS_SERVED_MAX: usize = 8;
/// Messages claimed per receiver.
pub const CLAIMED_MAX: i64 = 4;
/// Poll interval for due messages.
pub const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The same if nothing is due and this server is the only writer of the outbox.
pub const IDLE_POLL_INTERVAL: Duration = Duration::from_secs(10);
/// Delay before the second attempt; doubles for each further one.
pub const BACKOFF_FIRST: Duration = Duration::from_secs(1);
pub const BACKOFF_MAX: Duration = Duration::from_secs(60);
/// Upper limit for `Retry-After`.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(3600);
/// The same content for the same group is not sent again within this time.
pub const WINDOW: Duration = Duration::from_secs(300);
/// A group of at least this many alerts that has grown does not wait for its interval.
pub const GROWN_SIZE_MIN: i64 = 10;
/// Delay of the first resend to an Alertmanager; later ones follow its interval.
pub const RESEND_FIRST: Duration = Duration::from_secs(1);
/// Delay of the resend after a failure, or the interval if that is shorter.
pub const RESEND_MISSED: Duration = Duration::from_secs(5);
/// A firing alert lapses after this many intervals without a resend.
pub const RESENDS_UNTIL_LAPSE: u32 = 4;
/// How often the resolution of an alert is resent.
pub const RESOLVED_SENDS: i64 = 4;
/// Alerts in one request to an Alertmanager.
pub const ALERTS_PER_REQUEST_MAX: i64 = 500;
/// Retention of delivered messages. The last one of a group stays at least until its alerts have ended.
pub const DELIVERED_RETENTION: Duration = Duration::from_secs(7 * 24 * 3600);
pub const DEAD_LETTER_RETENTION: Duration = Duration::from_secs(30 * 24 * 3600);
/// Interval between deletions of data past its retention.
pub const PRUNE_EVERY: Duration = Duration::from_secs(60);
/// Rows of one batch of such a deletion.
pub const PRUNED_MAX: i64 = 500;

pub const RECEIVERS_MAX: usize = 50;
/// Per receiver.
pub const URLS_MAX: usize = 8;
pub const URL_BYTES_MAX: usize = 2_048;
pub const NAME_BYTES_MAX: usize = 63;
pub const SECRET_BYTES_MIN: usize = 16;
pub const SECRET_BYTES_MAX: usize = 512;
/// Timeout of the DNS lookup when a receiver is saved.
pub const RESOLVE_MAX: Duration = Duration::from_secs(2);
/// Rows per page of the outbox list.
pub const LISTED_MAX: i64 = 200;

const _: () = assert!(CLAIM_FOR.as_secs() > 2 * SEND_MAX.as_secs());
const _: () = assert!(WINDOW.as_secs() > CLAIM_FOR.as_secs());
