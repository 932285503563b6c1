//! What changed, handed on to whoever keeps it: a queue with an end. The observer never waits for a disk.
//!
//! **Invariant:** what did not fit is counted, so that a gap can be told.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Utc};
use domain::detail::EventKind;
use domain::names::{BackendName, Resource, Source};

use super::events::LockEvent;
use super::shard::Shard;

/// Changes that wait to be taken.
const WAITING_MAX: usize = 200_000;

/// One change of one lock, with its whole name.
#[derive(Debug, Clone)]
pub struct Change {
    pub kind: EventKind,
    pub at: DateTime<Utc>,
    pub backend: BackendName,
    pub source: Source,
    pub resource: Resource,
    pub owner: Option<Arc<str>>,
    pub token: Option<u64>,
    /// Of its name.
    pub template: Arc<str>,
    /// From here on; none without a TTL, and where nobody tells.
    pub ttl_ms: Option<u32>,
    /// Where the TTL is not told: the most that was ever left of this lease.
    pub ttl_seen_ms: Option<u32>,
    /// Without a TTL: silent for longer, it is not renewing.
    pub stale_after_ms: Option<u32>,
    /// From here on, where the backend tells.
    pub waiters: Option<u32>,
    /// Of what ended: how long it was held, as far as its beginning is known.
    pub held_ms: Option<i64>,
    /// That is the middle of two bounds: it ended in an outage.
    pub is_held_uncertain: bool,
    /// First seen after an outage: it happened between this time and `at`.
    pub not_before: Option<DateTime<Utc>>,
    /// Of a grant after a wait: how long that was.
    pub waited_ms: Option<i64>,
    /// More happened between two readings than they show.
    pub is_sampled: bool,
}

/// Taken out of the queue, oldest first.
#[derive(Debug, Default)]
pub struct Taken {
    pub changes: VecDeque<Change>,
    /// So many more there were that did not fit.
    pub lost: u64,
}

#[derive(Debug, Default)]
pub struct Journal {
    /// None: nobody takes anything out.
    waiting: Mutex<Option<Taken>>,
    /// How often something of it, or beside it, was written down.
    written: AtomicU64,
}

impl Journal {
    /// From now on changes are kept for [`take`](Self::take).
    pub fn open(&self) {
        self.lock().get_or_insert_default();
    }

    /// After the commit of events: whoever reads them has something to read.
    pub fn wrote(&self) {
        self.written.fetch_add(1, Ordering::SeqCst);
    }

    /// How often events were written; none where nobody here writes them.
    pub fn written(&self) -> Option<u64> {
        let is_open = self.lock().is_some();
        is_open.then(|| self.written.load(Ordering::SeqCst))
    }

    pub fn take(&self) -> Taken {
        self.lock().as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Puts back, in front, what could not be written down.
    pub fn give_back(&self, taken: Taken) {
        let mut waiting = self.lock();
        let Some(waiting) = waiting.as_mut() else { return };
        let later = std::mem::replace(waiting, taken);
        waiting.lost += later.lost;
        for change in later.changes {
            waiting.push(change);
        }
    }

    pub(super) fn note(&self, backend: &BackendName, shard: &Shard, events: &[LockEvent]) {
        if events.is_empty() {
            return;
        }
        let mut waiting = self.lock();
        let Some(waiting) = waiting.as_mut() else { return };
        for event in events {
            let Some(info) = shard.sources.get(usize::from(event.source)) else {
                continue;
            };
            waiting.push(Change {
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

    fn lock(&self) -> MutexGuard<'_, Option<Taken>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.lost == 0
    }

    fn push(&mut self, change: Change) {
        // Renewals are many and tell little: they leave room for what is not.
        let most = match change.kind {
            EventKind::Renewed => WAITING_MAX / 2,
            _ => WAITING_MAX,
        };
        if self.changes.len() < most {
            self.changes.push_back(change);
        } else {
            self.lost += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::shard::SourceInfo;

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
        }
    }

    #[test]
    fn what_does_not_fit_is_counted_and_what_could_not_be_written_comes_first_again() {
        // Nothing is kept before it is opened; then two too many; then given back with one more behind it.
        let (journal, backend) = (Journal::default(), BackendName::builtin());
        journal.note(&backend, &shard(), &events(1));
        journal.open();
        assert!(journal.take().is_empty());
        journal.note(&backend, &shard(), &events(WAITING_MAX + 2));
        let taken = journal.take();
        assert_eq!((taken.changes.len(), taken.lost), (WAITING_MAX, 2));
        journal.note(&backend, &shard(), &events(1));
        journal.give_back(taken);
        let again = journal.take();
        assert_eq!((again.changes.len(), again.lost), (WAITING_MAX, 3));
    }
}
