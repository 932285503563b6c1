//! Results for a viewer with a limited scope: counts cover only the visible locks.
//!
//! A scope is a few ranges of sorted names: the cost depends on the visible locks, not on all
//! of them.

use std::ops::Range;

use domain::access::Visible;
use domain::backend::BackendView;
use domain::lease::{Scope, ScopePiece};
use domain::tick::Tick;

use super::Inventory;
use super::name_index::{Aggregates, IndexEntry};
use super::shard::Shard;
use runtime::clock::ClockReading;

impl Inventory {
    /// Every backend with visible locks, with their counts.
    pub fn backends_visible(&self, visible: &Visible, now: ClockReading) -> Vec<BackendView> {
        let mut views = self.backends(now);
        if visible.is_everything() {
            return views;
        }
        let part = self.part(visible, now);
        views.retain(|view| part.sums(&view.name).is_some());
        let limit = |view: BackendView| {
            if visible.on(&view.name).is_everything() {
                return view;
            }
            let sums = part.sums(&view.name).copied().unwrap_or_default();
            let needing_attention = if view.status.blinds_rows() {
                0
            } else {
                sums.states.needing_attention()
            };
            view.limited(sums.states.total(), sums.waiters, needing_attention)
        };
        views.into_iter().map(limit).collect()
    }
}

impl Shard {
    /// Ranges of the visible names that begin with `prefix`: sorted, without overlaps.
    pub(super) fn visible_ranges(&self, prefix: &[u8], scope: &Scope) -> Vec<Range<IndexEntry>> {
        let prefix_range = self.order.prefix_range(prefix, &self.slab);
        let Some(pieces) = scope.pieces() else {
            return vec![prefix_range];
        };
        let mut ranges: Vec<Range<IndexEntry>> = pieces
            .iter()
            .map(|piece| match piece {
                ScopePiece::Beginning(beginning) => self.order.prefix_range(beginning, &self.slab),
                ScopePiece::Name(name) => {
                    let start = self.order.lower_bound(name, &self.slab);
                    start..self.order.bound(|other| other <= name.as_slice(), &self.slab)
                }
            })
            .map(|range| range.start.max(prefix_range.start)..range.end.min(prefix_range.end))
            .filter(|range| range.start < range.end)
            .collect();
        ranges.sort_unstable_by_key(|range| (range.start, range.end));
        let mut disjoint: Vec<Range<IndexEntry>> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match disjoint.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => disjoint.push(range),
            }
        }
        disjoint
    }

    pub(super) fn sums_over(&self, ranges: &[Range<IndexEntry>], now: Tick) -> Aggregates {
        let mut sums = Aggregates::default();
        for range in ranges {
            sums.add(&self.order.sums(range, &self.slab, now));
        }
        sums
    }
}
