//! Rechecks: locks to read again before the next scan, because time alone changes their state:
//! near expiry, silent for too long, or expired. So a dead holder is detected before its lease
//! ends, however short that is. Also locks on which a scan and a refresh disagree.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use domain::names::{Resource, Source};
use domain::tick::Tick;

use super::shard::Shard;
use super::slab::Id;

/// Queued rechecks per backend; the next scan finds the others.
const RECHECKS_MAX: usize = 500;
/// Delay of a recheck, in milliseconds: a stored deadline is never later than the true one, and
/// the response takes a moment.
const RECHECK_LATE_MS: i64 = 10;

#[derive(Debug, Default)]
pub(super) struct Rechecks {
    timed: BinaryHeap<Reverse<(Tick, Id)>>,
    /// Two readings disagree: to be read again at once.
    conflicting: Vec<Id>,
}

/// Due rechecks, and the time of the next one.
#[derive(Debug, Default)]
pub struct DueRechecks {
    pub names: Vec<(Source, Resource)>,
    pub next: Option<Tick>,
}

impl Rechecks {
    pub(super) fn add(&mut self, at: Option<Tick>, id: Id) {
        if let Some(at) = at.filter(|_| self.timed.len() < RECHECKS_MAX) {
            self.timed.push(Reverse((at.plus(RECHECK_LATE_MS), id)));
        }
    }

    /// Adds a lock that a scan lists and a later refresh found free.
    pub(super) fn add_conflict(&mut self, id: Id) {
        if self.conflicting.len() < RECHECKS_MAX {
            self.conflicting.push(id);
        }
    }

    pub(super) fn has_conflicts(&self) -> bool {
        !self.conflicting.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.timed.clear();
    }

    /// When the first one is due.
    pub(super) fn first(&self) -> Option<Tick> {
        self.timed.peek().map(|Reverse((at, _))| *at)
    }
}

impl Shard {
    /// Takes the due rechecks. A lock that was read meanwhile has its own later entry, or needs
    /// none.
    pub(super) fn due_rechecks(&mut self, now: Tick, poll_interval_ms: i64) -> DueRechecks {
        let conflicting = std::mem::take(&mut self.rechecks.conflicting).into_iter();
        let mut names: Vec<(Source, Resource)> = conflicting.filter_map(|id| self.name_of(id)).collect();
        while let Some(Reverse((at, id))) = self.rechecks.timed.peek().copied()
            && at <= now
        {
            self.rechecks.timed.pop();
            let found = self.slab.get(id).and_then(|entry| {
                let info = self.source(entry)?;
                let (_, recheck_at) = entry.diagnose_ahead(&self.gaps, info.grain_ms, poll_interval_ms);
                let is_due = recheck_at.is_some_and(|recheck_at| recheck_at <= now);
                is_due.then(|| (info.source.clone(), Resource::from_bytes(&entry.name)))
            });
            names.extend(found);
        }
        DueRechecks {
            names,
            next: self.rechecks.first(),
        }
    }

    fn name_of(&self, id: Id) -> Option<(Source, Resource)> {
        let entry = self.slab.get(id)?;
        let info = self.source(entry)?;
        Some((info.source.clone(), Resource::from_bytes(&entry.name)))
    }
}
