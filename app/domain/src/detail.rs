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
    /// Why whoever looks cannot unlock it by force; none when they can.
    pub no_unlock: Option<String>,
    /// Read just now. Unknown with the reason when the backend could not be asked; absent when it answered that
    /// the lock is not held any more, and `lock` is then what was last seen of it.
    pub fresh: Known<Fresh>,
    /// What we saw happen to it since we watch, newest first.
    pub seen: Vec<SeenEvent>,
    /// Nobody is known to hold it: all this is what is remembered, and `fresh` is absent (it is free) or unknown, with why.
    #[serde(default)]
    pub is_past: bool,
    /// Made by the server for the page alone.
    #[serde(default)]
    pub charts: LockCharts,
}

/// Parts of a lock's page as HTML, which the browser shows as they are.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LockCharts {
    /// Who held it when.
    pub ownership: String,
    /// How long it is usually held.
    pub hold_time: String,
    /// What was seen happen.
    pub seen: String,
    /// All of it in one, of a lock that nobody holds.
    pub past: String,
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
    /// Nobody is known to hold it now.
    pub fn is_gone(&self) -> bool {
        self.is_past || self.fresh.is_absent()
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
    /// First seen after an outage of its backend: it happened between this time and `at`. Stays on the server.
    #[serde(skip)]
    pub not_before: Option<chrono::DateTime<chrono::Utc>>,
    pub owner_id: Option<OwnerId>,
    pub fencing_token: Option<crate::token::FencingToken>,
    /// Of [`EventKind::GrantedAfterWait`]: how long it had waited. Stays on the server: the page's HTML has it.
    #[serde(skip)]
    pub waited_ms: Option<i64>,
    /// The trace that did it, where there was one. Stays on the server: the page's HTML has it.
    #[serde(skip)]
    pub trace_id: Option<String>,
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
    /// Fewer wait than before: somebody got it, or gave up.
    FewerWaiting,
    /// Whoever has it now stood in line for it before. Told beside the grant, with the length of the wait.
    GrantedAfterWait,
    /// It was released by force, through this console.
    Revoked,
    /// A write under an old token was refused.
    Rejected,
    /// Its owner renewed too late and was told so.
    Lost,
    /// From here on nobody looked: the console was not running, or more happened than it could write down.
    Unwatched,
    /// From here on the console looked again.
    WatchedAgain,
}

impl EventKind {
    pub const ALL: [Self; 13] = [
        Self::Acquired,
        Self::Renewed,
        Self::Released,
        Self::Expired,
        Self::Reclaimed,
        Self::Waiting,
        Self::FewerWaiting,
        Self::GrantedAfterWait,
        Self::Revoked,
        Self::Rejected,
        Self::Lost,
        Self::Unwatched,
        Self::WatchedAgain,
    ];

    /// From its [`wire`](Self::wire) form.
    pub fn parse(wire: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.wire() == wire)
    }

    pub const fn wire(self) -> &'static str {
        match self {
            Self::FewerWaiting => "fewer_waiting",
            Self::GrantedAfterWait => "granted_after_wait",
            Self::Revoked => "revoked",
            Self::Rejected => "rejected",
            Self::Unwatched => "unwatched",
            Self::WatchedAgain => "watched_again",
            _ => self.word(),
        }
    }

    pub const fn word(self) -> &'static str {
        match self {
            Self::Acquired => "acquired",
            Self::Renewed => "renewed",
            Self::Released => "released",
            Self::Expired => "expired",
            Self::Reclaimed => "reclaimed",
            Self::Waiting => "waiting",
            Self::FewerWaiting => "fewer wait",
            Self::GrantedAfterWait => "granted after wait",
            Self::Revoked => "released by force",
            Self::Rejected => "a write was refused",
            Self::Lost => "lost",
            Self::Unwatched => "not watched from here",
            Self::WatchedAgain => "watched again",
        }
    }
}
