//! The only reader of clocks in this crate: a clock that cannot be set and that continues during suspend.

use std::time::Duration;

/// A moment on this machine's clock; comparable between its processes, meaningless elsewhere and after a reboot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(Duration);

impl Moment {
    pub const fn from_millis(ms: u64) -> Self {
        Self(Duration::from_millis(ms))
    }

    /// Rounded down.
    pub fn as_millis(self) -> u64 {
        u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX)
    }

    #[must_use]
    pub fn plus(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span))
    }

    /// From `earlier` to this one; zero if it is not earlier.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

#[cfg(target_os = "linux")]
pub fn now() -> Moment {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Moment(Duration::new(
        seconds,
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    ))
}

/// Counts from the first call in this process.
#[cfg(not(target_os = "linux"))]
#[expect(clippy::disallowed_methods, reason = "this is the one reader of clocks here")]
pub fn now() -> Moment {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    Moment(START.get_or_init(std::time::Instant::now).elapsed())
}

/// Timers do not count suspend, so they are split into slices of this length, and the clock is read after each.
const SLICE: Duration = Duration::from_secs(1);

/// Returns at that moment, or up to a second later after a suspend.
pub async fn sleep_until(moment: Moment) {
    loop {
        let left = moment.since(now());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(SLICE)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_never_wrap() {
        // Never negative, and a saturated span stays saturated.
        let (a, b) = (Moment::from_millis(1_000), Moment::from_millis(1_500));
        assert_eq!(
            (b.since(a), a.since(b)),
            (Duration::from_millis(500), Duration::ZERO)
        );
        assert!(a.plus(Duration::MAX) > b);
        assert_eq!(a.plus(Duration::MAX).as_millis(), u64::MAX);
    }

    #[test]
    fn the_clock_does_not_go_back() {
        // A thousand readings in order.
        let mut last = now();
        for _ in 0..1_000 {
            let next = now();
            assert!(next >= last);
            last = next;
        }
    }
}
