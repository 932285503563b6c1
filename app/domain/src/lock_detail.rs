//! Everything that the page of one lock shows.

mod last_holding;

use serde::{Deserialize, Serialize};

pub use last_holding::LastHolding;

use crate::backend::{BackendFailure, BackendStatus};
use crate::blockers::Blocker;
use crate::charts::durations::DurationChart;
use crate::charts::shown_range::ShownRange;
use crate::charts::timeline::Timeline;
use crate::lock::Lock;
use crate::names::OwnerId;
use crate::observation::{RawField, Session, Waiter};
use crate::quorum::Quorum;
use crate::reported::Reported;
use crate::token::FencingToken;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LockDetail {
    pub lock: Lock,
    pub backend_status: BackendStatus,
    pub backend_fault: Option<BackendFailure>,
    /// Why the reader cannot unlock it by force; `None` if they can.
    pub no_unlock: Option<String>,
    /// Read at most half a second before the answer. `Unknown` with the reason if the backend could not be read;
    /// `NotApplicable` if the lock is no longer held, and `lock` is then its last observation.
    pub fresh: Reported<Fresh>,
    /// Recent observed events, newest first.
    pub seen: Vec<SeenEvent>,
    /// Without a known holder: the last one. All other fields are of the last observation, and
    /// `fresh` is not applicable (the lock is free) or unknown, with the reason.
    pub past: Option<PastLock>,
    /// Read for the page only.
    pub charts: Option<LockCharts>,
}

/// What is known of a lock without a known holder.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PastLock {
    pub last: LastHolding,
    /// The newest token ever granted, if the backend counts tokens.
    pub newest_token: Option<FencingToken>,
}

/// Data of the charts on a lock's page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LockCharts {
    pub range: ShownRange,
    /// `None`: history could not be read in time.
    pub history: Option<LockHistory>,
    /// The reader may read the audit entries of forced unlocks.
    pub may_audit: bool,
    /// URLs of the trace ids of events, if configured.
    pub trace_links: Vec<(String, String)>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LockHistory {
    pub ownership: Timeline,
    pub hold_times: DurationChart,
    pub wait_times: DurationChart,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fresh {
    pub waiters: Vec<Waiter>,
    pub owners: Vec<OwnerId>,
    pub blockers: Vec<Blocker>,
    pub session: Option<Session>,
    /// For a lock on several independent nodes.
    #[serde(default)]
    pub quorum: Option<Quorum>,
    pub raw: Vec<RawField>,
    pub related_locks: Vec<String>,
    pub read_at: chrono::DateTime<chrono::Utc>,
}

impl LockDetail {
    /// No known holder now.
    pub fn is_gone(&self) -> bool {
        self.past.is_some() || self.fresh.is_absent()
    }

    /// Next in the queue, if the backend keeps a queue order.
    pub fn next_waiter(&self) -> Option<&Waiter> {
        let waiters = &self.fresh.known()?.waiters;
        if self.lock.kind.keeps_order() {
            waiters.iter().min_by_key(|waiter| waiter.position)
        } else {
            None
        }
    }
}

/// A change of this lock that the console observed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeenEvent {
    pub kind: EventKind,
    pub at: chrono::DateTime<chrono::Utc>,
    /// First seen after an outage of its backend: it happened between this time and `at`.
    pub not_before: Option<chrono::DateTime<chrono::Utc>>,
    pub owner_id: Option<OwnerId>,
    pub fencing_token: Option<FencingToken>,
    /// For [`EventKind::GrantedAfterWait`]: length of the wait, in milliseconds.
    pub waited_ms: Option<i64>,
    /// Trace id of the change, if known.
    pub trace_id: Option<String>,
}

crate::wire_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum EventKind {
        Acquired = "acquired",
        Renewed = "renewed",
        /// Gone before its TTL ran out.
        Released = "released",
        /// Gone, or still present, after its TTL had run out.
        Expired = "expired",
        /// Acquired by a new owner after the old owner's lease had expired.
        Reclaimed = "reclaimed",
        /// One more owner of a shared lock that others hold already.
        ShareAcquired = "share_acquired",
        /// One owner of a shared lock less; the others still hold it.
        ShareReleased = "share_released",
        Waiting = "waiting",
        /// Fewer waiters than before: one acquired the lock or gave up.
        FewerWaiting = "fewer_waiting",
        /// The new holder had waited for the lock. Recorded in addition to the grant, with the
        /// length of the wait.
        GrantedAfterWait = "granted_after_wait",
        /// Forced unlock through this console.
        Revoked = "revoked",
        /// A write with a stale token was rejected.
        Rejected = "rejected",
        /// A late renewal was rejected.
        Lost = "lost",
        /// Observation stopped: the console was not running, or more happened than it could
        /// record.
        Unwatched = "unwatched",
        /// Observation resumed.
        WatchedAgain = "watched_again",
    }
}

impl EventKind {
    pub const fn label(self) -> &'static str {
        match self {
            Self::Acquired => "acquired",
            Self::Renewed => "renewed",
            Self::Released => "released",
            Self::Expired => "expired",
            Self::Reclaimed => "reclaimed",
            Self::ShareAcquired => "share acquired",
            Self::ShareReleased => "share released",
            Self::Waiting => "waiting",
            Self::FewerWaiting => "fewer waiters",
            Self::GrantedAfterWait => "granted after wait",
            Self::Revoked => "released by force",
            Self::Rejected => "write rejected",
            Self::Lost => "lost",
            Self::Unwatched => "no data from here",
            Self::WatchedAgain => "data again",
        }
    }
}
