//! Bounded queue of changes for the history writer. The observer never waits for a disk.
//!
//! **Invariant:** dropped changes are counted, so that the history can record a gap.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chrono::{DateTime, Utc};
use domain::lock_detail::EventKind;
use domain::names::{BackendName, Resource, Source};
use parking_lot::{Mutex, MutexGuard};

use super::events::LockEvent;
use super::shard::Shard;

/// Capacity for changes and for outages.
const WAITING_MAX: usize = 200_000;
const OUTAGES_MAX: usize = 1_000;
/// Capacity for names and owners of changes together, in bytes: a name may have 64 KiB.
const WAITING_BYTES_MAX: usize = 64 * 1024 * 1024;

/// One change of one lock, with its full name.
#[derive(Debug, Clone)]
pub struct LockChange {
    pub kind: EventKind,
    pub at: DateTime<Utc>,
    pub backend: BackendName,
    pub source: Source,
    pub resource: Resource,
    pub owner: Option<Arc<str>>,
    pub token: Option<u64>,
    /// Template of the name.
    pub template: Arc<str>,
    /// TTL after the change; `None` without a TTL or if it was not reported.
    pub ttl_ms: Option<u32>,
    /// If the TTL is not reported: the largest time left that was observed.
    pub ttl_seen_ms: Option<u32>,
    /// Without a TTL: silence longer than this counts as not renewing.
    pub stale_after_ms: Option<u32>,
    /// Waiters after the change, if the backend reports them.
    pub waiters: Option<u32>,
    /// Hold time of an ended holding, if its beginning is known.
    pub held_ms: Option<i64>,
    /// `held_ms` is the middle of two bounds: the holding ended in an outage.
    pub is_held_uncertain: bool,
    /// First seen after an outage: it happened between this time and `at`.
    pub not_before: Option<DateTime<Utc>>,
    /// Wait before a grant.
    pub waited_ms: Option<i64>,
    /// More changes happened between two readings than are observable.
    pub is_sampled: bool,
}

/// A time in which a backend was not observed, recorded when it is observed again.
#[derive(Debug, Clone)]
pub struct Outage {
    pub backend: BackendName,
    pub began: DateTime<Utc>,
    pub ended: DateTime<Utc>,
}

/// Taken from the queue, oldest first.
#[derive(Debug, Default)]
pub struct ChangeBatch {
    pub changes: VecDeque<LockChange>,
    pub outages: Vec<Outage>,
    /// Number of dropped changes.
    pub lost: u64,
    /// Bytes of the names and owners of the changes.
    bytes: usize,
}

#[derive(Debug, Default)]
pub struct ChangeQueue {
    /// `None`: there is no consumer.
    waiting: Mutex<Option<ChangeBatch>>,
    /// Number of writes of events to the history.
    written: AtomicU64,
}

impl ChangeQueue {
    /// Starts queueing changes for [`take`](Self::take).
    pub fn open(&self) {
        self.lock().get_or_insert_default();
    }

    /// Called after the commit of events: readers have new rows.
    pub fn wrote(&self) {
        self.written.fetch_add(1, Ordering::SeqCst);
    }

    /// Number of event writes; `None` if this process writes none.
    pub fn written(&self) -> Option<u64> {
        let is_open = self.lock().is_some();
        is_open.then(|| self.written.load(Ordering::SeqCst))
    }

    pub fn take(&self) -> ChangeBatch {
        self.lock().as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Puts unwritten changes back at the front.
    pub fn requeue(&self, taken: ChangeBatch) {
        let mut waiting = self.lock();
        let Some(waiting) = waiting.as_mut() else { return };
        let later = std::mem::replace(waiting, taken);
        // The consumer may have removed some changes.
        waiting.bytes = waiting.changes.iter().map(LockChange::text_bytes).sum();
        waiting.lost += later.lost;
        waiting.outages.extend(later.outages);
        for change in later.changes {
            waiting.push(change);
        }
    }

    pub(super) fn record(&self, backend: &BackendName, shard: &Shard, events: &[LockEvent]) {
        if events.is_empty() {
            return;
        }
        let mut waiting = self.lock();
        let Some(waiting) = waiting.as_mut() else { return };
        for event in events {
            let Some(info) = shard.sources.get(usize::from(event.source)) else {
                continue;
            };
            waiting.push(LockChange {
                kind: event.kind,
                at: event.at,
                backend: backend.clone(),
                source: info.source.clone(),
                resource: Resource::from_bytes(&event.name),
                owner: event.owner.clone(),
                token: event.token,
                template: shard.groups.text(event.group),
                ttl_ms: event.ttl_ms,
                ttl_seen_ms: event.ttl_seen_ms,
                stale_after_ms: event.stale_after_ms,
                waiters: event.waiters,
                held_ms: event.held_ms,
                is_held_uncertain: event.is_held_uncertain,
                not_before: event.not_before,
                waited_ms: event.waited_ms,
                is_sampled: event.is_sampled,
            });
        }
    }

    pub(super) fn record_outage(&self, outage: Outage) {
        if let Some(waiting) = self.lock().as_mut()
            && waiting.outages.len() < OUTAGES_MAX
        {
            waiting.outages.push(outage);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<ChangeBatch>> {
        self.waiting.lock()
    }
}

impl LockChange {
    fn text_bytes(&self) -> usize {
        self.resource.as_bytes().len() + self.owner.as_ref().map_or(0, |owner| owner.len())
    }
}

impl ChangeBatch {
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.outages.is_empty() && self.lost == 0
    }

    fn push(&mut self, change: LockChange) {
        // Renewals are frequent and least important: they are dropped first.
        let share = match change.kind {
            EventKind::Renewed => 2,
            _ => 1,
        };
        let bytes = self.bytes + change.text_bytes();
        if self.changes.len() < WAITING_MAX / share && bytes <= WAITING_BYTES_MAX / share {
            self.bytes = bytes;
            self.changes.push_back(change);
        } else {
            self.lost += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known_parts::KnownParts;
    use crate::shard::SourceInfo;

    fn events(count: usize) -> Vec<LockEvent> {
        let event = LockEvent {
            kind: EventKind::Acquired,
            at: DateTime::UNIX_EPOCH,
            source: 0,
            name: Box::from(*b"r"),
            owner: None,
            token: None,
            group: 0,
            ttl_ms: None,
            ttl_seen_ms: None,
            stale_after_ms: None,
            waiters: None,
            held_ms: None,
            is_held_uncertain: false,
            not_before: None,
            waited_ms: None,
            is_sampled: false,
        };
        vec![event; count]
    }

    fn shard() -> Shard {
        let mut shard = Shard::default();
        shard.sources.push(source());
        shard
    }

    fn source() -> SourceInfo {
        SourceInfo {
            source: Source::fixed("lease"),
            safety: domain::safety::Safety {
                class: domain::safety::SafetyClass::Correctness,
                why: "a token".into(),
            },
            grain_ms: 1,
            locks: 0,
            fault: None,
            known: KnownParts::default(),
        }
    }

    #[test]
    fn dropped_changes_are_counted_and_requeued_ones_come_first() {
        // Nothing is queued before `open`; then two over the capacity; then requeued with one
        // more after them.
        let (journal, backend) = (ChangeQueue::default(), BackendName::builtin());
        journal.record(&backend, &shard(), &events(1));
        journal.open();
        assert!(journal.take().is_empty());
        journal.record(&backend, &shard(), &events(WAITING_MAX + 2));
        let taken = journal.take();
        assert_eq!((taken.changes.len(), taken.lost), (WAITING_MAX, 2));
        journal.record(&backend, &shard(), &events(1));
        journal.requeue(taken);
        let again = journal.take();
        assert_eq!((again.changes.len(), again.lost), (WAITING_MAX, 3));
    }

    #[test]
    fn long_names_are_limited_by_their_bytes() {
        // Twice as many as fit. What the consumer removed makes room; short names fit in numbers.
        let (journal, backend) = (ChangeQueue::default(), BackendName::builtin());
        journal.open();
        let mut long = events(1);
        long[0].name = vec![b'n'; 64 * 1024].into();
        let fitting = WAITING_BYTES_MAX / (64 * 1024);
        for _ in 0..2 * fitting {
            journal.record(&backend, &shard(), &long);
        }
        let mut taken = journal.take();
        assert_eq!((taken.changes.len(), taken.lost), (fitting, fitting as u64));
        taken.changes.truncate(1);
        journal.requeue(taken);
        for _ in 0..2 {
            journal.record(&backend, &shard(), &long);
        }
        assert_eq!(journal.take().changes.len(), 3);
    }
}
