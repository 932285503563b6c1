//! What is said about a backend as a whole: its kind, what it can tell, how it answers, what this account may do.

mod limited;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::known::Known;
use crate::names::{BackendName, Source};
use crate::observation::Coverage;

pub use limited::OUTSIDE_SCOPE;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackendKind {
    Builtin,
    Postgres,
    Redis,
    Etcd,
}

impl BackendKind {
    pub const fn wire(self) -> &'static str {
        match self {
            Self::Builtin => "builtin",
            Self::Postgres => "postgres",
            Self::Redis => "redis",
            Self::Etcd => "etcd",
        }
    }

    /// Grants in the order of its queue. Elsewhere a waiter may overtake another.
    pub const fn keeps_order(self) -> bool {
        matches!(self, Self::Builtin | Self::Etcd)
    }
}

/// How much to believe of a backend right now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackendStatus {
    /// Not observed yet, and no failure either.
    Starting,
    Live,
    /// The last pass saw only a part; the coverage says how much.
    Partial,
    /// The last observation is older than two poll periods.
    Stale,
    /// It refuses, or has not answered for long; or it was never observed and fails.
    Down,
}

impl BackendStatus {
    pub const fn wire(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Live => "live",
            Self::Partial => "partial",
            Self::Stale => "stale",
            Self::Down => "down",
        }
    }

    pub fn parse(wire: &str) -> Option<Self> {
        let all = [Self::Starting, Self::Live, Self::Partial, Self::Stale, Self::Down];
        all.into_iter().find(|status| status.wire() == wire)
    }

    /// Its rows are shown as stale: what held before is not known to hold now.
    pub const fn blinds_rows(self) -> bool {
        matches!(self, Self::Stale | Self::Down)
    }
}

/// What an adapter declares about its backend, for the Backends page and for whoever reads a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Capability {
    /// `watch`, `waiters`, `fencing`, `ttl`, `release`, `clock`.
    pub name: String,
    pub can: bool,
    pub how: String,
}

/// One thing the account may, or should not be able to, do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Right {
    pub what: String,
    pub allowed: Known<bool>,
    /// False where having the right is itself the fault (a watcher that may write).
    pub wanted: bool,
    /// What to do when it is not as wanted.
    pub mend: String,
}

/// A failure of a backend, and what to do about it. Never a DSN, never a password.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fault {
    pub message: String,
    pub mend: String,
    pub at: DateTime<Utc>,
    /// How often it has come since it last did not.
    pub times: u32,
}

/// One place inside a backend where locks are looked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceView {
    pub source: Source,
    pub locks: u64,
    /// Why this source could not be read, when the others could.
    pub fault: Option<String>,
}

/// State of the hints that shorten the wait between passes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WatchState {
    Live,
    Reconnecting {
        since: DateTime<Utc>,
        why: String,
    },
    /// This backend, as configured, sends no hints; polling alone finds changes.
    Off {
        why: String,
    },
}

/// Everything the strip and the Backends page show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackendView {
    pub name: BackendName,
    pub kind: BackendKind,
    /// Address without credentials.
    pub address: String,
    pub status: BackendStatus,
    pub observed_at: Option<DateTime<Utc>>,
    pub age_ms: Option<i64>,
    pub poll_ms: i64,
    pub coverage: Coverage,
    pub fault: Option<Fault>,
    pub locks: u64,
    pub waiters: Known<u64>,
    pub needing_attention: u64,
    /// Backend's clock minus ours, and how sure that is (half of the round trip).
    pub clock_offset_ms: Known<i64>,
    pub clock_error_ms: i64,
    /// Duration of the last passes in milliseconds, oldest first; none where one failed.
    pub answers_ms: Vec<Option<u32>>,
    pub version: Known<String>,
    pub watch: WatchState,
    pub passes: u64,
    /// Locks that a full re-list found different from what watching had led to. Should stay 0.
    pub relist_differences: u64,
    pub sources: Vec<SourceView>,
    pub capabilities: Vec<Capability>,
    pub rights: Vec<Right>,
    pub past_faults: Vec<Fault>,
    /// The reader's scope is a part of this backend: counts are of that part, and what describes the whole backend is left
    /// out, with [`OUTSIDE_SCOPE`] as the reason. See [`BackendView::limited`].
    pub is_limited: bool,
}
