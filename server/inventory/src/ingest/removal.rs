//! Removals from a shard: by name, by a forced release, at the end of a scan.
//!
//! **Invariant:** a lock is removed only if its source was read completely without it, or if it
//! was read by name and not found. A failed or partial scan removes nothing.

use std::collections::HashSet;

use domain::names::{Resource, Source};
use domain::state::LockState;
use domain::tick::Tick;

use backends::NamePredicate;

use super::events::endings;
use super::{Context, IngestOutcome};
use crate::entry::Entry;
use crate::shard::{Shard, Unlocked};
use crate::sharers::{Share, Sharing};
use crate::slab::Id;

/// Sources and parts that a scan has read completely.
pub(crate) struct ReadSources<'a> {
    pub(crate) complete: &'a [Source],
    /// Parts of the other sources, by name.
    pub(crate) parts: &'a [(Source, NamePredicate)],
}

impl ReadSources<'_> {
    fn is_complete(&self, source: &Source) -> bool {
        self.complete.contains(source)
    }

    fn has(&self, source: &Source, name: &[u8]) -> bool {
        let is_part = |(part, covers): &(Source, NamePredicate)| part == source && covers(name);
        self.is_complete(source) || self.parts.iter().any(is_part)
    }
}

impl Shard {
    pub(super) fn remove_named(
        &mut self,
        source: &Source,
        resource: &Resource,
        at: Tick,
        context: &Context,
        outcome: &mut IngestOutcome,
    ) {
        let Some(number) = self.source_number(source) else {
            return;
        };
        self.freed.record(number, resource.as_bytes(), at);
        let Some(id) = self.lookup(number, resource.as_bytes()) else {
            return;
        };
        // Read as held after this reading was sent.
        if self.slab.get(id).is_some_and(|entry| entry.read_at > at) {
            return;
        }
        self.remove_from_order(id);
        self.record_end(id, at, context, outcome);
    }

    /// Its record still exists but is no lock any more. A release before the start of this
    /// process comes from the history.
    pub(crate) fn remove_force_released(
        &mut self,
        source: &Source,
        resource: &Resource,
        at: Tick,
        context: &Context,
        outcome: &mut IngestOutcome,
    ) {
        let id = self.id_of(source, resource);
        let Some((id, entry)) = id.and_then(|id| Some((id, self.slab.get(id)?))) else {
            return;
        };
        if entry.read_at > at {
            return;
        }
        let is_end_known = entry.deadline < Tick(0);
        self.remove_from_order(id);
        if let Some((entry, shares)) = self.end(id, at, outcome)
            && !is_end_known
        {
            take_unlocked(&mut self.unlocked, &entry);
            outcome.events.extend(endings(&entry, &shares, true, at, context));
        }
    }

    /// Requires that its entry is still in the slab.
    fn remove_from_order(&mut self, id: Id) {
        self.pending.retain(|pending| *pending != id);
        self.order.remove(id, &self.slab);
    }

    fn record_end(&mut self, id: Id, at: Tick, context: &Context, outcome: &mut IngestOutcome) {
        if let Some((entry, shares)) = self.end(id, at, outcome) {
            let is_unlocked = take_unlocked(&mut self.unlocked, &entry);
            if self.gaps.has_holder(&entry) {
                outcome
                    .events
                    .extend(endings(&entry, &shares, is_unlocked, at, context));
            }
        }
    }

    /// Returns the last reading that identified the holding, and the owners of a shared lock.
    fn end(&mut self, id: Id, at: Tick, outcome: &mut IngestOutcome) -> Option<(Entry, Vec<Share>)> {
        let entry = self.forget(id, at)?;
        self.lines.remove(entry.source, &entry.name);
        outcome.changes += 1;
        outcome.touched = true;
        let shares = self.sharers.take(&entry).unwrap_or_default();
        Some((self.unidentified.take(&entry).unwrap_or(entry), shares))
    }

    /// Ends a scan: removes missing locks of the completely read sources; marks locks of the
    /// others that have not been read for `stale_after_ms` as stale.
    pub(crate) fn finish(
        &mut self,
        read: &ReadSources<'_>,
        at: Tick,
        stale_after_ms: i64,
        context: &mut Context,
    ) -> IngestOutcome {
        self.flush();
        context.last_flush = at;
        let mut outcome = IngestOutcome::default();
        let is_missing = |shard: &Self, entry: &Entry| {
            let source = shard.source(entry).map(|info| &info.source);
            entry.pass != context.pass && source.is_some_and(|source| read.has(source, &entry.name))
        };
        let missing: Vec<Id> = self
            .slab
            .iter()
            .filter(|(_, entry)| is_missing(self, entry))
            .map(|(id, _)| id)
            .collect();
        if !missing.is_empty() {
            let slab = &self.slab;
            let missing_set: HashSet<Id> = missing.iter().copied().collect();
            self.order
                .retain(|id| slab.get(id).is_some() && !missing_set.contains(&id));
            for id in missing {
                self.record_end(id, at, context, &mut outcome);
            }
        }
        if !self.sources.iter().all(|info| read.is_complete(&info.source)) {
            self.mark_stale(at, stale_after_ms, &mut outcome);
        }
        self.order.recompute_sums(&self.slab);
        outcome
    }

    fn mark_stale(&mut self, at: Tick, stale_after_ms: i64, outcome: &mut IngestOutcome) {
        let old: Vec<Id> = self
            .slab
            .iter()
            .filter(|(_, e)| e.state != LockState::Stale && at.since(e.read_at) > stale_after_ms)
            .map(|(id, _)| id)
            .collect();
        for id in old {
            if let Some(entry) = self.slab.get_mut(id) {
                entry.state = LockState::Stale;
                outcome.changes += 1;
                outcome.touched = true;
            }
            self.order.touch(id, &self.slab);
        }
    }
}

/// Whether a forced unlock is between two readings of a lock: the holding is over, or new owners hold the lock with some of those
/// before. Owners join without an unlock as well, so the reading has to be sent after it.
pub(super) fn ended_by_unlock(
    unlocked: &mut Vec<Unlocked>,
    entry: &Entry,
    (is_same, sharing): (bool, Option<&Sharing>),
    sent_at: Tick,
) -> bool {
    if sharing.map_or(!is_same, Sharing::is_over) {
        return take_unlocked(unlocked, entry);
    }
    // Later readings of a shared lock are not the result of the unlock, whatever this one shows.
    sharing.is_some_and(|sharing| take_unlocked_before(unlocked, entry, sent_at) && sharing.has_begun())
}

fn take_unlocked(unlocked: &mut Vec<Unlocked>, entry: &Entry) -> bool {
    take_unlocked_before(unlocked, entry, Tick(i64::MAX))
}

/// Only a release that ended at `until` or earlier.
fn take_unlocked_before(unlocked: &mut Vec<Unlocked>, entry: &Entry, until: Tick) -> bool {
    let is_entry =
        |item: &Unlocked| item.source == entry.source && item.name == entry.name && item.at <= until;
    let place = unlocked.iter().position(is_entry);
    place.map(|place| unlocked.swap_remove(place)).is_some()
}
