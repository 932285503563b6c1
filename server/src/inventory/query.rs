//! Answers: pages of locks, the segment tree, one lock. Shards are asked one after the other and merged.

use std::collections::BTreeMap;

use domain::access::Visible;
use domain::backend::BackendStatus;
use domain::detail::SeenEvent;
use domain::lease::Scope;
use domain::limits::PREFIX_CHILDREN_MAX;
use domain::lock::Lock;
use domain::names::{BackendName, Resource, Source};
use domain::query::{InventoryPage, InventoryQuery, QueryError, Sort, SortKey};
use domain::segments::{PrefixChild, PrefixNode, boundary};
use domain::state::{LockState, StateCounts};

use super::cursor::Cursor;
use super::entry::Entry;
use super::order::Sums;
use super::row::RowContext;
use super::select::{After, Rank, Selection};
use super::shard::Shard;
use super::slot::{Slot, SlotState};
use super::tree::Child;
use super::{Inventory, status};
use crate::clock::Now;

/// Events of one lock that its page shows.
pub const SEEN_MAX: usize = 20;

/// One lock found, or what stands in its place.
#[derive(Debug, Clone, PartialEq)]
pub enum LookUp {
    Found(Box<Lock>, Vec<SeenEvent>),
    /// It is not held; what we last saw of this name, if anything.
    NotHeld(Vec<SeenEvent>),
    /// Several sources of this backend hold the name.
    Ambiguous(Vec<Source>),
    NoSuchBackend,
}

/// A row with what it sorts by.
struct Ranked {
    rank: Rank,
    lock: Lock,
    key: Cursor,
}

impl Inventory {
    /// # Errors
    /// Names the field: an unknown backend, a cursor of another query.
    pub fn page(&self, query: &InventoryQuery, now: Now) -> Result<InventoryPage, QueryError> {
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
            .transpose()?;
        let prefixes = Resource::candidates(&query.prefix);
        // A prefix that is not plain text was written in the escaped form.
        let prefix = prefixes.last().map_or(&b""[..], Resource::as_bytes);
        let mut rows = Vec::new();
        let mut states = StateCounts::default();
        let asked = |slot: &Slot| {
            let is_named = query.backends.is_empty() || query.backends.contains(&slot.info.name);
            is_named && !query.visible.on(&slot.info.name).is_nothing()
        };
        let slots = self.slots();
        for slot in slots.iter().filter(|slot| asked(slot)) {
            let state = slot.read();
            slot.count(&state, query, prefix, now, &mut states);
            slot.rows(&state, query, prefix, cursor.as_ref(), now, &mut rows);
        }
        let turned = turns_names(query.sort);
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
        let limit = query.limit as usize;
        let more = rows.len() > limit;
        rows.truncate(limit);
        let backends = self.backends_visible(&query.visible, now);
        let seen_whole = |name: &BackendName| {
            backends
                .iter()
                .any(|view| view.name == *name && view.status == BackendStatus::Live)
        };
        let wanted = |state: LockState| query.states.is_empty() || query.states.contains(&state);
        Ok(InventoryPage {
            next_cursor: rows.last().filter(|_| more).map(|row| row.key.encode()),
            total: states
                .iter()
                .filter(|(state, _)| wanted(*state))
                .map(|(_, count)| count)
                .sum(),
            complete: slots
                .iter()
                .filter(|slot| asked(slot))
                .all(|slot| seen_whole(&slot.info.name)),
            held_total: backends.iter().map(|view| view.locks).sum(),
            backends,
            states,
            revision: self.revision(),
            locks: rows.into_iter().map(|row| row.lock).collect(),
        })
    }

    /// The same answer for a backend that does not exist and for one outside of the reader's scope.
    fn no_such_backend(&self, name: &BackendName, visible: &Visible) -> QueryError {
        let slots = self.slots();
        let names = slots.iter().map(|slot| &slot.info.name);
        let known: Vec<&str> = names
            .filter(|name| !visible.on(name).is_nothing())
            .map(BackendName::as_str)
            .collect();
        let there_are = if known.is_empty() {
            "there is none that you may see".to_owned()
        } else {
            format!("there are {}", known.join(", "))
        };
        QueryError::new("backend", format!("{name} is not configured; {there_are}"))
    }

    /// Children of the last whole segment of `prefix`; only those that start with all of it, and only what is visible.
    pub fn prefixes(&self, prefix: &str, visible: &Visible, now: Now) -> PrefixNode {
        let resource = Resource::from_text(prefix);
        let wanted = resource.as_bytes();
        let node = &wanted[..boundary(wanted)];
        let mut merged: BTreeMap<Vec<u8>, (Sums, bool)> = BTreeMap::new();
        let mut total = Sums::default();
        for slot in self.slots().iter() {
            let state = slot.read();
            let blind = slot.status(&state, now).blinds_rows();
            let shard = &state.shard;
            let all = || {
                shard
                    .order
                    .sums(&shard.order.prefix_range(wanted, &shard.slab), &shard.slab)
            };
            let scope = visible.on(&slot.info.name);
            let (all, children) = if scope.is_everything() {
                (all(), shard.children(node, PREFIX_CHILDREN_MAX))
            } else {
                shard.visible_children(wanted, node.len(), &scope)
            };
            add(&mut total, blinded(all, blind));
            for Child {
                prefix,
                sums,
                is_leaf,
            } in children
            {
                if prefix.starts_with(wanted) {
                    let child = merged.entry(prefix).or_default();
                    add(&mut child.0, blinded(sums, blind));
                    child.1 |= is_leaf;
                }
            }
        }
        let more_children = merged.len().saturating_sub(PREFIX_CHILDREN_MAX) as u64;
        let children: Vec<PrefixChild> = merged
            .into_iter()
            .take(PREFIX_CHILDREN_MAX)
            .map(|(prefix, (sums, is_leaf))| child(&prefix, node.len(), sums, is_leaf))
            .collect();
        let listed: u64 = children.iter().map(|child| child.locks).sum();
        PrefixNode {
            prefix: prefix.to_owned(),
            total: total.states.total(),
            states: total.states,
            more_children,
            more_locks: total.states.total().saturating_sub(listed),
            children,
        }
    }

    /// Finds one lock. `resource` is a text form; `source` is needed only where two sources hold the name.
    pub fn look_up(
        &self,
        backend: &BackendName,
        source: Option<&Source>,
        resource: &str,
        now: Now,
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
                .filter(|info| source.is_none_or(|wanted| info.source == *wanted))
                .filter_map(|info| state.shard.find(&info.source, name))
                .collect();
            match found.as_slice() {
                [] => {}
                [entry] => {
                    let row = slot.row(&state, entry, now);
                    let seen = state.recent.of(entry.source, &entry.name, SEEN_MAX);
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
            Some(state.recent.of(newest.source, name.as_bytes(), SEEN_MAX))
        });
        LookUp::NotHeld(seen.unwrap_or_default())
    }
}

impl Slot {
    fn row(&self, state: &SlotState, entry: &Entry, now: Now) -> Option<Lock> {
        let blind = self.blind(state, now);
        state
            .shard
            .row(entry, &self.row_context(state, blind.as_deref(), now))
    }

    fn row_context<'a>(&'a self, state: &SlotState, blind: Option<&'a str>, now: Now) -> RowContext<'a> {
        RowContext {
            backend: &self.info.name,
            kind: self.info.kind,
            poll_ms: status::period_ms(self.info.poll_ms, &state.passes),
            offset_ms: state.offset_ms.known().copied().unwrap_or(0),
            blind,
            now,
            judge: self.judge(),
        }
    }

    /// Adds the matches per state, leaving the state filter out.
    fn count(
        &self,
        state: &SlotState,
        query: &InventoryQuery,
        prefix: &[u8],
        now: Now,
        into: &mut StateCounts,
    ) {
        let shard = &state.shard;
        let blind = self.status(state, now).blinds_rows();
        let range = shard.order.prefix_range(prefix, &shard.slab);
        let mut sums = Sums::default();
        if is_plain(query) {
            sums = shard.order.sums(&range, &shard.slab);
        } else {
            let scope = query.visible.on(&self.info.name);
            let wanted = filter(query, &scope, shard);
            for entry in shard.order.ids(&range).filter_map(|id| shard.slab.get(id)) {
                if wanted(entry) {
                    sums.states.add(entry.state, 1);
                }
            }
        }
        into.merge(&blinded(sums, blind).states);
    }

    fn rows(
        &self,
        state: &SlotState,
        query: &InventoryQuery,
        prefix: &[u8],
        cursor: Option<&Cursor>,
        now: Now,
        into: &mut Vec<Ranked>,
    ) {
        let shard = &state.shard;
        let blind = self.blind(state, now);
        let scope = query.visible.on(&self.info.name);
        let wanted = filter(query, &scope, shard);
        let name = self.info.name.as_str();
        let selection = Selection {
            prefix,
            sort: query.sort,
            states: &query.states,
            blind: blind.is_some(),
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
            let key = Cursor {
                sort: query.sort,
                key: found.rank.0,
                name: entry.name.to_vec(),
                backend: name.to_owned(),
                source: lock.id.source.as_str().to_owned(),
            };
            let lock = if scope.is_everything() {
                lock
            } else {
                lock.limited()
            };
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
fn turns_names(sort: Sort) -> bool {
    sort.key == SortKey::Resource && sort.descending
}

/// Only prefix, backend and state are asked for: the blocks' sums answer that.
fn is_plain(query: &InventoryQuery) -> bool {
    query.owners.is_empty() && query.q.is_empty() && query.safety.is_none() && query.visible.is_everything()
}

fn filter<'a>(query: &'a InventoryQuery, scope: &'a Scope, shard: &'a Shard) -> impl Fn(&Entry) -> bool + 'a {
    move |entry| {
        let owner = entry.owner.as_deref();
        let owned = query.owners.is_empty() || owner.is_some_and(|o| query.owners.iter().any(|w| w == o));
        let safe = query
            .safety
            .is_none_or(|class| shard.source(entry).is_some_and(|info| info.safety.class == class));
        let found = query.q.is_empty()
            || contains(&entry.name, query.q.as_bytes())
            || owner.is_some_and(|owner| owner.contains(&query.q));
        owned && safe && found && scope.covers_bytes(&entry.name)
    }
}

fn contains(name: &[u8], part: &[u8]) -> bool {
    name.windows(part.len()).any(|window| window == part)
}

/// On a blind backend every row counts as stale.
fn blinded(mut sums: Sums, blind: bool) -> Sums {
    if blind {
        let total = sums.states.total();
        sums.states = StateCounts::default();
        sums.states.add(LockState::Stale, total);
    }
    sums
}

fn add(sums: &mut Sums, more: Sums) {
    sums.states.merge(&more.states);
    sums.waiters += more.waiters;
}

fn child(prefix: &[u8], node_len: usize, sums: Sums, is_leaf: bool) -> PrefixChild {
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
