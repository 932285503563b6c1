//! The locks of one backend: indexed by name, sorted, changed only by [`super::ingest`].

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use domain::names::{Resource, Source};
use domain::safety::Safety;
use domain::tick::Tick;
use hashbrown::HashTable;

use super::entry::Entry;
use super::events::LockEvent;
use super::freed_names::FreedNames;
use super::ingest::Unidentified;
use super::known_parts::KnownParts;
use super::missing_reasons::MissingReasons;
use super::name_index::NameIndex;
use super::overwrites::Overwrites;
use super::recheck::Rechecks;
use super::sharers::Sharers;
use super::slab::{Id, Slab};
use super::template_groups::Groups;
use super::wait_tracker::WaitTracker;

/// Most owners stored once for all of their locks; beyond that the table is cleared.
const OWNERS_SHARED_MAX: usize = 20_000;

/// Forced unlocks without an observed end; beyond that they are reported as plain releases.
const UNLOCKED_MAX: usize = 1_000;

/// A source of locks inside the backend.
#[derive(Debug, Clone)]
pub(super) struct SourceInfo {
    pub(super) source: Source,
    pub(super) safety: Safety,
    pub(super) grain_ms: i64,
    pub(super) locks: u64,
    pub(super) fault: Option<String>,
    pub(super) known: KnownParts,
}

/// A holding force-released by this console.
#[derive(Debug)]
pub(super) struct Unlocked {
    pub(super) source: u16,
    pub(super) name: Box<[u8]>,
    pub(super) at: Tick,
}

#[derive(Debug, Default)]
pub(super) struct Shard {
    pub(super) slab: Slab,
    pub(super) order: NameIndex,
    pub(super) gaps: MissingReasons,
    pub(super) groups: Groups,
    pub(super) sources: Vec<SourceInfo>,
    /// Force-released and not yet seen to be gone.
    pub(super) unlocked: Vec<Unlocked>,
    /// New entries that are in the slab but not in the index yet.
    pub(super) pending: Vec<Id>,
    /// Waiters per lock.
    pub(super) lines: WaitTracker,
    pub(super) overwrites: Overwrites,
    pub(super) sharers: Sharers,
    pub(super) unidentified: Unidentified,
    pub(super) rechecks: Rechecks,
    /// Read by name as free since the current scan began.
    pub(super) freed: FreedNames,
    by_name: HashTable<Id>,
    hasher: RandomState,
    owners: HashSet<Arc<str>>,
}

impl Shard {
    pub(super) fn lookup(&self, source: u16, name: &[u8]) -> Option<Id> {
        let hash = self.hasher.hash_one((source, name));
        let is_same = |id: &Id| {
            self.slab
                .get(*id)
                .is_some_and(|e| e.source == source && *e.name == *name)
        };
        self.by_name.find(hash, is_same).copied()
    }

    pub(super) fn find(&self, source: &Source, resource: &Resource) -> Option<&Entry> {
        self.id_of(source, resource).and_then(|id| self.slab.get(id))
    }

    pub(super) fn id_of(&self, source: &Source, resource: &Resource) -> Option<Id> {
        let source = self.source_number(source)?;
        self.lookup(source, resource.as_bytes())
    }

    /// The locks of these events.
    pub(super) fn lock_names(&self, events: &[LockEvent]) -> Vec<(Source, Resource)> {
        let lock_of = |event: &LockEvent| {
            let info = self.sources.get(usize::from(event.source))?;
            Some((info.source.clone(), Resource::from_bytes(&event.name)))
        };
        events.iter().filter_map(lock_of).collect()
    }

    pub(super) fn source_number(&self, source: &Source) -> Option<u16> {
        self.sources
            .iter()
            .position(|info| info.source == *source)
            .and_then(|at| u16::try_from(at).ok())
    }

    pub(super) fn source(&self, entry: &Entry) -> Option<&SourceInfo> {
        self.sources.get(usize::from(entry.source))
    }

    /// Adds an entry with a new name; it joins the index at the next flush.
    pub(super) fn insert(&mut self, entry: Entry) -> Id {
        self.groups
            .add(entry.group, entry.reported_waiters(), entry.read_at);
        let Self {
            slab,
            by_name,
            hasher,
            ..
        } = self;
        let hash = hasher.hash_one((entry.source, &*entry.name));
        if let Some(info) = self.sources.get_mut(usize::from(entry.source)) {
            info.locks += 1;
        }
        let id = slab.insert(entry);
        by_name.insert_unique(hash, id, |id| {
            slab.get(*id)
                .map_or(0, |entry| hasher.hash_one((entry.source, &*entry.name)))
        });
        self.pending.push(id);
        id
    }

    /// Removes an entry from everything but the index, which the caller updates first.
    pub(super) fn forget(&mut self, id: Id, at: Tick) -> Option<Entry> {
        let entry = self.slab.get(id)?;
        let hash = self.hasher.hash_one((entry.source, &*entry.name));
        if let Ok(found) = self.by_name.find_entry(hash, |other| *other == id) {
            found.remove();
        }
        let entry = self.slab.remove(id)?;
        self.overwrites.forget(&entry);
        self.groups.remove(entry.group, entry.reported_waiters(), at);
        if let Some(info) = self.sources.get_mut(usize::from(entry.source)) {
            info.locks -= 1;
        }
        Some(entry)
    }

    /// The next end of this lock is reported as a forced release.
    pub(super) fn record_unlocked(&mut self, source: &Source, resource: &Resource, at: Tick) {
        let Some(source) = self.source_number(source) else {
            return;
        };
        let name: Box<[u8]> = resource.as_bytes().into();
        if self.lookup(source, &name).is_some() && self.unlocked.len() < UNLOCKED_MAX {
            self.unlocked.push(Unlocked { source, name, at });
        }
    }

    /// One shared copy of an owner's name for all of its locks.
    pub(super) fn intern_owner(&mut self, owner: &str) -> Arc<str> {
        if let Some(shared) = self.owners.get(owner) {
            return shared.clone();
        }
        let fresh: Arc<str> = owner.into();
        if self.owners.len() >= OWNERS_SHARED_MAX {
            // Many owners are rarely shared, and a sweep per new one would cost more than it
            // saves.
            self.owners.clear();
        }
        self.owners.insert(fresh.clone());
        fresh
    }
}
