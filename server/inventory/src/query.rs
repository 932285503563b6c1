//! Queries: pages of locks, the name tree, one lock. Queries shards one after the other and
//! merges the results.

use std::collections::BTreeMap;

use domain::access::Visible;
use domain::backend::BackendStatus;
use domain::generation::Generation;
use domain::lease::Scope;
use domain::limits::{PREFIX_CHILDREN_BYTES_MAX, PREFIX_CHILDREN_MAX};
use domain::lock::Lock;
use domain::lock_detail::SeenEvent;
use domain::name_tree::{PrefixChild, PrefixNode, after_prefix, boundary};
use domain::names::{BackendName, LockId, Resource, Source};
use domain::query::{InventoryPage, InventoryQuery, QueryError};
use domain::state::{LockState, StateCounts};

use super::backend_state::{Slot, SlotState};
use super::cancellation::Cancellation;
use super::cursor::Cursor;
use super::entry::Entry;
use super::name_index::Aggregates;
use super::page_scan::{self, Scan, blinded};
use super::row::RowContext;
use super::tree::Child;
use super::{Inventory, status};
use runtime::clock::ClockReading;

/// Events per lock on its page.
pub const SEEN_MAX: usize = 20;

/// Result of a lookup.
#[derive(Debug, Clone, PartialEq)]
pub enum LookUp {
    Found(Box<Lock>, Vec<SeenEvent>),
    /// Not held; recent events of this name, if any.
    NotHeld(Vec<SeenEvent>),
    /// Several sources of this backend have the name.
    Ambiguous(Vec<Source>),
    NoSuchBackend,
}

impl Inventory {
    /// # Errors
    /// Names the field: an unknown backend, a cursor of another query.
    pub fn page(&self, query: &InventoryQuery, now: ClockReading) -> Result<InventoryPage, QueryError> {
        self.page_unless(query, now, &Cancellation::default())
    }

    /// As [`Self::page`]. Once cancelled, it returns early with an incomplete page.
    ///
    /// # Errors
    /// As [`Self::page`].
    pub fn page_unless(
        &self,
        query: &InventoryQuery,
        now: ClockReading,
        abandon: &Cancellation,
    ) -> Result<InventoryPage, QueryError> {
        let revision = self.revision_of(&query.visible, now);
        for name in &query.backends {
            let is_visible = self.slot(name).is_some() && !query.visible.on(name).is_nothing();
            if !is_visible {
                return Err(self.no_such_backend(name, &query.visible));
            }
        }
        let cursor = query
            .cursor
            .as_deref()
            .map(|text| Cursor::decode(text, query.sort))
            .transpose()?
            .map(|cursor| self.with_whole_name(cursor, &query.visible));
        let prefixes = Resource::candidates(&query.prefix);
        // A prefix that is not plain text was given in escaped form.
        let prefix = prefixes.last().map_or(&b""[..], Resource::as_bytes);
        let mut rows = Vec::new();
        let mut states = StateCounts::default();
        let backend_query = |slot: &Slot| {
            let is_named = query.backends.is_empty() || query.backends.contains(&slot.info.name);
            is_named && !query.visible.on(&slot.info.name).is_nothing()
        };
        let slots = self.slots();
        for slot in slots.iter().filter(|slot| backend_query(slot)) {
            let state = slot.read();
            let scope = query.visible.on(&slot.info.name);
            let scan = Scan {
                query,
                ranges: &state.shard.visible_ranges(prefix, &scope),
                now,
                abandon,
            };
            slot.count(&state, &scan, &mut states);
            slot.rows(&state, &scan, cursor.as_ref(), &mut rows);
        }
        page_scan::sort_rows(&mut rows, query.sort);
        let count = page_scan::count_fitting(&rows, query.limit as usize);
        let has_more = rows.len() > count;
        rows.truncate(count);
        let backends = self.backends_visible(&query.visible, now);
        let seen_whole = |name: &BackendName| {
            backends
                .iter()
                .any(|view| view.name == *name && view.status == BackendStatus::Live)
        };
        let is_requested = |state: LockState| query.states.is_empty() || query.states.contains(&state);
        Ok(InventoryPage {
            next_cursor: rows.last().filter(|_| has_more).map(|row| row.key.encode()),
            total: states
                .iter()
                .filter(|(state, _)| is_requested(*state))
                .map(|(_, count)| count)
                .sum(),
            complete: slots
                .iter()
                .filter(|slot| backend_query(slot))
                .all(|slot| seen_whole(&slot.info.name)),
            held_total: backends.iter().map(|view| view.locks).sum(),
            backends,
            states,
            revision,
            locks: rows.into_iter().map(|row| row.lock).collect(),
        })
    }

    /// Restores the full name of a shortened cursor from the lock of that name. Without that
    /// lock, the next page begins where names with the same beginning begin: rows may repeat,
    /// none is left out.
    fn with_whole_name(&self, mut cursor: Cursor, visible: &Visible) -> Cursor {
        let Some(cut) = cursor.cut.take() else {
            return cursor;
        };
        for slot in self.slots().iter() {
            let state = slot.read();
            let shard = &state.shard;
            let ranges = shard.visible_ranges(&cursor.name, &visible.on(&slot.info.name));
            let mut names = shard
                .order
                .blocks_of_all(&ranges)
                .flat_map(|(block, range)| shard.order.slice(block, range))
                .map(|id| shard.slab.name(*id));
            if let Some(name) = names.find(|name| cut.is_of(name)) {
                cursor.name = name.to_vec();
                return cursor;
            }
        }
        // In descending order, the names with this beginning are before its successor.
        if page_scan::reverses_names(cursor.sort)
            && let Some(end) = after_prefix(&cursor.name)
        {
            cursor.name = end;
        }
        cursor
    }

    /// The same error for an unknown backend and for one outside the reader's scope.
    fn no_such_backend(&self, name: &BackendName, visible: &Visible) -> QueryError {
        let slots = self.slots();
        let names = slots.iter().map(|slot| &slot.info.name);
        let known: Vec<&str> = names
            .filter(|name| !visible.on(name).is_nothing())
            .map(BackendName::as_str)
            .collect();
        let there_are = if known.is_empty() {
            "no backend is visible to you".to_owned()
        } else {
            format!("there are {}", known.join(", "))
        };
        QueryError::new("backend", format!("{name} is not configured; {there_are}"))
    }

    /// Children of the last whole segment of `prefix`; only visible ones that start with all of
    /// it.
    pub fn prefixes(&self, prefix: &str, visible: &Visible, now: ClockReading) -> PrefixNode {
        let resource = Resource::from_text(prefix);
        let prefix_bytes = resource.as_bytes();
        let node = &prefix_bytes[..boundary(prefix_bytes)];
        let mut merged: BTreeMap<Vec<u8>, (Aggregates, bool)> = BTreeMap::new();
        let mut total = Aggregates::default();
        for slot in self.slots().iter() {
            let state = slot.read();
            let blind = slot.status(&state, now).blinds_rows();
            let shard = &state.shard;
            let ranges = shard.visible_ranges(prefix_bytes, &visible.on(&slot.info.name));
            total.add(&blinded(shard.sums_over(&ranges, now.tick), blind));
            for Child {
                prefix,
                sums,
                is_leaf,
            } in shard.children(&ranges, node.len(), now.tick)
            {
                let child = merged.entry(prefix).or_default();
                child.0.add(&blinded(sums, blind));
                child.1 |= is_leaf;
            }
        }
        // The limits of each backend: beyond them, not every backend has listed its locks of a child.
        let mut bytes = 0;
        let fits = |(prefix, _): &(Vec<u8>, _)| {
            let has_room = bytes < PREFIX_CHILDREN_BYTES_MAX;
            bytes += prefix.len();
            has_room
        };
        let children: Vec<PrefixChild> = merged
            .into_iter()
            .take(PREFIX_CHILDREN_MAX)
            .take_while(fits)
            .map(|(prefix, (sums, is_leaf))| child(&prefix, node.len(), sums, is_leaf))
            .collect();
        let listed: u64 = children.iter().map(|child| child.locks).sum();
        PrefixNode {
            prefix: prefix.to_owned(),
            total: total.states.total(),
            states: total.states,
            more_locks: total.states.total().saturating_sub(listed),
            children,
        }
    }

    /// Number of other locks of the same backend and of this scope with this generation. Reads every lock.
    pub fn others_with_generation(&self, id: &LockId, generation: &Generation, scope: &Scope) -> u64 {
        let Some(slot) = self.slot(&id.backend) else {
            return 0;
        };
        let state = slot.read();
        let is_same = |entry: &&Entry| {
            entry.generation.as_deref() == Some(generation.as_str())
                && *entry.name != *id.resource.as_bytes()
                && scope.covers_bytes(&entry.name)
        };
        let others = state.shard.slab.iter().map(|(_, entry)| entry);
        others.filter(is_same).count() as u64
    }

    /// Finds one lock. `resource` is a text form; `source` is required only if two sources have
    /// the name.
    pub fn find_lock(
        &self,
        backend: &BackendName,
        source: Option<&Source>,
        resource: &str,
        now: ClockReading,
    ) -> LookUp {
        let Some(slot) = self.slot(backend) else {
            return LookUp::NoSuchBackend;
        };
        let state = slot.read();
        let candidates = Resource::candidates(resource);
        for name in &candidates {
            let found: Vec<&Entry> = state
                .shard
                .sources
                .iter()
                .filter(|info| source.is_none_or(|source| info.source == *source))
                .filter_map(|info| state.shard.find(&info.source, name))
                .collect();
            match found.as_slice() {
                [] => {}
                [entry] => {
                    let row = slot.row(&state, entry, now);
                    let seen = state.recent.for_lock(entry.source, &entry.name, SEEN_MAX);
                    return row.map_or(LookUp::NotHeld(Vec::new()), |row| {
                        LookUp::Found(Box::new(row), seen)
                    });
                }
                several => {
                    let sources = several.iter().filter_map(|entry| state.shard.source(entry));
                    return LookUp::Ambiguous(sources.map(|info| info.source.clone()).collect());
                }
            }
        }
        let seen = candidates.iter().find_map(|name| {
            let newest = state.recent.newest_of_name(name.as_bytes())?;
            Some(state.recent.for_lock(newest.source, name.as_bytes(), SEEN_MAX))
        });
        LookUp::NotHeld(seen.unwrap_or_default())
    }
}

impl Slot {
    fn row(&self, state: &SlotState, entry: &Entry, now: ClockReading) -> Option<Lock> {
        let blind = self.blind(state, now);
        state
            .shard
            .row(entry, &self.row_context(state, blind.as_deref(), now))
    }

    pub(super) fn row_context<'a>(
        &'a self,
        state: &SlotState,
        blind: Option<&'a str>,
        now: ClockReading,
    ) -> RowContext<'a> {
        RowContext {
            backend: &self.info.name,
            kind: self.info.kind,
            poll_interval_ms: status::period_ms(self.info.poll_interval_ms, &state.passes),
            offset_ms: state.offset_ms.known().copied().unwrap_or(0),
            blind,
            now,
            judge: self.diagnosis_settings(),
        }
    }
}

fn child(prefix: &[u8], node_len: usize, sums: Aggregates, is_leaf: bool) -> PrefixChild {
    PrefixChild {
        segment: domain::escape::text(&prefix[node_len..]).into_owned(),
        prefix: domain::escape::text(prefix).into_owned(),
        locks: sums.states.total(),
        waiters: sums.waiters,
        worst: sums.states.worst().unwrap_or(LockState::Unknown),
        states: sums.states,
        is_leaf,
    }
}
