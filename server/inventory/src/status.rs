//! Status of a backend from ages and failures. Pure: the time is an argument.

use domain::backend::BackendStatus;
use domain::observation::Coverage;
use domain::tick::Tick;

/// A failing backend is down when it has not been observed for this many poll intervals, and at
/// least this long.
const DOWN_AFTER_PERIODS: i64 = 15;
const DOWN_AFTER_MS: i64 = 30_000;

/// Summary of the scans so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Passes {
    pub(super) count: u64,
    pub(super) last_end: Option<Tick>,
    pub(super) last_duration_ms: i64,
    pub(super) failing: bool,
    /// The server refuses access, or the configuration is invalid: waiting will not help.
    pub(super) refused: bool,
}

/// The poll interval that ages are compared with: a scan that takes longer than the configured
/// one sets it.
pub(super) fn period_ms(poll_interval_ms: i64, passes: &Passes) -> i64 {
    poll_interval_ms.max(passes.last_duration_ms)
}

/// An observation older than this is stale, in milliseconds.
pub(super) fn stale_after_ms(poll_interval_ms: i64, passes: &Passes) -> i64 {
    2 * period_ms(poll_interval_ms, passes)
}

/// Since when a backend has not been observed at `now`, if it is not.
pub(super) fn unobserved_since(poll_interval_ms: i64, passes: &Passes, now: Tick) -> Option<Tick> {
    let stale_at = passes.last_end?.plus(stale_after_ms(poll_interval_ms, passes));
    (stale_at < now).then_some(stale_at)
}

pub(super) fn status(
    poll_interval_ms: i64,
    passes: &Passes,
    coverage: &Coverage,
    now: Tick,
) -> BackendStatus {
    let Some(last_end) = passes.last_end else {
        return if passes.failing {
            BackendStatus::Down
        } else {
            BackendStatus::Starting
        };
    };
    let age_ms = now.since(last_end);
    let old = age_ms > stale_after_ms(poll_interval_ms, passes);
    let is_overdue = age_ms > (DOWN_AFTER_PERIODS * period_ms(poll_interval_ms, passes)).max(DOWN_AFTER_MS);
    match (old, passes.failing) {
        (true, true) if is_overdue || passes.refused => BackendStatus::Down,
        (true, _) => BackendStatus::Stale,
        (false, _) if coverage.is_complete() => BackendStatus::Live,
        (false, _) => BackendStatus::Partial,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silent_backend_is_stale_after_two_polls_and_down_later() {
        // One scan at tick 0, polled every 2 s, then failures.
        let passes = Passes {
            count: 1,
            last_end: Some(Tick(0)),
            failing: true,
            ..Passes::default()
        };
        let at = |ms| status(2_000, &passes, &Coverage::Complete, Tick(ms));
        assert_eq!(at(4_000), BackendStatus::Live);
        assert_eq!(at(4_001), BackendStatus::Stale);
        assert_eq!(at(30_001), BackendStatus::Down);
        let since = |ms| unobserved_since(2_000, &passes, Tick(ms));
        assert_eq!((since(4_000), since(4_001)), (None, Some(Tick(4_000))));
    }

    #[test]
    fn a_backend_never_observed_is_starting_until_it_fails() {
        let never = Passes::default();
        assert_eq!(
            status(2_000, &never, &Coverage::Complete, Tick(9)),
            BackendStatus::Starting
        );
        let failing = Passes {
            failing: true,
            ..Passes::default()
        };
        assert_eq!(
            status(2_000, &failing, &Coverage::Complete, Tick(9)),
            BackendStatus::Down
        );
    }
}
