//! A backend as a whole: kind, capabilities, status, account permissions.

mod cluster;
mod kind;
mod limited;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::names::{BackendName, Source};
use crate::observation::Coverage;
use crate::reported::Reported;

pub use cluster::{Availability, ClusterMember, ClusterView, MemberProblem, MemberRole};
pub use kind::BackendKind;
pub use limited::OUTSIDE_SCOPE;

/// What may be concluded from the observations of a backend, as its adapter declares. By default nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BackendTraits {
    /// Each grant raises the fencing token by exactly one: a gap in the tokens counts grants that no scan has seen.
    pub counts_grants: bool,
    /// A live watch reports every change: a change that only a scan finds was missed by the watch.
    pub watches_every_change: bool,
    /// No lock has a fencing token that a resource could compare.
    pub lacks_fencing_tokens: bool,
}

crate::wire_enum! {
    /// How far the data of a backend can be trusted now.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum BackendStatus {
        /// Not observed yet, without a failure.
        Starting = "starting",
        Live = "live",
        /// The last scan covered only a part; the coverage says how much.
        Partial = "partial",
        /// The last observation is older than two poll intervals.
        Stale = "stale",
        /// It refuses connections or has not answered for long; or it was never observed and
        /// fails.
        Down = "down",
    }
}

impl BackendStatus {
    /// Its locks are shown as stale: their earlier state is not known to hold now.
    pub const fn blinds_rows(self) -> bool {
        matches!(self, Self::Stale | Self::Down)
    }

    /// It was read completely a moment ago.
    pub const fn is_current(self) -> bool {
        matches!(self, Self::Live)
    }
}

/// A capability as declared by the adapter; shown on the Backends page and on the lock page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Capability {
    /// `watch`, `waiters`, `fencing`, `ttl`, `release`, `clock`.
    pub name: String,
    pub can: bool,
    pub how: String,
}

impl Capability {
    pub fn new(name: &str, can: bool, how: &str) -> Self {
        Self {
            name: name.to_owned(),
            can,
            how: how.to_owned(),
        }
    }
}

/// A permission that the account should, or should not, have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AccountPermission {
    pub what: String,
    pub allowed: Reported<bool>,
    /// False if having the permission is the fault, such as a watcher that may write.
    pub wanted: bool,
    /// Remedy if `granted` differs from `wanted`.
    pub remedy: String,
}

/// A failure of a backend with its remedy. Never contains a DSN or a password.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackendFailure {
    pub message: String,
    pub remedy: String,
    pub at: DateTime<Utc>,
    /// Consecutive occurrences.
    pub times: u32,
}

/// A source of locks inside a backend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceView {
    pub source: Source,
    pub locks: u64,
    /// Why this source could not be read while others could.
    pub fault: Option<String>,
}

/// State of the change notifications, which start a scan before the poll interval ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WatchState {
    Live,
    Reconnecting {
        since: DateTime<Utc>,
        why: String,
    },
    /// This backend, as configured, sends no change notifications; only polling finds changes.
    Off {
        why: String,
    },
}

/// Everything that the status strip and the Backends page show.
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
    pub poll_interval_ms: i64,
    pub coverage: Coverage,
    pub fault: Option<BackendFailure>,
    pub locks: u64,
    pub waiters: Reported<u64>,
    pub needing_attention: u64,
    /// Backend's clock minus ours, and its error (half of the round trip).
    pub clock_offset_ms: Reported<i64>,
    pub clock_error_ms: i64,
    /// Durations of the last scans in milliseconds, oldest first; `None` for a failed one.
    pub answers_ms: Vec<Option<u32>>,
    pub version: Reported<String>,
    pub watch: WatchState,
    pub passes: u64,
    /// Locks for which a resync differed from the state built from change notifications. Should
    /// stay 0.
    pub relist_differences: u64,
    pub sources: Vec<SourceView>,
    pub capabilities: Vec<Capability>,
    pub rights: Vec<AccountPermission>,
    pub past_faults: Vec<BackendFailure>,
    /// Of a replicated backend that reports its members; several for a sharded lease store.
    pub clusters: Vec<ClusterView>,
    /// The reader's scope is a part of this backend: counts are of that part, and fields about
    /// the whole backend are omitted with [`OUTSIDE_SCOPE`] as the reason. See
    /// [`BackendView::limited`].
    pub is_limited: bool,
}

impl BackendView {
    /// A lock that was not observed may be held: the backend is down or was never scanned. The first scan of the
    /// built-in service takes milliseconds.
    pub fn is_unread(&self) -> bool {
        match self.status {
            BackendStatus::Down => true,
            BackendStatus::Starting => self.name != BackendName::builtin(),
            BackendStatus::Live | BackendStatus::Partial | BackendStatus::Stale => false,
        }
    }
}
