//! The locks of one backend: looked up by name, kept in order, changed only by [`super::ingest`].

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use domain::names::{Resource, Source};
use domain::observation::Tick;
use domain::safety::Safety;
use hashbrown::HashTable;

use super::entry::Entry;
use super::events::LockEvent;
use super::gaps::Gaps;
use super::groups::Groups;
use super::lines::Lines;
use super::order::Order;
use super::overwrites::Overwrites;
use super::recheck::Rechecks;
use super::slab::{Id, Slab};

/// Owners remembered to be kept once although many locks have them; then the memory starts anew.
const OWNERS_SHARED_MAX: usize = 20_000;

/// Forced unlocks whose end has not been seen yet; beyond that they are told as plain releases.
const UNLOCKED_MAX: usize = 1_000;

/// One place in the backend where locks are found.
#[derive(Debug, Clone)]
pub(super) struct SourceInfo {
    pub(super) source: Source,
    pub(super) safety: Safety,
    pub(super) grain_ms: i64,
    pub(super) locks: u64,
    pub(super) fault: Option<String>,
}

/// A holding that this console has released by force.
#[derive(Debug)]
pub(super) struct Unlocked {
    pub(super) source: u16,
    pub(super) name: Box<[u8]>,
}

#[derive(Debug, Default)]
pub(super) struct Shard {
    pub(super) slab: Slab,
    pub(super) order: Order,
    pub(super) gaps: Gaps,
    pub(super) groups: Groups,
    pub(super) sources: Vec<SourceInfo>,
    /// Released by force and not seen to be gone yet.
    pub(super) unlocked: Vec<Unlocked>,
    /// New entries that are in the slab but not in the order yet.
    pub(super) pending: Vec<Id>,
    /// Who waits for what.
    pub(super) lines: Lines,
    pub(super) overwrites: Overwrites,
    pub(super) rechecks: Rechecks,
    by_name: HashTable<Id>,
    hasher: RandomState,
    owners: HashSet<Arc<str>>,
}

impl Shard {
    pub(super) fn lookup(&self, source: u16, name: &[u8]) -> Option<Id> {
        let hash = self.hasher.hash_one((source, name));
        let same = |id: &Id| {
            self.slab
                .get(*id)
                .is_some_and(|e| e.source == source && *e.name == *name)
        };
        self.by_name.find(hash, same).copied()
    }

    pub(super) fn find(&self, source: &Source, resource: &Resource) -> Option<&Entry> {
        self.id_of(source, resource).and_then(|id| self.slab.get(id))
    }

    pub(super) fn id_of(&self, source: &Source, resource: &Resource) -> Option<Id> {
        let source = self.source_number(source)?;
        self.lookup(source, resource.as_bytes())
    }

    /// Which locks these events are about.
    pub(super) fn named(&self, events: &[LockEvent]) -> Vec<(Source, Resource)> {
        let named = |event: &LockEvent| {
            let info = self.sources.get(usize::from(event.source))?;
            Some((info.source.clone(), Resource::from_bytes(&event.name)))
        };
        events.iter().filter_map(named).collect()
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

    /// Adds an entry whose name the shard does not hold; it joins the order at the next flush.
    pub(super) fn insert(&mut self, entry: Entry) -> Id {
        self.groups.add(entry.group, entry.told_waiters(), entry.read_at);
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

    /// Removes an entry from everywhere but the order, which the caller mends first.
    pub(super) fn forget(&mut self, id: Id, at: Tick) -> Option<Entry> {
        let entry = self.slab.get(id)?;
        let hash = self.hasher.hash_one((entry.source, &*entry.name));
        if let Ok(found) = self.by_name.find_entry(hash, |other| *other == id) {
            found.remove();
        }
        let entry = self.slab.remove(id)?;
        self.overwrites.forget(&entry);
        self.groups.remove(entry.group, entry.told_waiters(), at);
        if let Some(info) = self.sources.get_mut(usize::from(entry.source)) {
            info.locks -= 1;
        }
        Some(entry)
    }

    /// The next end of it is told as one by force.
    pub(super) fn note_unlocked(&mut self, source: &Source, resource: &Resource) {
        let Some(source) = self.source_number(source) else {
            return;
        };
        let name: Box<[u8]> = resource.as_bytes().into();
        if self.lookup(source, &name).is_some() && self.unlocked.len() < UNLOCKED_MAX {
            self.unlocked.push(Unlocked { source, name });
        }
    }

    /// One copy of an owner's name for all the locks it holds.
    pub(super) fn share(&mut self, owner: &str) -> Arc<str> {
        if let Some(kept) = self.owners.get(owner) {
            return kept.clone();
        }
        let fresh: Arc<str> = owner.into();
        if self.owners.len() >= OWNERS_SHARED_MAX {
            // Owners that are many are seldom shared, and a sweep per new one would cost more than it saves.
            self.owners.clear();
        }
        self.owners.insert(fresh.clone());
        fresh
    }
}
