//! Detects that the cluster was restored from a snapshot, and prevents grants until the epoch is raised.
//!
//! **Invariants**: each write compares the identity of the store and the revision of its clock, which only grows: a
//! restored cluster is behind it, so nothing is written. An answer of another cluster, or of an earlier moment than an
//! answer received before the request was sent, is never used.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use etcd_client::{Compare, CompareOp, KeyValue, ResponseHeader};
use parking_lot::Mutex;

use super::keys::Keys;
use super::values::IdentityValue;
use crate::store::StoreError;

/// Identity and revisions of the store as known to this replica.
pub(super) struct Guard {
    known: Mutex<Known>,
    cluster_id: AtomicU64,
    /// Greatest revision and term of any answer.
    revision: AtomicI64,
    term: AtomicU64,
    /// Greatest index of the cluster's log.
    raft_index: AtomicU64,
}

#[derive(Debug, Clone)]
struct Known {
    identity: IdentityValue,
    identity_revision: i64,
    clock_revision: i64,
}

/// The epoch that a decision is based on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Basis {
    /// Every token granted is above it.
    pub(super) token_floor: u64,
    identity_revision: i64,
}

/// Greatest revision, term and index of the log before a request was sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct SentAt {
    revision: i64,
    term: u64,
    raft_index: u64,
    /// Changes with each recovery.
    identity_revision: i64,
}

/// Why a guarded transaction was not applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GuardVerdict {
    /// The store is the known one: another comparison failed.
    Holds,
    /// The epoch was raised by another replica.
    Renewed,
    Rewound,
}

impl Guard {
    pub(super) fn new(header: &ResponseHeader, identity: IdentityValue, revisions: (i64, i64)) -> Self {
        Self {
            known: Mutex::new(Known {
                identity,
                identity_revision: revisions.0,
                clock_revision: revisions.1,
            }),
            cluster_id: AtomicU64::new(header.cluster_id()),
            revision: AtomicI64::new(header.revision()),
            term: AtomicU64::new(header.raft_term()),
            raft_index: AtomicU64::new(0),
        }
    }

    pub(super) fn token_floor(&self) -> u64 {
        self.known.lock().identity.token_floor
    }

    pub(super) fn cluster_id(&self) -> u64 {
        self.cluster_id.load(Ordering::Relaxed)
    }

    /// Read it before, or together with, the state of a decision.
    pub(super) fn basis(&self) -> Basis {
        let known = self.known.lock();
        Basis {
            token_floor: known.identity.token_floor,
            identity_revision: known.identity_revision,
        }
    }

    /// Whether the epoch is still that of the decision.
    pub(super) fn is_current(&self, basis: Basis) -> bool {
        self.known.lock().identity_revision == basis.identity_revision
    }

    /// Comparisons of every write: a decision of an earlier epoch is not written.
    pub(super) fn compares(&self, keys: &Keys, basis: Basis) -> Vec<Compare> {
        let clock_revision = self.known.lock().clock_revision;
        vec![
            Compare::mod_revision(keys.identity(), CompareOp::Equal, basis.identity_revision),
            Compare::mod_revision(keys.clock(), CompareOp::Greater, clock_revision - 1),
        ]
    }

    /// Call before a request is sent.
    pub(super) fn sent(&self) -> SentAt {
        SentAt {
            revision: self.revision.load(Ordering::Relaxed),
            term: self.term.load(Ordering::Relaxed),
            raft_index: self.raft_index.load(Ordering::Relaxed),
            identity_revision: self.known.lock().identity_revision,
        }
    }

    /// Whether the epoch was raised, by this replica or another, and adopted since a request was sent.
    pub(super) fn is_recovered_since(&self, sent: SentAt) -> bool {
        self.known.lock().identity_revision != sent.identity_revision
    }

    /// The epoch and its token floor as known.
    pub(super) fn epoch(&self) -> (i64, u64) {
        let known = self.known.lock();
        (known.identity.epoch, known.identity.token_floor)
    }

    /// Whether the cluster's log ends before an entry that it had when the request was sent.
    pub(super) fn is_log_behind(&self, sent: SentAt, raft_index: u64) -> bool {
        self.raft_index.fetch_max(raft_index, Ordering::Relaxed);
        raft_index < sent.raft_index
    }

    /// Checks an answer; returns its revision.
    ///
    /// # Errors
    /// `Rewound`: the answer must not be used.
    pub(super) fn check(&self, sent: SentAt, header: Option<&ResponseHeader>) -> Result<i64, StoreError> {
        let header = header.ok_or_else(|| StoreError::Etcd("an answer without a header".to_owned()))?;
        let known = self.cluster_id();
        if header.cluster_id() != known {
            let why = format!("cluster {:x} answers instead of {known:x}", header.cluster_id());
            return Err(StoreError::Rewound(why));
        }
        if header.revision() < sent.revision || header.raft_term() < sent.term {
            return Err(StoreError::Rewound(format!(
                "revision {} of term {} after revision {} of term {}",
                header.revision(),
                header.raft_term(),
                sent.revision,
                sent.term
            )));
        }
        self.revision.fetch_max(header.revision(), Ordering::Relaxed);
        self.term.fetch_max(header.raft_term(), Ordering::Relaxed);
        Ok(header.revision())
    }

    /// Judges the identity and the clock read by a transaction that was not applied.
    pub(super) fn judge(&self, identity: Option<&KeyValue>, clock: Option<&KeyValue>) -> GuardVerdict {
        let revision = |pair: Option<&KeyValue>| pair.map_or(0, KeyValue::mod_revision);
        let known = self.known.lock();
        if revision(identity) > known.identity_revision {
            GuardVerdict::Renewed
        } else if revision(identity) < known.identity_revision || revision(clock) < known.clock_revision {
            GuardVerdict::Rewound
        } else {
            GuardVerdict::Holds
        }
    }

    /// The clock was read or written at this revision.
    pub(super) fn clock_seen(&self, revision: i64) {
        let mut known = self.known.lock();
        known.clock_revision = known.clock_revision.max(revision);
    }

    /// Begins again with what was read of a store whose epoch was raised.
    pub(super) fn renew(&self, header: &ResponseHeader, identity: IdentityValue, revisions: (i64, i64)) {
        let mut known = self.known.lock();
        *known = Known {
            identity,
            identity_revision: revisions.0,
            clock_revision: revisions.1,
        };
        self.cluster_id.store(header.cluster_id(), Ordering::Relaxed);
        self.revision.store(header.revision(), Ordering::Relaxed);
        self.term.store(header.raft_term(), Ordering::Relaxed);
        self.raft_index.store(0, Ordering::Relaxed);
    }
}
