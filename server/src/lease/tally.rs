//! What the service did, resource by resource, for whoever writes history: gathered by the batch, taken twice a second.
//!
//! **Invariant:** a batch takes the lock once; an operation costs an entry in a list that is there already. When nobody
//! takes them away, entries are not kept.

use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Utc};
use domain::names::{OwnerId, Resource};
use domain::token::FencingToken;

/// Entries that wait to be taken.
const WAITING_MAX: usize = 200_000;

/// One thing that was done, or refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tallied {
    pub resource: Resource,
    pub what: What,
}

/// Times are milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    Granted {
        ttl_ms: i64,
        /// Over a lease that had run out.
        reclaimed: bool,
    },
    Refused,
    /// Refused after a wait.
    TimedOut,
    /// A wait ended: `acquired`, `timeout` or `error`.
    Waited {
        ms: i64,
        outcome: &'static str,
        /// The grant that ended it.
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
    /// A renewal came too late.
    Lost {
        owner: OwnerId,
        token: FencingToken,
        /// From the grant until this renewal told it; none where the owner had given it back itself.
        believed_ms: Option<i64>,
    },
    /// A write was refused for its token.
    Rejected {
        owner: Option<OwnerId>,
        token: FencingToken,
    },
}

/// A grant to somebody who stood in line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantedAfter {
    /// By this process' wall clock.
    pub at: DateTime<Utc>,
    pub owner: OwnerId,
    pub token: FencingToken,
}

/// Taken out, oldest first.
#[derive(Debug, Default)]
pub struct TakenTally {
    pub all: Vec<Tallied>,
    /// So many more there were that did not fit.
    pub lost: u64,
}

#[derive(Debug, Default)]
pub struct Tally(Mutex<Option<TakenTally>>);

impl Tally {
    /// From now on entries are kept for [`take`](Self::take).
    pub fn open(&self) {
        self.lock().get_or_insert_default();
    }

    pub fn take(&self) -> TakenTally {
        self.lock().as_mut().map(std::mem::take).unwrap_or_default()
    }

    pub(super) fn add(&self, mut more: Vec<Tallied>) {
        if more.is_empty() {
            return;
        }
        let mut kept = self.lock();
        let Some(kept) = kept.as_mut() else { return };
        let room = WAITING_MAX.saturating_sub(kept.all.len());
        kept.lost += more.len().saturating_sub(room) as u64;
        more.truncate(room);
        kept.all.append(&mut more);
    }

    fn lock(&self) -> MutexGuard<'_, Option<TakenTally>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_kept_once_somebody_takes_them_and_what_does_not_fit_is_counted() {
        // Before it is opened nothing is kept; then two too many.
        let one = || Tallied {
            resource: Resource::from("r"),
            what: What::Refused,
        };
        let tally = Tally::default();
        tally.add(vec![one()]);
        tally.open();
        assert!(tally.take().all.is_empty());
        tally.add(vec![one(); WAITING_MAX - 1]);
        tally.add(vec![one(); 3]);
        let taken = tally.take();
        assert_eq!((taken.all.len(), taken.lost), (WAITING_MAX, 2));
        assert!(tally.take().all.is_empty());
    }
}
