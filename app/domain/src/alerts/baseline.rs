//! Aggregates of past events: usual hold times per lock, and the windows of the rules. Fed with
//! rows of the history by the live rules; the preview uses the same functions for holdings.

use std::collections::HashMap;

use super::holdings::{Entry, Holdings, Occurrence};
use super::refusal_counts::RefusalCounts;
use super::rule_windows::{PrefixKey, RuleWindows};
use super::usual_hold_time::{HoldTimes, UsualHold};
use crate::history::HistoryEvent;
use crate::history::template::template;
use crate::names::{BackendName, LockId};

/// Limits: number of locks, bytes of their names together, number of prefixes per rule.
pub(super) const LOCKS_MAX: usize = 100_000;
const NAME_BYTES_MAX: usize = 32 * 1024 * 1024;
pub(super) const PREFIXES_MAX: usize = 5_000;

#[derive(Debug, Default)]
pub struct Baseline {
    pub(super) locks: HashMap<LockId, Track>,
    name_bytes: usize,
    pub(super) windows: Vec<RuleWindows>,
    pub(super) refused: HashMap<PrefixKey, RefusalCounts>,
    /// How often old locks were evicted.
    forgotten: u64,
}

/// Acquires that were not granted, per template. Only the lease service reports them; they
/// leave no other trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedAcquire {
    pub at: i64,
    pub backend: BackendName,
    pub prefix: String,
    pub times: u64,
}

#[derive(Debug, Default)]
pub(super) struct Track {
    /// Time of the last event.
    touched_at: i64,
    pub(super) holdings: Holdings,
    pub(super) holds: HoldTimes,
}

impl Baseline {
    /// Applies one event. Events arrive sorted by time.
    pub fn apply(&mut self, event: &HistoryEvent) {
        let id = LockId {
            backend: event.backend.clone(),
            source: event.source.clone(),
            resource: event.resource.clone(),
        };
        let name_bytes = id.resource.as_bytes().len();
        let is_full = self.locks.len() >= LOCKS_MAX || self.name_bytes + name_bytes > NAME_BYTES_MAX;
        if is_full && !self.locks.contains_key(&id) {
            self.forget_half();
        }
        let track = self.locks.entry(id).or_insert_with(|| {
            self.name_bytes += name_bytes;
            Track::default()
        });
        track.touched_at = event.at;
        let mut entries: Vec<Entry> = Vec::with_capacity(3);
        let held = track
            .holdings
            .apply(&Occurrence::from(event), &mut |entry| entries.push(entry));
        if let Some(length) = held {
            track.holds.add(length);
        }
        if entries.is_empty() || self.windows.is_empty() {
            return;
        }
        let name = event.resource.as_bytes();
        let prefix = (event.backend.clone(), template(name));
        for windows in &mut self.windows {
            windows.add(&prefix, name, event.at, &entries);
        }
    }

    /// Evicts the half with the oldest events, preferring locks that are free. Names that are
    /// used once (jobs, orders) would otherwise grow without bound.
    fn forget_half(&mut self) {
        self.forgotten += 1;
        let free = self.locks.values().filter(|track| !track.holdings.is_open());
        let mut times: Vec<i64> = free.map(|track| track.touched_at).collect();
        let are_held_kept = times.len() > self.locks.len() / 4;
        if !are_held_kept {
            times = self.locks.values().map(|track| track.touched_at).collect();
        }
        let middle = times.len() / 2;
        let (_, oldest_kept, _) = times.select_nth_unstable(middle);
        let oldest_kept = *oldest_kept;
        self.locks
            .retain(|_, track| track.touched_at > oldest_kept || (are_held_kept && track.holdings.is_open()));
        let name_bytes = self.locks.keys().map(|id| id.resource.as_bytes().len());
        self.name_bytes = name_bytes.sum();
    }

    /// Replaces the refusals from `since` on. `all` is sorted by time.
    pub fn refused(&mut self, since: i64, all: Vec<RefusedAcquire>) {
        self.refused.retain(|_, counts| {
            counts.truncate(since);
            !counts.is_empty()
        });
        for refusal in all.into_iter().filter(|refusal| refusal.at >= since) {
            let counts = self.refused.entry((refusal.backend, refusal.prefix)).or_default();
            counts.add(refusal.at, refusal.times);
        }
    }

    /// Removes refusals before `from`: no window reaches that far.
    pub fn forget_refused(&mut self, from: i64) {
        self.refused.retain(|_, counts| {
            counts.forget(from);
            !counts.is_empty()
        });
    }

    /// Rises when the hold times of many locks are evicted.
    pub const fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Usual hold time of this lock; `None` until it was observed often enough.
    pub fn usual_hold(&self, id: &LockId) -> Option<UsualHold> {
        self.locks.get(id)?.holds.usual()
    }

    pub fn p95_ms(&self, id: &LockId) -> Option<i64> {
        self.usual_hold(id).map(|usual| usual.p95_ms)
    }
}
