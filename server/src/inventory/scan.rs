//! One backend's share of a page: the counts by state, and the first rows behind the cursor.

use std::ops::Range;

use domain::lock::Lock;
use domain::query::{InventoryQuery, Sort, SortKey};
use domain::state::{LockState, StateCounts};
use memchr::memmem::Finder;

use super::abandon::Abandon;
use super::cursor::Cursor;
use super::entry::Entry;
use super::order::{Place, Sums};
use super::select::{After, Rank, Selection};
use super::shard::Shard;
use super::slot::{Slot, SlotState};
use crate::clock::Now;

/// One backend's share of a page.
pub(super) struct Scan<'a> {
    pub(super) query: &'a InventoryQuery,
    /// Of the visible names that begin with the prefix.
    pub(super) ranges: &'a [Range<Place>],
    pub(super) now: Now,
    pub(super) abandon: &'a Abandon,
}

/// A row with what it sorts by.
pub(super) struct Ranked {
    rank: Rank,
    pub(super) lock: Lock,
    pub(super) key: Cursor,
}

/// Sorts the rows of several backends.
pub(super) fn sort_rows(rows: &mut [Ranked], sort: Sort) {
    let turned = turns_names(sort);
    rows.sort_by(|a, b| {
        let names = a.key.name.cmp(&b.key.name);
        let ties = a
            .key
            .backend
            .cmp(&b.key.backend)
            .then_with(|| a.key.source.cmp(&b.key.source));
        let names = names.then(ties);
        a.rank
            .cmp(&b.rank)
            .then(if turned { names.reverse() } else { names })
    });
}

impl Slot {
    /// Adds the matches per state, leaving the state filter out.
    pub(super) fn count(&self, state: &SlotState, scan: &Scan<'_>, into: &mut StateCounts) {
        let shard = &state.shard;
        let blind = self.status(state, scan.now).blinds_rows();
        let mut sums = Sums::default();
        if is_plain(scan.query) {
            sums = shard.sums_over(scan.ranges, scan.now.tick);
        } else {
            let wanted = filter(scan.query, shard);
            for (block, range) in shard.order.blocks_of_all(scan.ranges) {
                if scan.abandon.is_abandoned() {
                    return;
                }
                let ids = shard.order.slice(block, range).iter();
                for entry in ids
                    .filter_map(|id| shard.slab.get(*id))
                    .filter(|entry| wanted(entry))
                {
                    sums.states.add(entry.state_at(scan.now.tick), 1);
                }
            }
        }
        into.merge(&blinded(sums, blind).states);
    }

    pub(super) fn rows(
        &self,
        state: &SlotState,
        scan: &Scan<'_>,
        cursor: Option<&Cursor>,
        into: &mut Vec<Ranked>,
    ) {
        let shard = &state.shard;
        let (query, now) = (scan.query, scan.now);
        let blind = self.blind(state, now);
        let wanted = filter(query, shard);
        let is_limited = !query.visible.on(&self.info.name).is_everything();
        let name = self.info.name.as_str();
        let selection = Selection {
            ranges: scan.ranges,
            abandon: scan.abandon,
            sort: query.sort,
            states: &query.states,
            blind: blind.is_some(),
            now: now.tick,
            wanted: &wanted,
            clock_shift_ms: -state.offset_ms.known().copied().unwrap_or(0),
            after: cursor.map(|last| after(shard, name, last)),
            // One more tells whether another page follows. Rows of one name come here by source number and are merged
            // by source name: with as many more as there are sources, no tie is cut in two.
            most: query.limit as usize + shard.sources.len().max(1),
        };
        let context = self.row_context(state, blind.as_deref(), now);
        for found in shard.select(&selection) {
            let Some((entry, lock)) = shard
                .slab
                .get(found.id)
                .and_then(|entry| Some((entry, shard.row(entry, &context)?)))
            else {
                continue;
            };
            let source = lock.id.source.as_str();
            let key = Cursor::after_row(query.sort, found.rank.0, &entry.name, name, source);
            let lock = if is_limited { lock.limited() } else { lock };
            into.push(Ranked {
                rank: found.rank,
                lock,
                key,
            });
        }
    }
}

/// Which of this shard's rows, at the cursor's very name, were shown: ties go by backend, then source, and turn with
/// the names.
fn after<'a>(shard: &Shard, backend: &str, last: &'a Cursor) -> After<'a> {
    let shown = |source: &str| {
        let order = (backend, source).cmp(&(last.backend.as_str(), last.source.as_str()));
        if turns_names(last.sort) {
            order.is_ge()
        } else {
            order.is_le()
        }
    };
    After {
        rank: Rank(last.key),
        name: &last.name,
        shown: shard
            .sources
            .iter()
            .map(|info| shown(info.source.as_str()))
            .collect(),
    }
}

/// Only the order by resource turns the names themselves; in every other, what ties comes from A to Z.
pub(super) fn turns_names(sort: Sort) -> bool {
    sort.key == SortKey::Resource && sort.descending
}

/// Only prefix, backend and state are asked for: the blocks' sums answer that.
fn is_plain(query: &InventoryQuery) -> bool {
    query.owners.is_empty() && query.q.is_empty() && query.safety.is_none()
}

/// The filters that read each lock. The ranges hold visible names only.
fn filter<'a>(query: &'a InventoryQuery, shard: &'a Shard) -> impl Fn(&Entry) -> bool + 'a {
    let part = Finder::new(query.q.as_bytes());
    move |entry| {
        let owner = entry.owner.as_deref();
        let owned = query.owners.is_empty() || owner.is_some_and(|o| query.owners.iter().any(|w| w == o));
        let safe = query
            .safety
            .is_none_or(|class| shard.source(entry).is_some_and(|info| info.safety.class == class));
        let found = query.q.is_empty()
            || part.find(&entry.name).is_some()
            || owner.is_some_and(|owner| part.find(owner.as_bytes()).is_some());
        owned && safe && found
    }
}

/// On a blind backend every row counts as stale.
pub(super) fn blinded(mut sums: Sums, blind: bool) -> Sums {
    if blind {
        let total = sums.states.total();
        sums.states = StateCounts::default();
        sums.states.add(LockState::Stale, total);
    }
    sums
}
