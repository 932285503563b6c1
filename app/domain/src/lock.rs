//! One lock, merged and diagnosed: the row that pages, API and command line show.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::backend::BackendKind;
use crate::generation::Generation;
use crate::names::{LockId, OwnerId};
use crate::reported::Reported;
use crate::safety::Safety;
use crate::state::{LockState, StateReason};
use crate::token::FencingToken;

/// A renewal interval, learnt by observation or reported by the backend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Renewal {
    /// By the backend's clock.
    pub last_at: DateTime<Utc>,
    pub last_ago_ms: i64,
    pub interval_ms: i64,
    pub count: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lock {
    pub id: LockId,
    pub kind: BackendKind,
    pub owner_id: Reported<OwnerId>,
    pub owner_count: u32,
    pub lease_id: Reported<String>,
    pub generation: Reported<Generation>,
    pub fencing_token: Reported<FencingToken>,
    pub acquired_at: Reported<DateTime<Utc>>,
    pub expires_at: Reported<DateTime<Utc>>,
    pub held_ms: Reported<i64>,
    /// Since this acquisition was first observed: always known, never more than `held_ms`.
    pub held_at_least_ms: i64,
    pub ttl_ms: Reported<i64>,
    /// Negative once expired. On a stale backend: an upper bound.
    pub remaining_ms: Reported<i64>,
    pub waiter_count: Reported<u32>,
    pub state: LockState,
    pub reasons: Vec<StateReason>,
    pub safety: Safety,
    pub renewal: Reported<Renewal>,
    /// By our clock.
    pub observed_at: DateTime<Utc>,
    pub age_ms: i64,
    /// Length of the expiry bar's track: the TTL, or the largest time left observed.
    pub track_ms: Option<i64>,
    /// Time left at which it becomes near expiry (see [`crate::diagnosis::notch_ms`]); `None`
    /// without a lease.
    #[serde(default)]
    pub notch_ms: Option<i64>,
    /// Time left at past renewals, oldest first.
    pub low_marks_ms: Vec<i64>,
    /// Lives as long as a session: no lease.
    pub session_bound: bool,
}

impl Lock {
    /// For a reader whose scope is a part of the backend: the lock is stale, and the error text
    /// of the backend is left out.
    #[must_use]
    pub fn limited(mut self) -> Self {
        for reason in &mut self.reasons {
            if reason.state == LockState::Stale {
                reason.why = format!("{} does not answer", self.id.backend);
            }
        }
        self
    }

    pub fn is_stale(&self) -> bool {
        self.state == LockState::Stale
    }

    /// The first reason's sentence, for one line.
    pub fn cause(&self) -> &str {
        self.reasons.first().map_or("", |reason| reason.why.as_str())
    }
}
