//! Fingerprints of ranges of locks: detect changes since an earlier moment without a stamp in
//! each of a million entries. Computed on request for scoped viewers only.
//!
//! A fingerprint reads the fields of the entry itself and one text behind a pointer: the owner, which may change
//! within a holding. A new generation changes the time at which the acquisition was first observed, except that of a
//! shared lock.

use domain::fnv1a::fnv1a_64;

use super::entry::Entry;
use super::slab::{Id, Slab};

/// Sum of the fingerprints of some locks, independent of order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Fingerprint {
    /// Changes when a lock is added, removed or changes its row.
    pub(super) content: u64,
    /// Changes with a renewal, too.
    pub(super) deadlines: u64,
}

impl Fingerprint {
    pub(super) fn new(ids: &[Id], slab: &Slab) -> Self {
        let mut fingerprint = Self::default();
        for (id, entry) in ids.iter().filter_map(|id| Some((*id, slab.get(*id)?))) {
            fingerprint.add_lock(id, entry);
        }
        fingerprint
    }

    fn add_lock(&mut self, id: Id, entry: &Entry) {
        let id = u64::from(id) << 32;
        let small = u64::from(entry.source) << 32
            | u64::from(entry.owner_count) << 16
            | (entry.state.rank() as u64) << 8
            | entry.ends as u64;
        let sharers = entry.generation.as_deref().filter(|_| entry.owner_count > 1);
        self.content = self.content.wrapping_add(mix([
            id | u64::from(entry.waiters),
            small,
            entry.first_seen.0.cast_unsigned(),
            entry.acquired_at.cast_unsigned(),
            entry.token,
            entry.owner.as_deref().map_or(0, |owner| fnv1a_64(owner.bytes())),
            sharers.map_or(0, |generation| fnv1a_64(generation.bytes())),
        ]));
        let deadline = [id, entry.deadline.0.cast_unsigned()];
        self.deadlines = self.deadlines.wrapping_add(mix(deadline));
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.content = self.content.wrapping_add(other.content);
        self.deadlines = self.deadlines.wrapping_add(other.deadlines);
    }
}

/// The finalizer of splitmix64 (Steele, Lea and Flood, 2014) over each value in turn.
fn mix<const N: usize>(values: [u64; N]) -> u64 {
    values.into_iter().fold(0x9e37_79b9_7f4a_7c15, |mixed, value| {
        let mut z = (mixed ^ value).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    })
}
