//! Activity per resource, for the history writer: appended by each batch, drained twice a
//! second.
//!
//! **Invariant:** a batch takes the mutex once; an operation costs one entry in an existing
//! list. Before [`ActivityLog::open`] no entries are stored.

use chrono::{DateTime, Utc};
use domain::names::{OwnerId, Resource};
use domain::token::FencingToken;
use parking_lot::{Mutex, MutexGuard};

/// Entries stored until they are drained; further ones are counted as dropped.
const WAITING_MAX: usize = 200_000;

/// One operation on a resource, accepted or refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActivityEntry {
    pub resource: Resource,
    pub what: Activity,
}

/// Times are milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Activity {
    Granted {
        ttl_ms: i64,
        /// The grant replaced an expired lease.
        reclaimed: bool,
    },
    Refused,
    /// Refused after a wait.
    TimedOut,
    /// A wait ended: `acquired`, `timeout` or `error`.
    Waited {
        ms: i64,
        outcome: &'static str,
        /// The grant that ended the wait.
        granted: Option<Box<GrantedAfter>>,
    },
    Released {
        held_ms: i64,
    },
    Expired {
        held_ms: i64,
    },
    Revoked {
        held_ms: i64,
    },
    /// A renewal of a lease that had already ended.
    Lost {
        owner: OwnerId,
        token: FencingToken,
        /// Milliseconds from the grant to this renewal; `None` if the owner had released the
        /// lease itself.
        believed_ms: Option<i64>,
    },
    /// A write was rejected because of its fencing token.
    Rejected {
        owner: Option<OwnerId>,
        token: FencingToken,
    },
}

/// A grant to a waiter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantedAfter {
    /// Wall clock of this process.
    pub at: DateTime<Utc>,
    pub owner: OwnerId,
    pub token: FencingToken,
}

/// Drained entries, oldest first.
#[derive(Debug, Default)]
pub struct DrainedActivity {
    pub all: Vec<ActivityEntry>,
    /// Number of entries dropped because the log was full.
    pub dropped: u64,
}

#[derive(Debug, Default)]
pub struct ActivityLog(Mutex<Option<DrainedActivity>>);

impl ActivityLog {
    /// Starts to store entries for [`drain`](Self::drain).
    pub fn open(&self) {
        self.lock().get_or_insert_default();
    }

    pub fn drain(&self) -> DrainedActivity {
        self.lock().as_mut().map(std::mem::take).unwrap_or_default()
    }

    pub(super) fn add(&self, mut entries: Vec<ActivityEntry>) {
        if entries.is_empty() {
            return;
        }
        let mut drained = self.lock();
        let Some(drained) = drained.as_mut() else { return };
        let room = WAITING_MAX.saturating_sub(drained.all.len());
        drained.dropped += entries.len().saturating_sub(room) as u64;
        entries.truncate(room);
        drained.all.append(&mut entries);
    }

    fn lock(&self) -> MutexGuard<'_, Option<DrainedActivity>> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_stored_after_open_and_overflow_is_counted() {
        // Entries added before `open` are dropped; later two exceed the limit.
        let entry = || ActivityEntry {
            resource: Resource::from("r"),
            what: Activity::Refused,
        };
        let activity = ActivityLog::default();
        activity.add(vec![entry()]);
        activity.open();
        assert!(activity.drain().all.is_empty());
        activity.add(vec![entry(); WAITING_MAX - 1]);
        activity.add(vec![entry(); 3]);
        let taken = activity.drain();
        assert_eq!((taken.all.len(), taken.dropped), (WAITING_MAX, 2));
        assert!(activity.drain().all.is_empty());
    }
}
