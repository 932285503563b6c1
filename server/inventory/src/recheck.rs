//! Rechecks: locks to read again before the next scan, because time alone changes their state:
//! near expiry, silent for too long, or expired. So a dead holder is detected before its lease
//! ends, however short that is.

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
pub(super) struct Rechecks(BinaryHeap<Reverse<(Tick, Id)>>);

/// Due rechecks, and the time of the next one.
#[derive(Debug, Default)]
pub struct DueRechecks {
    pub names: Vec<(Source, Resource)>,
    pub next: Option<Tick>,
}

impl Rechecks {
    pub(super) fn add(&mut self, at: Option<Tick>, id: Id) {
        if let Some(at) = at.filter(|_| self.0.len() < RECHECKS_MAX) {
            self.0.push(Reverse((at.plus(RECHECK_LATE_MS), id)));
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// When the first one is due.
    pub(super) fn first(&self) -> Option<Tick> {
        self.0.peek().map(|Reverse((at, _))| *at)
    }
}

impl Shard {
    /// Takes the due rechecks. A lock that was read meanwhile has its own later entry, or needs
    /// none.
    pub(super) fn due_rechecks(&mut self, now: Tick, poll_interval_ms: i64) -> DueRechecks {
        let mut names = Vec::new();
        while let Some(Reverse((at, id))) = self.rechecks.0.peek().copied()
            && at <= now
        {
            self.rechecks.0.pop();
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
}
