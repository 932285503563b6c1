//! Observation of one backend at one moment: the interface between adapters and inventory.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::blockers::Blocker;
use crate::force_release::BlastRadius;
use crate::generation::Generation;
use crate::names::{OwnerId, Resource, Source};
use crate::quorum::Quorum;
use crate::reported::{Reported, Why};
use crate::token::FencingToken;
use crate::waits::WaitParty;

/// How a lock ends by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lifetime {
    /// A TTL runs down. `remaining_ms` is by the backend's clock at the reading, negative once
    /// expired.
    Leased {
        remaining_ms: i64,
        ttl_ms: Reported<i64>,
    },
    /// It never ends by itself: a key without TTL, a row without expiry.
    NoTtl { why: Why },
    /// It has no expiry but a heartbeat: silence longer than `stale_after_ms` counts as not
    /// renewing.
    Heartbeat {
        silent_ms: i64,
        stale_after_ms: i64,
        why: Why,
    },
    /// It lives as long as a session (advisory locks, blocked relations): there is no lease to
    /// renew.
    Session { why: Why },
    /// It lives as long as a session that has an expiry of its own, and the backend does not
    /// report the time left. `why` says so.
    SessionTtl { ttl_ms: Reported<i64>, why: Why },
    /// This backend, or this key's shape, does not report it.
    Unknown { why: Why },
}

/// A finding of the adapter that the numbers do not express.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObservedCondition {
    /// The lock outlived its owner: a prepared transaction without a session, for example.
    Orphaned { why: Why },
    /// A key of a type or shape that is no known lock. Shown, never unlocked.
    Unrecognised { why: Why },
    /// Two owners act as holders at the same time; the reason names owners, tokens and times.
    DualOwner { why: Why },
    /// Several values on several nodes, none on a quorum.
    Split { why: Why },
    /// Its value was on a quorum of the nodes and is on a minority now.
    QuorumLost { why: Why },
    /// Nodes that do not answer leave open whether it is held.
    Undecided { why: Why },
    /// A remark without a state of its own: "may be leaked through the pooler".
    Note { why: Why },
}

/// One lock as one backend reports it. Several sharers of one key are one lock with several
/// owners.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedLock {
    pub source: Source,
    pub resource: Resource,
    pub owner: Reported<OwnerId>,
    pub owner_count: u32,
    /// All owners of a shared lock. Empty for one owner, and if the backend does not identify all of them.
    pub sharers: Vec<Sharer>,
    pub lease_id: Reported<Box<str>>,
    pub generation: Reported<Generation>,
    pub fencing_token: Reported<FencingToken>,
    /// By the backend's clock.
    pub acquired_at: Reported<DateTime<Utc>>,
    /// By the backend's clock, if it records renewals (`updated_at`).
    pub renewed_at: Reported<DateTime<Utc>>,
    pub lifetime: Lifetime,
    pub waiter_count: Reported<u32>,
    /// Wait of the first in the queue, in milliseconds.
    pub oldest_waiter_ms: Option<i64>,
    /// Identified waiters, where the backend distinguishes them: shows that a new holder had
    /// waited.
    pub line: Vec<InLine>,
    pub condition: Option<ObservedCondition>,
}

impl ObservedLock {
    /// Its lease has run out: the record that is left holds nothing.
    pub const fn is_expired(&self) -> bool {
        matches!(
            self.lifetime,
            Lifetime::Leased {
                remaining_ms: ..=0,
                ..
            }
        )
    }
}

/// One owner of a shared lock, identified by the generation that the lock would have with this owner alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sharer {
    pub generation: Generation,
    /// `None`: it was not read.
    pub owner: Option<OwnerId>,
    /// If the backend gives each sharer its own.
    pub token: Option<FencingToken>,
}

/// A waiter, identified by the generation that its holding will have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InLine {
    /// Generation of the lock once this waiter holds it.
    pub generation: Generation,
    /// If the backend reports it; otherwise counted from the first observation of the wait.
    pub waited_ms: Option<i64>,
    /// `None`: beyond the limit, or the backend does not identify it.
    pub identity: Option<Box<WaitIdentity>>,
}

/// Who waits and for which owners: an edge of the graph of waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitIdentity {
    pub party: Arc<WaitParty>,
    /// What it asks for, where the backend says it: `ShareLock on transaction 812`.
    pub wants: Option<Box<str>>,
    pub blocked_by: Vec<Arc<WaitParty>>,
    /// Owners that it waits for beyond the limit.
    pub more_blockers: u32,
}

/// What `inspect` adds to one lock read fresh.
#[derive(Debug, Clone, PartialEq)]
pub struct Inspection {
    /// `None`: the lock does not exist (any more).
    pub lock: Option<ObservedLock>,
    pub waiters: Vec<Waiter>,
    /// All owners of a shared lock.
    pub owners: Vec<OwnerId>,
    pub blockers: Vec<Blocker>,
    pub session: Option<Session>,
    /// For a lock on several independent nodes.
    pub quorum: Option<Quorum>,
    /// Record as stored in the backend: field and value, in its own order. Secrets are
    /// fingerprints.
    pub raw: Vec<RawField>,
    /// What else depends on the same lease or session, one sentence each.
    pub related_locks: Vec<String>,
    /// What a forced unlock of exactly this holding would end. A forced unlock requires a known
    /// radius.
    pub blast_radius: Reported<BlastRadius>,
}

impl Default for Inspection {
    /// Not found.
    fn default() -> Self {
        Self {
            lock: None,
            waiters: Vec::new(),
            owners: Vec::new(),
            blockers: Vec::new(),
            session: None,
            quorum: None,
            raw: Vec::new(),
            related_locks: Vec::new(),
            blast_radius: Reported::absent("the lock is free"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RawField {
    pub name: String,
    pub value: String,
}

/// An owner queued for a resource; position 1 gets it next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Waiter {
    pub position: u32,
    pub owner_id: OwnerId,
    pub waited_ms: Reported<i64>,
    pub lease_remaining_ms: Option<i64>,
}

/// A database session that holds a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    pub pid: i32,
    pub application_name: String,
    pub client_address: Option<String>,
    pub state: String,
    pub query: String,
    pub transaction_age_ms: Option<i64>,
}

/// Share of a backend that one scan covered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Coverage {
    Complete,
    /// `seen` of about `of` (if known), with the reason.
    Partial {
        seen: u64,
        of: Option<u64>,
        why: Why,
    },
}

impl Coverage {
    pub fn is_complete(&self) -> bool {
        matches!(self, Self::Complete)
    }

    /// Share covered, in whole per cent rounded down, so that 100 means all.
    pub fn percent(&self) -> Option<u8> {
        match self {
            Self::Complete => Some(100),
            Self::Partial {
                seen, of: Some(of), ..
            } if *of > 0 => u8::try_from((seen.saturating_mul(100) / of).min(99)).ok(),
            Self::Partial { .. } => None,
        }
    }
}
