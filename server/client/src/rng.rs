//! Random numbers without a dependency: the standard library seeds each thread's hasher from the operating system.
//!
//! For jitter and unique keys; not for secrets.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

use crate::clock;

fn bits(input: u64) -> u64 {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u64(input);
    hasher.finish()
}

/// From 0 to 1.
#[expect(clippy::cast_precision_loss, reason = "32 bits fit in the 53 of a float")]
pub(crate) fn unit() -> f64 {
    (bits(0) >> 32) as f64 / f64::from(u32::MAX)
}

/// A unique idempotency key. It begins with the time of this machine's clock, so that the server inserts the keys of a
/// machine at one end of its index.
pub(crate) fn idempotency_key() -> String {
    let random = (u128::from(bits(1)) << 64 | u128::from(bits(2))) >> 48;
    format!("{:012x}{random:020x}", clock::now().as_millis())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn keys_differ_and_fit_in_a_header() {
        // A thousand keys of 32 hex digits.
        let keys: HashSet<String> = (0..1_000).map(|_| idempotency_key()).collect();
        assert_eq!(keys.len(), 1_000);
        assert!(
            keys.iter()
                .all(|key| key.len() == 32 && key.bytes().all(|it| it.is_ascii_hexdigit()))
        );
    }

    #[test]
    fn later_keys_sort_after_earlier_ones() {
        let first = idempotency_key();
        let start = clock::now();
        while clock::now().as_millis() <= start.as_millis() {
            std::hint::spin_loop();
        }
        assert!(idempotency_key() > first);
    }

    #[test]
    fn random_numbers_are_evenly_spread() {
        // Of a thousand values, each quarter gets some.
        let mut quarters = [0; 4];
        for _ in 0..1_000 {
            let chance = unit();
            assert!((0.0..=1.0).contains(&chance));
            let quarter = (0..4)
                .rev()
                .find(|quarter| chance >= f64::from(*quarter) / 4.0)
                .unwrap();
            quarters[usize::try_from(quarter).unwrap()] += 1;
        }
        assert!(quarters.iter().all(|count| *count > 100), "{quarters:?}");
    }
}
