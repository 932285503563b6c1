//! One lock with all that hangs on it: what its own page shows.

use serde::{Deserialize, Serialize};

use crate::backend::{BackendStatus, Fault};
use crate::blockers::Blocker;
use crate::known::Known;
use crate::lock::Lock;
use crate::names::OwnerId;
use crate::observation::{RawField, Session, Waiter};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LockDetail {
    pub lock: Lock,
    pub backend_status: BackendStatus,
    pub backend_fault: Option<Fault>,
    /// Read just now. Unknown with the reason when the backend could not be asked; absent when it answered that
    /// the lock is not held any more, and `lock` is then what was last seen of it.
    pub fresh: Known<Fresh>,
    /// What we saw happen to it since we watch, newest first.
    pub seen: Vec<SeenEvent>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fresh {
    pub waiters: Vec<Waiter>,
    pub owners: Vec<OwnerId>,
    pub blockers: Vec<Blocker>,
    pub session: Option<Session>,
    pub raw: Vec<RawField>,
    pub shares_fate_with: Vec<String>,
    pub read_at: chrono::DateTime<chrono::Utc>,
}

impl LockDetail {
    /// The backend answered that nobody holds it now.
    pub fn is_gone(&self) -> bool {
        self.fresh.is_absent()
    }

    /// Who gets it next, where the backend keeps the order of its queue.
    pub fn next_in_line(&self) -> Option<&Waiter> {
        let waiters = &self.fresh.known()?.waiters;
        if self.lock.kind.keeps_order() {
            waiters.iter().min_by_key(|waiter| waiter.position)
        } else {
            None
        }
    }
}

/// A change of this lock that the console saw while it watched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeenEvent {
    pub kind: EventKind,
    pub at: chrono::DateTime<chrono::Utc>,
    pub owner_id: Option<OwnerId>,
    pub fencing_token: Option<crate::token::FencingToken>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    Acquired,
    Renewed,
    /// It went away before its TTL ran out.
    Released,
    /// It went away, or lay dead, when its TTL had run out.
    Expired,
    /// A new owner has it although the old one's lease had run out.
    Reclaimed,
    Waiting,
}

impl EventKind {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Acquired => "acquired",
            Self::Renewed => "renewed",
            Self::Released => "released",
            Self::Expired => "expired",
            Self::Reclaimed => "reclaimed",
            Self::Waiting => "waiting",
        }
    }
}
