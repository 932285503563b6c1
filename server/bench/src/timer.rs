//! High-resolution timer for measurements.

use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy)]
pub(super) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(
        clippy::disallowed_methods,
        reason = "a bench measures finer than the server's clock tells"
    )]
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    pub(super) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }

    pub(super) fn ms(self) -> f64 {
        self.elapsed().as_secs_f64() * 1_000.0
    }
}

/// Nearest-rank percentile of sorted values; 0 if there are none.
pub(super) fn percentile(sorted: &[u32], percent: usize) -> u32 {
    let place = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(place).copied().unwrap_or(0)
}

/// Microseconds, which fit any duration measured here.
pub(super) fn micros(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_measured_values() {
        // Of 1 to 200 by hand, of one value, of none.
        let values: Vec<u32> = (1..=200).collect();
        assert_eq!(percentile(&values, 50), 100);
        assert_eq!(percentile(&values, 99), 198);
        assert_eq!(percentile(&values, 100), 200);
        assert_eq!((percentile(&[7], 99), percentile(&[], 99)), (7, 0));
    }
}
