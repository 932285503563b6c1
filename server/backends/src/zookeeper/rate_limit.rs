//! Limits the requests of one backend to a number per second, so that a scan does not crowd out
//! the ensemble's own clients.

use std::time::Duration;

use parking_lot::Mutex;
use runtime::clock::Clock;

/// The rate is kept over windows of this length, in milliseconds.
const WINDOW_MS: i64 = 10;

pub(super) struct RateLimit {
    per_window: u32,
    used: Mutex<Window>,
}

#[derive(Default)]
struct Window {
    number: i64,
    requests: u32,
}

impl RateLimit {
    pub(super) fn new(per_second: u32) -> Self {
        Self {
            per_window: (per_second / 100).max(1),
            used: Mutex::default(),
        }
    }

    /// Returns when one more request may be sent.
    pub(super) async fn wait_for_slot(&self, clock: &Clock) {
        while let Some(wait_ms) = self.take(clock.tick().0) {
            tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        }
    }

    /// Takes one request of the current window; milliseconds to wait if none is left.
    fn take(&self, now_ms: i64) -> Option<u64> {
        let mut window = self.used.lock();
        let number = now_ms.div_euclid(WINDOW_MS);
        if window.number != number {
            *window = Window { number, requests: 0 };
        }
        if window.requests < self.per_window {
            window.requests += 1;
            return None;
        }
        let next_ms = (number + 1) * WINDOW_MS;
        Some(u64::try_from(next_ms - now_ms).unwrap_or(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_grants_its_share_and_no_more() {
        // 300 per second are 3 in each 10 ms.
        let limit = RateLimit::new(300);
        assert_eq!(
            [limit.take(1_000), limit.take(1_004), limit.take(1_009)],
            [None; 3]
        );
        assert_eq!(limit.take(1_004), Some(6));
        assert_eq!(limit.take(1_010), None);
    }
}
