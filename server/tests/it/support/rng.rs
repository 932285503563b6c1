//! Reproducible chance: SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).

use std::hash::{BuildHasher, RandomState};

pub(crate) struct Dice(u64);

/// From `LEASEHOLD_TEST_SEED`, or a new one.
pub(crate) fn seed() -> u64 {
    match std::env::var_os("LEASEHOLD_TEST_SEED") {
        Some(text) => text
            .to_str()
            .and_then(|text| text.parse().ok())
            .expect("LEASEHOLD_TEST_SEED is a number"),
        None => RandomState::new().hash_one(0) >> 32,
    }
}

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// 0 to `end - 1`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.number() % end as u64).unwrap()
    }

    pub(crate) fn percent(&mut self, share: u64) -> bool {
        self.number() % 100 < share
    }

    pub(crate) fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    pub(crate) fn shuffle<T>(&mut self, of: &mut [T]) {
        for last in (1..of.len()).rev() {
            of.swap(last, self.below(last + 1));
        }
    }
}
