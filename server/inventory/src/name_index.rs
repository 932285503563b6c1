//! Locks sorted by name, in blocks with sums.
//!
//! A sorted list cut into blocks of at most [`BLOCK_MAX`] numbers (the idea of Grant Jenks'
//! SortedList). Each block stores counts per state, waiters and bounds, so that prefix totals,
//! facets, the name tree and "the 100 nearest their expiry" all skip whole blocks. About 5
//! bytes per lock.

use std::cmp::Ordering;
use std::sync::OnceLock;

use domain::state::StateCounts;
use domain::tick::Tick;

use super::entry::{Ends, Entry};
use super::fingerprint::Fingerprint;
use super::missing_reasons::FILLED;
use super::slab::{Id, Slab};

/// Small under test, so that a few dozen locks already fill, split and empty blocks.
pub(super) const BLOCK_MAX: usize = if cfg!(test) { 8 } else { 512 };

/// A position between two locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct IndexEntry {
    pub(super) block: usize,
    pub(super) at: usize,
}

/// Smallest and greatest of a sort key, over the locks of a block that have one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) min: i64,
    pub(super) max: i64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            min: i64::MAX,
            max: i64::MIN,
        }
    }
}

impl Bounds {
    fn take(&mut self, value: Option<i64>) {
        if let Some(value) = value {
            self.min = self.min.min(value);
            self.max = self.max.max(value);
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Block {
    pub(super) ids: Vec<Id>,
    pub(super) states: StateCounts,
    pub(super) waiters: u64,
    pub(super) acquired: Bounds,
    pub(super) deadline: Bounds,
    pub(super) waiting: Bounds,
    /// Fingerprint of all its locks; computed on first use after a change of the sums.
    fingerprint: OnceLock<Fingerprint>,
    /// The first expiry after the last reading in this block: from then on the sums of states
    /// are outdated.
    runs_out: Option<Tick>,
    /// A lock changed since the sums were computed.
    dirty: bool,
}

/// Sums over a range.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Aggregates {
    pub(super) states: StateCounts,
    pub(super) waiters: u64,
    /// The next expiry among them: until then time alone does not change the states.
    pub(super) runs_out: Option<Tick>,
}

impl Aggregates {
    pub(super) fn add_lock(&mut self, entry: &Entry, now: Tick) {
        self.states.add(entry.state_at(now), 1);
        self.runs_out = earliest(self.runs_out, entry.runs_out().filter(|end| *end > now));
        self.waiters += known_waiters(entry);
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.states.merge(&other.states);
        self.waiters += other.waiters;
        self.runs_out = earliest(self.runs_out, other.runs_out);
    }
}

fn earliest(one: Option<Tick>, other: Option<Tick>) -> Option<Tick> {
    one.into_iter().chain(other).min()
}

fn known_waiters(entry: &Entry) -> u64 {
    if entry.gaps.waiters == FILLED {
        u64::from(entry.waiters)
    } else {
        0
    }
}

/// Sort key of one lock; `None` sorts last.
pub(super) fn acquired_key(entry: &Entry) -> Option<i64> {
    (entry.gaps.acquired_at == FILLED).then_some(entry.acquired_at)
}

pub(super) fn deadline_key(entry: &Entry) -> Option<i64> {
    (entry.ends == Ends::Leased).then_some(entry.deadline.0)
}

pub(super) fn waiting_key(entry: &Entry) -> Option<i64> {
    (entry.gaps.waiters == FILLED).then_some(i64::from(entry.waiters))
}

impl Block {
    pub(super) fn is_dirty(&self) -> bool {
        self.dirty
    }

    /// Its sums of states are valid at this moment.
    pub(super) fn is_exact(&self, now: Tick) -> bool {
        !self.dirty && self.runs_out.is_none_or(|end| end > now)
    }

    fn sum(&mut self, slab: &Slab) {
        let mut fresh = Self {
            ids: std::mem::take(&mut self.ids),
            ..Self::default()
        };
        for entry in fresh.ids.iter().filter_map(|id| slab.get(*id)) {
            fresh.states.add(entry.state, 1);
            fresh.waiters += known_waiters(entry);
            fresh.acquired.take(acquired_key(entry));
            fresh.deadline.take(deadline_key(entry));
            fresh.waiting.take(waiting_key(entry));
            fresh.runs_out = earliest(fresh.runs_out, entry.runs_out());
        }
        *self = fresh;
    }
}

#[derive(Debug, Default)]
pub(super) struct NameIndex {
    pub(super) blocks: Vec<Block>,
    /// Locks that were summed one by one.
    #[cfg(test)]
    pub(super) visited: std::sync::atomic::AtomicUsize,
}

/// Sorted by name, then source, so that two sources may have one name.
fn compare(slab: &Slab, one: Id, other: Id) -> Ordering {
    match (slab.get(one), slab.get(other)) {
        (Some(a), Some(b)) => a.name.cmp(&b.name).then(a.source.cmp(&b.source)),
        (a, b) => a.is_some().cmp(&b.is_some()),
    }
}

impl NameIndex {
    /// Adds locks that are not in it yet, in any order. [`Self::recompute_sums`] updates the
    /// sums.
    pub(super) fn insert_all(&mut self, mut new: Vec<Id>, slab: &Slab) {
        new.sort_unstable_by(|a, b| compare(slab, *a, *b));
        let mut rest = new.as_slice();
        let mut block = 0;
        while let Some(first) = rest.first() {
            if self.blocks.is_empty() {
                self.blocks.push(Block::default());
            }
            block += self.blocks[block..]
                .partition_point(|b| b.ids.first().is_some_and(|id| compare(slab, *id, *first).is_le()))
                .saturating_sub(1);
            let belongs = match self.blocks.get(block + 1).and_then(|next| next.ids.first()) {
                Some(next) => rest.partition_point(|id| compare(slab, *id, *next).is_lt()),
                None => rest.len(),
            };
            let (block_ids, later) = rest.split_at(belongs.max(1));
            block = self.merge(block, block_ids, slab);
            rest = later;
        }
    }

    /// Merges sorted locks into one block and splits it if it grew too long; returns the last
    /// block written.
    fn merge(&mut self, block: usize, new: &[Id], slab: &Slab) -> usize {
        let old = std::mem::take(&mut self.blocks[block].ids);
        let mut merged = Vec::with_capacity(old.len() + new.len());
        let (mut a, mut b) = (old.as_slice(), new);
        while let (Some(x), Some(y)) = (a.first(), b.first()) {
            if compare(slab, *x, *y).is_le() {
                merged.push(*x);
                a = &a[1..];
            } else {
                merged.push(*y);
                b = &b[1..];
            }
        }
        merged.extend_from_slice(a);
        merged.extend_from_slice(b);
        if merged.len() <= BLOCK_MAX {
            self.blocks[block] = Block {
                ids: merged,
                dirty: true,
                ..Block::default()
            };
            return block;
        }
        // Three quarters full, so that the next insertions do not split at once.
        let pieces = merged
            .chunks(BLOCK_MAX * 3 / 4)
            .map(|ids| Block {
                ids: ids.to_vec(),
                dirty: true,
                ..Block::default()
            })
            .collect::<Vec<_>>();
        let last = block + pieces.len() - 1;
        self.blocks.splice(block..=block, pieces);
        last
    }

    /// Removes every lock that `keep` rejects. Call it while the entries are still in the slab.
    pub(super) fn retain(&mut self, keep: impl Fn(Id) -> bool) {
        for block in &mut self.blocks {
            let before = block.ids.len();
            block.ids.retain(|id| keep(*id));
            block.dirty |= block.ids.len() != before;
        }
        self.blocks.retain(|block| !block.ids.is_empty());
    }

    /// Removes one lock. Call it while its entry is still in the slab.
    pub(super) fn remove(&mut self, id: Id, slab: &Slab) {
        let Some(IndexEntry { block, at }) = self.find(id, slab) else {
            return;
        };
        self.blocks[block].ids.remove(at);
        self.blocks[block].dirty = true;
        if self.blocks[block].ids.is_empty() {
            self.blocks.remove(block);
        }
    }

    /// Marks a lock whose state, waiters or keys changed.
    pub(super) fn touch(&mut self, id: Id, slab: &Slab) {
        if let Some(place) = self.find(id, slab) {
            self.blocks[place.block].dirty = true;
        }
    }

    /// Recomputes the sums of all changed blocks; until then they are the old ones.
    pub(super) fn recompute_sums(&mut self, slab: &Slab) {
        for block in self.blocks.iter_mut().filter(|block| block.dirty) {
            block.sum(slab);
        }
    }

    fn find(&self, id: Id, slab: &Slab) -> Option<IndexEntry> {
        let block = self
            .blocks
            .partition_point(|b| {
                b.ids
                    .first()
                    .is_some_and(|first| compare(slab, *first, id).is_le())
            })
            .checked_sub(1)?;
        let at = self.blocks[block]
            .ids
            .binary_search_by(|other| compare(slab, *other, id))
            .ok()?;
        Some(IndexEntry { block, at })
    }

    /// The first position whose name is not less than `name`.
    pub(super) fn lower_bound(&self, name: &[u8], slab: &Slab) -> IndexEntry {
        self.bound(|other| other < name, slab)
    }

    /// The first position whose lock does not satisfy `before`, which must hold for a leading
    /// part only.
    pub(super) fn bound(&self, before: impl Fn(&[u8]) -> bool, slab: &Slab) -> IndexEntry {
        let block = self
            .blocks
            .partition_point(|b| b.ids.first().is_some_and(|id| before(slab.name(*id))))
            .saturating_sub(1);
        let Some(found) = self.blocks.get(block) else {
            return IndexEntry { block: 0, at: 0 };
        };
        let at = found.ids.partition_point(|id| before(slab.name(*id)));
        if at == found.ids.len() {
            IndexEntry {
                block: block + 1,
                at: 0,
            }
        } else {
            IndexEntry { block, at }
        }
    }

    pub(super) fn everything(&self) -> std::ops::Range<IndexEntry> {
        let end = self.blocks.len();
        IndexEntry { block: 0, at: 0 }..IndexEntry { block: end, at: 0 }
    }

    /// The locks whose names start with `prefix`.
    pub(super) fn prefix_range(&self, prefix: &[u8], slab: &Slab) -> std::ops::Range<IndexEntry> {
        let start = self.lower_bound(prefix, slab);
        let end = match domain::name_tree::after_prefix(prefix) {
            Some(end) => self.lower_bound(&end, slab),
            None => IndexEntry {
                block: self.blocks.len(),
                at: 0,
            },
        };
        start..end
    }

    /// The part of one block that lies in a range.
    pub(super) fn slice(&self, block: usize, range: &std::ops::Range<IndexEntry>) -> &[Id] {
        let Some(found) = self.blocks.get(block) else {
            return &[];
        };
        let from = if block == range.start.block {
            range.start.at
        } else {
            0
        };
        let to = if block == range.end.block {
            range.end.at
        } else {
            found.ids.len()
        };
        found.ids.get(from..to).unwrap_or_default()
    }

    /// Numbers of the blocks that a range touches.
    pub(super) fn blocks_of(&self, range: &std::ops::Range<IndexEntry>) -> std::ops::Range<usize> {
        let end = if range.end.at > 0 {
            range.end.block + 1
        } else {
            range.end.block
        };
        range.start.block..end.min(self.blocks.len())
    }

    /// The blocks that each of several ranges touches, with the range.
    pub(super) fn blocks_of_all<'a>(
        &'a self,
        ranges: &'a [std::ops::Range<IndexEntry>],
    ) -> impl DoubleEndedIterator<Item = (usize, &'a std::ops::Range<IndexEntry>)> + 'a {
        ranges
            .iter()
            .flat_map(move |range| self.blocks_of(range).map(move |block| (block, range)))
    }

    /// Sums over a range: whole blocks by their sums, the two ends one by one.
    pub(super) fn sums(&self, range: &std::ops::Range<IndexEntry>, slab: &Slab, now: Tick) -> Aggregates {
        let mut sums = Aggregates::default();
        for number in self.blocks_of(range) {
            let block = &self.blocks[number];
            let part = self.slice(number, range);
            if part.len() == block.ids.len() && block.is_exact(now) {
                sums.add(&Aggregates {
                    states: block.states,
                    waiters: block.waiters,
                    runs_out: block.runs_out,
                });
            } else {
                #[cfg(test)]
                self.visited
                    .fetch_add(part.len(), std::sync::atomic::Ordering::Relaxed);
                part.iter()
                    .filter_map(|id| slab.get(*id))
                    .for_each(|entry| sums.add_lock(entry, now));
            }
        }
        sums
    }

    pub(super) fn fingerprint(&self, range: &std::ops::Range<IndexEntry>, slab: &Slab) -> Fingerprint {
        let mut fingerprint = Fingerprint::default();
        for number in self.blocks_of(range) {
            let block = &self.blocks[number];
            let part = self.slice(number, range);
            #[cfg(test)]
            self.visited
                .fetch_add(part.len(), std::sync::atomic::Ordering::Relaxed);
            if part.len() == block.ids.len() && !block.dirty {
                let cached = block.fingerprint.get_or_init(|| Fingerprint::new(part, slab));
                fingerprint.add(cached);
            } else {
                fingerprint.add(&Fingerprint::new(part, slab));
            }
        }
        fingerprint
    }
}
