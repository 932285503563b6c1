//! Removals from a shard: by name, by a forced release, at the end of a scan.
//!
//! **Invariant:** a lock is removed only if its source was read completely without it, or if it
//! was read by name and not found. A failed or partial scan removes nothing.

use domain::names::{Resource, Source};
use domain::state::LockState;
use domain::tick::Tick;

use super::events::ending;
use super::{Context, IngestOutcome};
use crate::entry::Entry;
use crate::shard::{Shard, Unlocked};
use crate::slab::Id;

impl Shard {
    pub(super) fn remove_named(
        &mut self,
        source: &Source,
        resource: &Resource,
        at: Tick,
        context: &Context,
        outcome: &mut IngestOutcome,
    ) {
        let Some(id) = self.id_of(source, resource) else {
            return;
        };
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
        let is_told = entry.deadline < Tick(0);
        self.remove_from_order(id);
        if let Some(entry) = self.end(id, at, outcome)
            && !is_told
        {
            take_unlocked(&mut self.unlocked, &entry);
            outcome.events.push(ending(&entry, true, at, context));
        }
    }

    /// Requires that its entry is still in the slab.
    fn remove_from_order(&mut self, id: Id) {
        self.pending.retain(|pending| *pending != id);
        self.order.remove(id, &self.slab);
    }

    fn record_end(&mut self, id: Id, at: Tick, context: &Context, outcome: &mut IngestOutcome) {
        if let Some(entry) = self.end(id, at, outcome) {
            let is_unlocked = take_unlocked(&mut self.unlocked, &entry);
            outcome.events.push(ending(&entry, is_unlocked, at, context));
        }
    }

    fn end(&mut self, id: Id, at: Tick, outcome: &mut IngestOutcome) -> Option<Entry> {
        let entry = self.forget(id, at)?;
        self.lines.gone(entry.source, &entry.name);
        outcome.changes += 1;
        outcome.touched = true;
        Some(entry)
    }

    /// Ends a scan: removes missing locks of the completely read sources; marks locks of the
    /// others that have not been read for `stale_after_ms` as stale.
    pub(crate) fn finish(
        &mut self,
        whole: &[Source],
        at: Tick,
        stale_after_ms: i64,
        context: &mut Context,
    ) -> IngestOutcome {
        self.flush();
        context.last_flush = at;
        let mut outcome = IngestOutcome::default();
        let whole: Vec<bool> = self
            .sources
            .iter()
            .map(|info| whole.contains(&info.source))
            .collect();
        let is_whole = |entry: &Entry| whole.get(usize::from(entry.source)).copied().unwrap_or(false);
        let missing: Vec<Id> = self
            .slab
            .iter()
            .filter(|(_, entry)| entry.pass != context.pass && is_whole(entry))
            .map(|(id, _)| id)
            .collect();
        if !missing.is_empty() {
            let slab = &self.slab;
            let pass = context.pass;
            self.order
                .retain(|id| slab.get(id).is_some_and(|e| e.pass == pass || !is_whole(e)));
            for id in missing {
                self.record_end(id, at, context, &mut outcome);
            }
        }
        if whole.contains(&false) {
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

pub(super) fn take_unlocked(unlocked: &mut Vec<Unlocked>, entry: &Entry) -> bool {
    let is_it = |it: &Unlocked| it.source == entry.source && it.name == entry.name;
    let place = unlocked.iter().position(is_it);
    place.map(|place| unlocked.swap_remove(place)).is_some()
}
