//! One shard's part of a page: the first rows after a cursor, in the requested order.
//!
//! Rows are ranked by `(key, name, source)`; the caller merges the shards. Orders other than by
//! name visit the most promising blocks first and stop when no other block can have a better
//! row.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ops::Range;

use domain::query::{Sort, SortKey};
use domain::state::LockState;
use domain::tick::Tick;

use super::cancellation::Cancellation;
use super::entry::Entry;
use super::name_index::{Block, IndexEntry, acquired_key, deadline_key, waiting_key};
use super::shard::Shard;
use super::slab::Id;

/// Sort key of a row: smaller comes first; a row without a key comes last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rank(pub(super) Option<i64>);

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.0, other.0) {
            (Some(a), Some(b)) => a.cmp(&b),
            (a, b) => b.is_some().cmp(&a.is_some()),
        }
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Selection from one shard.
pub(super) struct Selection<'a> {
    /// Sorted and disjoint.
    pub(super) ranges: &'a [Range<IndexEntry>],
    /// Checked between two blocks.
    pub(super) abandon: &'a Cancellation,
    pub(super) sort: Sort,
    /// States to select; empty: all.
    pub(super) states: &'a [LockState],
    /// The backend is stale or down: every row counts as stale.
    pub(super) blind: bool,
    pub(super) now: Tick,
    /// Other filters: owner, text, safety class.
    pub(super) filter: &'a dyn Fn(&Entry) -> bool,
    /// Milliseconds to add to the backend's acquisition times to compare them with other
    /// backends'.
    pub(super) clock_shift_ms: i64,
    /// End of the previous page; only later rows are selected.
    pub(super) after: Option<After<'a>>,
    pub(super) rows_max: usize,
}

/// The last row of the previous page, as one shard sees it.
pub(super) struct After<'a> {
    pub(super) rank: Rank,
    pub(super) name: &'a [u8],
    /// By source number: whether this shard's row of that name and rank was shown already.
    pub(super) shown: Vec<bool>,
}

impl After<'_> {
    fn matches(&self, entry: &Entry) -> bool {
        self.shown
            .get(usize::from(entry.source))
            .copied()
            .unwrap_or(false)
    }
}

impl Selection<'_> {
    pub(super) fn state(&self, entry: &Entry) -> LockState {
        if self.blind {
            LockState::Stale
        } else {
            entry.state_at(self.now)
        }
    }

    /// Each row of a backend that is not observed is stale.
    fn is_without_rows(&self) -> bool {
        self.blind && !self.states.is_empty() && !self.states.contains(&LockState::Stale)
    }

    fn matches(&self, entry: &Entry) -> bool {
        (self.states.is_empty() || self.states.contains(&self.state(entry))) && (self.filter)(entry)
    }

    pub(super) fn rank(&self, entry: &Entry) -> Rank {
        let directed = |value: i64, descending: bool| if descending { value.saturating_neg() } else { value };
        let descending = self.sort.descending;
        Rank(match self.sort.key {
            SortKey::Resource => None,
            // An earlier acquisition has been held longer.
            SortKey::Held => acquired_key(entry).map(|at| directed(at + self.clock_shift_ms, !descending)),
            SortKey::Remaining => deadline_key(entry).map(|at| directed(at, descending)),
            SortKey::Waiters => waiting_key(entry).map(|count| directed(count, descending)),
            // Descending: worst first, and the worst has the smallest number.
            SortKey::State => Some(directed(self.state(entry).rank() as i64, !descending)),
        })
    }

    /// The best rank that a lock of this block can have.
    fn best(&self, block: &Block) -> Rank {
        let descending = self.sort.descending;
        let pick = |bounds: super::name_index::Bounds, reverse: bool, shift: i64| {
            if bounds.min > bounds.max {
                Rank(None)
            } else if reverse {
                Rank(Some((bounds.max + shift).saturating_neg()))
            } else {
                Rank(Some(bounds.min + shift))
            }
        };
        match self.sort.key {
            SortKey::Resource | SortKey::State => Rank(None),
            // Locks without TTL have no expiry to sort by, regardless of the others in the
            // block: names decide, and the first blocks by name are enough.
            SortKey::Remaining if self.states == [LockState::NoTtl] => Rank(None),
            SortKey::Held => pick(block.acquired, !descending, self.clock_shift_ms),
            SortKey::Remaining => pick(block.deadline, descending, 0),
            SortKey::Waiters => pick(block.waiting, descending, 0),
        }
    }

    fn is_after(&self, rank: Rank, entry: &Entry) -> bool {
        self.after.as_ref().is_none_or(|after| {
            match rank.cmp(&after.rank).then((*entry.name).cmp(after.name)) {
                Ordering::Less => false,
                Ordering::Equal => !after.matches(entry),
                Ordering::Greater => true,
            }
        })
    }
}

/// A selected row.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageResult {
    pub(super) rank: Rank,
    pub(super) id: Id,
}

impl Shard {
    pub(super) fn select(&self, selection: &Selection<'_>) -> Vec<PageResult> {
        if selection.is_without_rows() {
            return Vec::new();
        }
        match selection.sort.key {
            SortKey::Resource if selection.sort.descending => self.select_by_name_backwards(selection),
            SortKey::Resource => {
                let ranges = match &selection.after {
                    Some(after) => self.behind(selection.ranges, after),
                    None => selection.ranges.to_vec(),
                };
                self.take_in_order(selection, &ranges, None, selection.rows_max)
            }
            SortKey::State => self.select_by_state(selection),
            SortKey::Held | SortKey::Remaining | SortKey::Waiters => self.select_by_key(selection),
        }
    }

    /// The part of the ranges after the last row shown.
    fn behind(&self, ranges: &[Range<IndexEntry>], after: &After<'_>) -> Vec<Range<IndexEntry>> {
        let from = self.order.lower_bound(after.name, &self.slab);
        let behind = |range: &Range<IndexEntry>| range.start.max(from)..range.end;
        ranges
            .iter()
            .map(behind)
            .filter(|range| range.start < range.end)
            .collect()
    }

    fn take_in_order(
        &self,
        selection: &Selection<'_>,
        ranges: &[Range<IndexEntry>],
        only: Option<LockState>,
        rows_max: usize,
    ) -> Vec<PageResult> {
        let mut found = Vec::new();
        for (number, range) in self.order.blocks_of_all(ranges) {
            if selection.abandon.is_cancelled() {
                break;
            }
            if only.is_some_and(|state| !self.may_hold(number, state, selection))
                || !self.may_match(number, selection)
            {
                continue;
            }
            for id in self.order.slice(number, range) {
                let Some(entry) = self.slab.get(*id) else { continue };
                let rank = selection.rank(entry);
                let has_state = only.is_none_or(|state| selection.state(entry) == state);
                if has_state && selection.matches(entry) && selection.is_after(rank, entry) {
                    found.push(PageResult { rank, id: *id });
                    if found.len() == rows_max {
                        return found;
                    }
                }
            }
        }
        found
    }

    fn may_hold(&self, number: usize, state: LockState, selection: &Selection<'_>) -> bool {
        let block = &self.order.blocks[number];
        !block.is_exact(selection.now) || block.states.count(state) > 0
    }

    fn select_by_name_backwards(&self, selection: &Selection<'_>) -> Vec<PageResult> {
        let mut found = Vec::new();
        let mut ranges = selection.ranges.to_vec();
        if let Some(after) = &selection.after {
            let to = self.order.bound(|other| other <= after.name, &self.slab);
            for range in &mut ranges {
                range.end = range.end.min(to);
            }
            ranges.retain(|range| range.start < range.end);
        }
        for (number, range) in self.order.blocks_of_all(&ranges).rev() {
            if selection.abandon.is_cancelled() {
                break;
            }
            for id in self.order.slice(number, range).iter().rev() {
                let Some(entry) = self.slab.get(*id) else { continue };
                let before = selection.after.as_ref().is_none_or(|after| {
                    *entry.name < *after.name || (*entry.name == *after.name && !after.matches(entry))
                });
                if before && selection.matches(entry) {
                    found.push(PageResult {
                        rank: Rank(None),
                        id: *id,
                    });
                    if found.len() == selection.rows_max {
                        return found;
                    }
                }
            }
        }
        found
    }

    fn select_by_state(&self, selection: &Selection<'_>) -> Vec<PageResult> {
        if selection.blind {
            let ranges = match &selection.after {
                Some(after) if after.rank == state_rank(LockState::Stale, selection.sort) => {
                    self.behind(selection.ranges, after)
                }
                Some(_) | None => selection.ranges.to_vec(),
            };
            return self.take_in_order(selection, &ranges, None, selection.rows_max);
        }
        let mut states = LockState::ALL;
        if !selection.sort.descending {
            states.reverse();
        }
        let mut found = Vec::new();
        let is_selected = |state: &LockState| selection.states.is_empty() || selection.states.contains(state);
        for state in states.into_iter().filter(is_selected) {
            let rank = state_rank(state, selection.sort);
            let ranges = match &selection.after {
                Some(after) if rank < after.rank => continue,
                Some(after) if rank == after.rank => self.behind(selection.ranges, after),
                Some(_) | None => selection.ranges.to_vec(),
            };
            let rows_max = selection.rows_max - found.len();
            if rows_max == 0 {
                break;
            }
            found.extend(self.take_in_order(selection, &ranges, Some(state), rows_max));
        }
        found
    }

    /// Whether a block has rows in the selected states.
    fn may_match(&self, number: usize, selection: &Selection<'_>) -> bool {
        let is_unfiltered = selection.states.is_empty() || selection.blind;
        is_unfiltered
            || selection
                .states
                .iter()
                .any(|state| self.may_hold(number, *state, selection))
    }

    /// Best blocks first, equal ones by name; stops when the worst selected row is better than
    /// the best remaining block.
    fn select_by_key(&self, selection: &Selection<'_>) -> Vec<PageResult> {
        let mut blocks: Vec<(Rank, usize, &Range<IndexEntry>)> = self
            .order
            .blocks_of_all(selection.ranges)
            .map(|(number, range)| {
                let block = &self.order.blocks[number];
                let best = if block.is_dirty() {
                    Rank(Some(i64::MIN))
                } else {
                    selection.best(block)
                };
                (best, number, range)
            })
            .collect();
        blocks.sort_unstable_by_key(|(best, number, range)| (*best, *number, range.start));
        // Max-heap: the worst row on top.
        let mut best_rows: BinaryHeap<(Rank, &[u8], u16, Id)> = BinaryHeap::new();
        for (best, number, range) in blocks {
            if selection.abandon.is_cancelled() {
                break;
            }
            let ids = self.order.slice(number, range);
            let first = ids.first().and_then(|id| self.slab.get(*id));
            let first: &[u8] = first.map_or(b"", |entry| &entry.name);
            let full = best_rows.len() == selection.rows_max;
            if full
                && best_rows
                    .peek()
                    .is_some_and(|(worst, name, ..)| (*worst, *name) < (best, first))
            {
                break;
            }
            if !self.may_match(number, selection) {
                continue;
            }
            for id in ids {
                let Some(entry) = self.slab.get(*id) else { continue };
                let row = (selection.rank(entry), &*entry.name, entry.source, *id);
                let is_better = best_rows.len() < selection.rows_max
                    || best_rows.peek().is_some_and(|worst| row < *worst);
                if is_better && selection.matches(entry) && selection.is_after(row.0, entry) {
                    best_rows.push(row);
                    if best_rows.len() > selection.rows_max {
                        best_rows.pop();
                    }
                }
            }
        }
        best_rows
            .into_sorted_vec()
            .into_iter()
            .map(|(rank, _, _, id)| PageResult { rank, id })
            .collect()
    }
}

fn state_rank(state: LockState, sort: Sort) -> Rank {
    let rank = state.rank() as i64;
    Rank(Some(if sort.descending { rank } else { -rank }))
}
