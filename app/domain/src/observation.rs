//! What one backend said at one moment: the language between adapters and inventory.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::blockers::Blocker;
use crate::generation::Generation;
use crate::known::{Known, Why};
use crate::names::{OwnerId, Resource, Source};
use crate::release::BlastRadius;
use crate::token::FencingToken;

/// Milliseconds of our own monotonic clock since the process started. Never compared across processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tick(pub i64);

impl Tick {
    /// Milliseconds from `earlier` to `self`; negative when `earlier` is later.
    pub const fn since(self, earlier: Self) -> i64 {
        self.0 - earlier.0
    }

    #[must_use]
    pub const fn plus(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }
}

/// How a lock ends by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lifetime {
    /// A TTL runs down. `remaining_ms` is by the backend's own clock at the reading, negative once expired.
    Leased { remaining_ms: i64, ttl_ms: Known<i64> },
    /// It never ends by itself: a key without TTL, a row without expiry.
    NoTtl { why: Why },
    /// It has no expiry, and its holder gives signs of life: silent for longer than `stale_after_ms` it is not renewing.
    Heartbeat {
        silent_ms: i64,
        stale_after_ms: i64,
        why: Why,
    },
    /// It lives as long as a session (advisory locks, blocked relations): there is no lease to renew.
    Session { why: Why },
    /// This backend, or this key's shape, does not tell.
    Unknown { why: Why },
}

/// Something the adapter saw that the numbers do not say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// The lock outlived whoever took it: a prepared transaction without a session, for one.
    HolderGone { why: Why },
    /// A key of a type or shape that is no lock we know. Shown, never unlocked.
    Unrecognised { why: Why },
    /// Two owners act as holders at the same time: who, with which tokens, and when.
    TwoBelievers { why: Why },
    /// Worth saying, not a state of its own: "may be leaked through the pooler".
    Note { why: Why },
}

/// One lock as one backend shows it. Several sharers of one key are one lock with several owners.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedLock {
    pub source: Source,
    pub resource: Resource,
    pub owner: Known<OwnerId>,
    pub owner_count: u32,
    pub lease_id: Known<Box<str>>,
    pub generation: Known<Generation>,
    pub fencing_token: Known<FencingToken>,
    /// By the backend's clock.
    pub acquired_at: Known<DateTime<Utc>>,
    /// By the backend's clock, where it records renewals (`updated_at`).
    pub renewed_at: Known<DateTime<Utc>>,
    pub lifetime: Lifetime,
    pub waiter_count: Known<u32>,
    /// How long the first in line has waited, in milliseconds.
    pub oldest_waiter_ms: Option<i64>,
    /// Who waits, where the backend tells one waiter from another: so a new holder is known to have stood in line.
    pub line: Vec<InLine>,
    pub condition: Option<Condition>,
}

/// Somebody who waits, named by what it will hold the lock as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InLine {
    /// The generation of the lock once this one holds it.
    pub generation: Generation,
    /// As far as the backend tells; else it is counted from when we first saw it wait.
    pub waited_ms: Option<i64>,
}

/// What `inspect` adds to one lock read fresh.
#[derive(Debug, Clone, PartialEq)]
pub struct Inspection {
    /// None: the lock is not there (any more).
    pub lock: Option<ObservedLock>,
    pub waiters: Vec<Waiter>,
    /// Everyone who holds it, where several share it.
    pub owners: Vec<OwnerId>,
    pub blockers: Vec<Blocker>,
    pub session: Option<Session>,
    /// The record as the backend keeps it: field and value, in its own order. Secrets are fingerprints.
    pub raw: Vec<RawField>,
    /// What else hangs on the same lease or session, as a sentence each.
    pub shares_fate_with: Vec<String>,
    /// What a forced unlock of exactly this holding takes along. Unless it is known, none may be done.
    pub blast_radius: Known<BlastRadius>,
}

impl Default for Inspection {
    /// Not there.
    fn default() -> Self {
        Self {
            lock: None,
            waiters: Vec::new(),
            owners: Vec::new(),
            blockers: Vec::new(),
            session: None,
            raw: Vec::new(),
            shares_fate_with: Vec::new(),
            blast_radius: Known::absent("nobody holds it"),
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
    pub waited_ms: Known<i64>,
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

/// How much of what a backend holds one pass saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Coverage {
    Complete,
    /// `seen` of about `of` (when that can be told), and why it was cut.
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

    /// Share seen, in whole per cent rounded down, so that 100 means all.
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
