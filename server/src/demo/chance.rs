//! Chance for the demo: picks, jitter, ids and the passwords of throwaway servers. Not reproducible, on purpose; not
//! for anything that outlives the demo.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// SipHash under keys of the operating system, over a counter.
pub(super) fn number() -> u64 {
    static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    static COUNT: AtomicU64 = AtomicU64::new(0);
    KEYS.hash_one(COUNT.fetch_add(1, Ordering::Relaxed))
}

/// 0 to `end - 1`; 0 when `end` is 0.
pub(super) fn below(end: u64) -> u64 {
    number() % end.max(1)
}

pub(super) fn pick<'a>(words: &[&'a str]) -> &'a str {
    let index = usize::try_from(below(words.len() as u64)).unwrap_or_default();
    words.get(index).copied().unwrap_or_default()
}

/// Between the two, in milliseconds.
pub(super) fn between(shortest: Duration, longest: Duration) -> Duration {
    let spread_ms = u64::try_from(longest.saturating_sub(shortest).as_millis()).unwrap_or_default();
    shortest + Duration::from_millis(below(spread_ms + 1))
}

/// Up to 3 % more or less: no program keeps time to the millisecond.
pub(super) fn about(time: Duration) -> Duration {
    between(time.mul_f64(0.97), time.mul_f64(1.03))
}

/// One acquisition's id.
pub(super) fn lease_id() -> String {
    format!("{:016x}", number())
}

/// 128 bits in hex: fits a URL, a SQL literal and a Redis configuration as it is.
pub(super) fn secret() -> String {
    let half = || {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u64(number());
        hasher.finish()
    };
    format!("{:016x}{:016x}", half(), half())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_stays_within_its_bounds_and_does_not_repeat() {
        // A thousand draws of each.
        let shortest = Duration::from_millis(10);
        let longest = Duration::from_millis(12);
        for _ in 0..1_000 {
            assert!(below(3) < 3);
            assert!((shortest..=longest).contains(&between(shortest, longest)));
            assert!(["a", "b"].contains(&pick(&["a", "b"])));
        }
        assert_ne!(lease_id(), lease_id());
        assert_eq!(secret().len(), 32);
        assert_eq!((below(0), pick(&[])), (0, ""));
    }
}
