//! Locks to read again before the next scan, because time alone gives them another state: about to be near expiry, silent
//! for too long, or out of time. So a holder that dies is found before its lease ends, however short that is.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use domain::names::{Resource, Source};
use domain::observation::Tick;

use super::shard::Shard;
use super::slab::Id;

/// Locks of one backend that wait to be read again; the next scan finds the others.
const RECHECKS_MAX: usize = 500;
/// Read so much later, in milliseconds: a deadline is never later than in truth, and the answer takes a moment.
const RECHECK_LATE_MS: i64 = 10;

#[derive(Debug, Default)]
pub(super) struct Rechecks(BinaryHeap<Reverse<(Tick, Id)>>);

/// What is due, and when the next is.
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
    /// Takes out what is due. A lock that was read meanwhile has its own later entry, or needs none.
    pub(super) fn due_rechecks(&mut self, now: Tick, poll_ms: i64) -> DueRechecks {
        let mut names = Vec::new();
        while let Some(Reverse((at, id))) = self.rechecks.0.peek().copied()
            && at <= now
        {
            self.rechecks.0.pop();
            let found = self.slab.get(id).and_then(|entry| {
                let info = self.source(entry)?;
                let (_, wanted) = entry.judge_ahead(&self.gaps, info.grain_ms, poll_ms);
                let is_due = wanted.is_some_and(|wanted| wanted <= now);
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
