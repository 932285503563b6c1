//! Random choices and jitter for the demo. Not reproducible, on purpose.

use std::time::Duration;

use runtime::random::number;

/// 0 to `end - 1`; 0 if `end` is 0.
pub(super) fn below(end: u64) -> u64 {
    number() % end.max(1)
}

pub(super) fn pick<'a>(words: &[&'a str]) -> &'a str {
    let index = usize::try_from(below(words.len() as u64)).unwrap_or_default();
    words.get(index).copied().unwrap_or_default()
}

/// A duration between the two, in milliseconds.
pub(super) fn between(shortest: Duration, longest: Duration) -> Duration {
    let spread_ms = u64::try_from(longest.saturating_sub(shortest).as_millis()).unwrap_or_default();
    shortest + Duration::from_millis(below(spread_ms + 1))
}

/// Plus or minus 3 %: real programs have no exact timing.
pub(super) fn about(time: Duration) -> Duration {
    between(time.mul_f64(0.97), time.mul_f64(1.03))
}

/// Id of one acquisition.
pub(super) fn lease_id() -> String {
    format!("{:016x}", number())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_pauses_stay_in_range_and_do_not_repeat() {
        // A thousand samples of each.
        let shortest = Duration::from_millis(10);
        let longest = Duration::from_millis(12);
        for _ in 0..1_000 {
            assert!(below(3) < 3);
            assert!((shortest..=longest).contains(&between(shortest, longest)));
            assert!(["a", "b"].contains(&pick(&["a", "b"])));
        }
        assert_ne!(lease_id(), lease_id());
        assert_eq!((below(0), pick(&[])), (0, ""));
    }
}
