//! Locks whose last reading does not identify the holding: an ACL began to hide it, or its session ended during the
//! read. The holding identified before may continue, so it ends only when another one, or none, is read.
//!
//! Rare, so stored outside the entries, as [`Overwrites`](crate::overwrites::Overwrites).

use std::collections::HashMap;

use domain::names::OwnerId;
use domain::observation::ObservedLock;
use domain::state::LockState;
use domain::tick::Tick;

use super::{Context, IngestOutcome};
use crate::entry::Entry;
use crate::missing_reasons::FILLED;
use crate::shard::Shard;
use crate::slab::Id;

/// Entries of the last readings that identified the holdings, by source and name.
#[derive(Debug, Default)]
pub(crate) struct Unidentified(HashMap<(u16, Box<[u8]>), Box<Entry>>);

impl Unidentified {
    fn get(&self, entry: &Entry) -> Option<&Entry> {
        if self.0.is_empty() {
            return None;
        }
        self.0
            .get(&(entry.source, entry.name.clone()))
            .map(|last| &**last)
    }

    fn keep(&mut self, last: Entry) {
        if is_identified(&last) {
            self.0.insert((last.source, last.name.clone()), Box::new(last));
        }
    }

    /// `entry`: the present one; it has the current group and rules.
    pub(super) fn take(&mut self, entry: &Entry) -> Option<Entry> {
        if self.0.is_empty() || is_identified(entry) {
            return None;
        }
        let mut last = self.0.remove(&(entry.source, entry.name.clone()))?;
        last.group = entry.group;
        last.long_after = entry.long_after;
        Some(*last)
    }
}

fn is_identified(entry: &Entry) -> bool {
    entry.gaps.generation == FILLED
}

impl Shard {
    /// Applies a reading of a known lock.
    pub(super) fn reread(
        &mut self,
        id: Id,
        lock: ObservedLock,
        sent_at: Tick,
        context: &Context,
        outcome: &mut IngestOutcome,
    ) {
        if self.may_be_same(id, &lock) {
            self.update_unidentified(id, lock, sent_at, context, outcome);
        } else {
            self.restore_identified(id, sent_at, outcome);
            self.update(id, lock, sent_at, context, outcome);
        }
    }

    /// Whether the reading does not tell if the holding identified before continues.
    fn may_be_same(&self, id: Id, lock: &ObservedLock) -> bool {
        let Some(entry) = self.slab.get(id).filter(|_| lock.generation.is_unknown()) else {
            return false;
        };
        let last = match is_identified(entry) {
            true => Some(entry),
            false => self.unidentified.get(entry),
        };
        let owner = lock.owner.known().map(OwnerId::as_str);
        let is_owner = |last: &Entry, owner: &str| {
            last.owner.as_deref() == Some(owner) || self.sharers.has_owner(last, owner)
        };
        last.is_some_and(|last| owner.is_none_or(|owner| is_owner(last, owner)))
    }

    /// Shows what was read. No event: nothing is known to have happened.
    fn update_unidentified(
        &mut self,
        id: Id,
        mut lock: ObservedLock,
        sent_at: Tick,
        context: &Context,
        outcome: &mut IngestOutcome,
    ) {
        let Some(old) = self.slab.get(id) else { return };
        let (source, group) = (old.source, old.group);
        let (first_seen, long_after) = (old.first_seen, old.long_after);
        let line = std::mem::take(&mut lock.line);
        let mut new = self.make(lock, source, sent_at, context);
        self.lines.replace(source, &new.name, line, sent_at);
        (new.group, new.first_seen, new.long_after) = (group, first_seen, long_after);
        let grain_ms = self.sources[usize::from(source)].grain_ms;
        let recheck_at;
        (new.state, recheck_at) = new.diagnose_ahead(&self.gaps, grain_ms, context.poll_interval_ms);
        self.rechecks.add(recheck_at, id);
        let Some(entry) = self.slab.get_mut(id) else {
            return;
        };
        self.groups.remove(group, entry.reported_waiters(), sent_at);
        self.groups.add(group, new.reported_waiters(), sent_at);
        if new.state == LockState::DualOwner && entry.state != LockState::DualOwner {
            self.groups.count_dual_owner(group);
        }
        let is_changed = new.state != entry.state || new.gaps != entry.gaps || new.waiters != entry.waiters;
        outcome.changes += u32::from(is_changed);
        outcome.touched |= is_changed;
        let old = std::mem::replace(entry, new);
        self.unidentified.keep(old);
        self.order.touch(id, &self.slab);
    }

    /// The next reading is compared with the last one that identified the holding.
    fn restore_identified(&mut self, id: Id, at: Tick, outcome: &mut IngestOutcome) {
        let Some(entry) = self.slab.get_mut(id) else {
            return;
        };
        let Some(last) = self.unidentified.take(entry) else {
            return;
        };
        self.groups.remove(entry.group, entry.reported_waiters(), at);
        self.groups.add(last.group, last.reported_waiters(), at);
        *entry = last;
        outcome.changes += 1;
        outcome.touched = true;
        self.order.touch(id, &self.slab);
    }
}
