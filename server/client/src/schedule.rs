//! Timing rules: pure functions of time and a random number.

use std::time::Duration;

use crate::clock::Moment;

/// A renewal is sent after one third of the time left.
const RENEW_PART: u32 = 3;
/// Minimum interval between two renewals of one lease.
const RENEW_GAP_MIN: Duration = Duration::from_millis(100);
/// Maximum timeout of one request, apart from a wait in the queue.
pub(crate) const ANSWER_MAX: Duration = Duration::from_secs(5);
const ANSWER_MIN: Duration = Duration::from_millis(200);
const BACKOFF_FIRST: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(2);

/// Until when a lease counts as held: counted from *before* the last successful request was sent. A remaining time
/// above the TTL is limited to the TTL.
pub(crate) fn deadline(sent: Moment, remaining_ms: i64, ttl: Duration) -> Moment {
    let remaining = Duration::from_millis(u64::try_from(remaining_ms).unwrap_or_default());
    sent.plus(remaining.min(ttl))
}

/// When to renew: after a third of the time left, plus or minus a tenth of that. `chance` is 0 to 1.
pub(crate) fn renew_at(sent: Moment, deadline: Moment, chance: f64) -> Moment {
    let third = deadline.since(sent) / RENEW_PART;
    sent.plus(third.mul_f64(0.9 + 0.2 * unit(chance)).max(RENEW_GAP_MIN))
}

/// Pause after the `failures`-th failure in a row (from 1): doubles, with jitter between half and all of it.
/// `chance` is 0 to 1.
pub(crate) fn backoff(failures: u32, chance: f64) -> Duration {
    let doubled = BACKOFF_FIRST.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1)));
    doubled.min(BACKOFF_MAX).mul_f64(0.5 + 0.5 * unit(chance))
}

/// Timeout of one request: half of the time left, so that another attempt fits; at most 5 s, and never past the end.
pub(crate) fn answer_within(left: Duration) -> Duration {
    (left / 2).clamp(ANSWER_MIN, ANSWER_MAX).min(left)
}

/// Whether a grant is too old to be returned: its request waited in the queue, and the deadline counts from before
/// that. It is renewed first.
pub(crate) fn is_stale_grant(sent: Moment, received: Moment, remaining: Duration) -> bool {
    received.since(sent) > remaining / RENEW_PART
}

fn unit(chance: f64) -> f64 {
    if chance.is_finite() {
        chance.clamp(0.0, 1.0)
    } else {
        0.5
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(30);

    fn at(ms: u64) -> Moment {
        Moment::from_millis(ms)
    }

    #[test]
    fn the_deadline_counts_from_before_the_request_was_sent() {
        // Sent at 10 s with 29.9 s left: 39.9 s, whenever the response arrived. Implausible values are limited.
        assert_eq!(deadline(at(10_000), 29_900, TTL), at(39_900));
        assert_eq!(deadline(at(10_000), i64::MAX, TTL), at(40_000));
        assert_eq!(deadline(at(10_000), -5, TTL), at(10_000));
        assert_eq!(deadline(at(10_000), i64::MIN, TTL), at(10_000));
    }

    #[test]
    fn renewals_come_at_a_third_of_the_ttl_with_jitter() {
        // 30 s: between 9 and 11 s with any jitter; a nearly expired lease is not renewed in a tight loop.
        let sent = at(1_000);
        assert_eq!(renew_at(sent, sent.plus(TTL), 0.0), at(10_000));
        assert_eq!(renew_at(sent, sent.plus(TTL), 0.5), at(11_000));
        assert_eq!(renew_at(sent, sent.plus(TTL), 1.0), at(12_000));
        for invalid in [f64::NAN, f64::INFINITY, -3.0, 7.0] {
            let at_odd = renew_at(sent, sent.plus(TTL), invalid);
            assert!((at(10_000)..=at(12_000)).contains(&at_odd), "{invalid}");
        }
        assert_eq!(
            renew_at(sent, sent.plus(Duration::from_millis(3)), 0.5),
            at(1_100)
        );
    }

    #[test]
    fn pauses_double_up_to_two_seconds_and_differ_between_clients() {
        // Jitter spreads the pauses over the upper half; no number of failures overflows.
        let longest: Vec<u64> = (1..8)
            .map(|failures| u64::try_from(backoff(failures, 1.0).as_millis()).unwrap())
            .collect();
        assert_eq!(longest, [100, 200, 400, 800, 1_600, 2_000, 2_000]);
        assert_eq!(backoff(1, 0.0), Duration::from_millis(50));
        assert_eq!(backoff(u32::MAX, 0.0), Duration::from_secs(1));
        assert_eq!(backoff(0, 1.0), Duration::from_millis(100));
    }

    #[test]
    fn no_request_may_last_past_the_deadline() {
        // Half of the time left, between 200 ms and 5 s, and never more than all of it.
        for (left_ms, within_ms) in [
            (60_000, 5_000),
            (2_000, 1_000),
            (500, 250),
            (300, 200),
            (90, 90),
            (0, 0),
        ] {
            let within = answer_within(Duration::from_millis(left_ms));
            assert_eq!(within, Duration::from_millis(within_ms), "{left_ms}");
        }
    }

    #[test]
    fn two_tries_fit_between_the_renewal_and_the_deadline() {
        // For every valid TTL: the latest renewal with its longest timeout leaves time for another.
        for seconds in [1, 2, 5, 30, 300, 3_600] {
            let ttl = Duration::from_secs(seconds);
            let left = ttl - renew_at(at(0), at(0).plus(ttl), 1.0).since(at(0));
            let after_one = left - answer_within(left) - backoff(1, 1.0);
            assert!(
                after_one >= Duration::from_millis(200),
                "{seconds} s: {after_one:?}"
            );
        }
    }

    #[test]
    fn a_queued_grant_is_renewed_before_use() {
        // Granted after a wait of 45 s with 30 s to live: by the deadline rule it is already over.
        assert!(is_stale_grant(at(0), at(45_000), TTL));
        assert!(is_stale_grant(at(0), at(10_001), TTL));
        assert!(!is_stale_grant(at(0), at(10_000), TTL));
    }
}
