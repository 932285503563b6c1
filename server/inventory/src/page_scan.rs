//! One backend's part of a page: the counts by state, and the first rows after the cursor.

use std::ops::Range;

use domain::limits::PAGE_BYTES_MAX;
use domain::lock::Lock;
use domain::query::{InventoryQuery, Sort, SortKey};
use domain::state::{LockState, StateCounts};
use memchr::memmem::Finder;

use super::backend_state::{Slot, SlotState};
use super::cancellation::Cancellation;
use super::cursor::Cursor;
use super::entry::Entry;
use super::name_index::{Aggregates, IndexEntry};
use super::page_select::{After, Rank, Selection};
use super::shard::Shard;
use runtime::clock::ClockReading;

pub(super) struct Scan<'a> {
    pub(super) query: &'a InventoryQuery,
    /// Ranges of the visible names that begin with the prefix.
    pub(super) ranges: &'a [Range<IndexEntry>],
    pub(super) now: ClockReading,
    pub(super) abandon: &'a Cancellation,
}

/// A row with its sort key.
pub(super) struct Ranked {
    rank: Rank,
    pub(super) lock: Lock,
    pub(super) key: Cursor,
    bytes: usize,
}

/// Number of these sorted rows that fit into a page: at least one.
pub(super) fn count_fitting(rows: &[Ranked], limit: usize) -> usize {
    let mut bytes = 0;
    let fitting = rows.iter().take(limit).take_while(|row| {
        bytes += row.bytes;
        bytes <= PAGE_BYTES_MAX
    });
    fitting.count().max(1)
}

/// Sorts the rows of several backends.
pub(super) fn sort_rows(rows: &mut [Ranked], sort: Sort) {
    let is_reversed = reverses_names(sort);
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
            .then(if is_reversed { names.reverse() } else { names })
    });
}

impl Slot {
    /// Adds the matches per state, without the state filter.
    pub(super) fn count(&self, state: &SlotState, scan: &Scan<'_>, into: &mut StateCounts) {
        let shard = &state.shard;
        let blind = self.status(state, scan.now).blinds_rows();
        let mut sums = Aggregates::default();
        if is_plain(scan.query) {
            sums = shard.sums_over(scan.ranges, scan.now.tick);
        } else {
            let is_match = filter(scan.query, shard);
            for (block, range) in shard.order.blocks_of_all(scan.ranges) {
                if scan.abandon.is_cancelled() {
                    return;
                }
                let ids = shard.order.slice(block, range).iter();
                for entry in ids
                    .filter_map(|id| shard.slab.get(*id))
                    .filter(|entry| is_match(entry))
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
        let is_match = filter(query, shard);
        let is_limited = !query.visible.on(&self.info.name).is_everything();
        let name = self.info.name.as_str();
        let selection = Selection {
            ranges: scan.ranges,
            abandon: scan.abandon,
            sort: query.sort,
            states: &query.states,
            blind: blind.is_some(),
            now: now.tick,
            filter: &is_match,
            clock_shift_ms: -state.offset_ms.known().copied().unwrap_or(0),
            after: cursor.map(|last| after(shard, name, last)),
            // One more row tells whether another page follows. Rows of one name arrive by
            // source number and are merged by source name: with one more per source, no tie is
            // cut in two.
            rows_max: query.limit as usize + shard.sources.len().max(1),
        };
        let context = self.row_context(state, blind.as_deref(), now);
        // Further rows that no page has room for, as in `rows_max`.
        let (mut bytes, mut more) = (0, shard.sources.len().max(1));
        for found in shard.select(&selection) {
            if bytes > PAGE_BYTES_MAX {
                if more == 0 {
                    break;
                }
                more -= 1;
            }
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
            let row_bytes = size_of_texts(entry);
            bytes += row_bytes;
            into.push(Ranked {
                rank: found.rank,
                lock,
                key,
                bytes: row_bytes,
            });
        }
    }
}

fn size_of_texts(entry: &Entry) -> usize {
    let texts = [
        entry.owner.as_deref(),
        entry.lease_id.as_deref(),
        entry.generation.as_deref(),
    ];
    entry.name.len() + texts.into_iter().flatten().map(str::len).sum::<usize>()
}

/// Which of this shard's rows with the cursor's name were shown: ties are ordered by backend,
/// then source, in the direction of the names.
fn after<'a>(shard: &Shard, backend: &str, last: &'a Cursor) -> After<'a> {
    let is_shown = |source: &str| {
        let order = (backend, source).cmp(&(last.backend.as_str(), last.source.as_str()));
        if reverses_names(last.sort) {
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
            .map(|info| is_shown(info.source.as_str()))
            .collect(),
    }
}

/// Only the order by resource reverses the names themselves; in every other order, ties are
/// ascending.
pub(super) fn reverses_names(sort: Sort) -> bool {
    sort.key == SortKey::Resource && sort.descending
}

/// Only prefix, backend and state filters: the blocks' sums answer them.
fn is_plain(query: &InventoryQuery) -> bool {
    query.owners.is_empty() && query.q.is_empty() && query.safety.is_none()
}

/// Filters that read each lock. The ranges contain visible names only.
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

/// On an unreachable backend every row counts as stale.
pub(super) fn blinded(mut sums: Aggregates, blind: bool) -> Aggregates {
    if blind {
        let total = sums.states.total();
        sums.states = StateCounts::default();
        sums.states.add(LockState::Stale, total);
    }
    sums
}
