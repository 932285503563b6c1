//! Restart delay of a panicked task. Pure: time is an argument.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(30);
/// A task that ran this long before a panic is not in a panic loop.
const SOUND: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(super) struct RestartBackoff {
    in_a_row: u32,
}

impl RestartBackoff {
    /// Doubles with each panic in a row; starts again after a long run.
    pub(super) fn next_delay(&mut self, run_duration: Duration) -> Duration {
        if run_duration >= SOUND {
            self.in_a_row = 0;
        }
        let delay = FIRST.saturating_mul(1 << self.in_a_row.min(16));
        self.in_a_row = self.in_a_row.saturating_add(1);
        delay.min(LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_to_30_s_and_resets_after_a_long_run() {
        // Detects a task that is given up, a tight restart loop, and a long delay for an unrelated panic.
        let mut backoff = RestartBackoff::default();
        let quick: Vec<u128> = (0..8)
            .map(|_| backoff.next_delay(Duration::ZERO).as_millis())
            .collect();
        assert_eq!(quick, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
        for _ in 0..100 {
            backoff.next_delay(Duration::ZERO);
        }
        assert_eq!(backoff.next_delay(Duration::ZERO), LONGEST);
        assert_eq!(backoff.next_delay(SOUND), FIRST);
        assert_eq!(backoff.next_delay(Duration::ZERO), FIRST * 2);
    }
}
