//! One lock, merged and judged: the row that pages, API and command line show.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::backend::BackendKind;
use crate::generation::Generation;
use crate::known::Known;
use crate::names::{LockId, OwnerId};
use crate::safety::Safety;
use crate::state::{LockState, Reason};
use crate::token::FencingToken;

/// A renewal cadence, learnt by watching or told by the backend.
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
    pub owner_id: Known<OwnerId>,
    pub owner_count: u32,
    pub lease_id: Known<String>,
    pub generation: Known<Generation>,
    pub fencing_token: Known<FencingToken>,
    pub acquired_at: Known<DateTime<Utc>>,
    pub expires_at: Known<DateTime<Utc>>,
    pub held_ms: Known<i64>,
    /// Since we first saw this very acquisition: always known, never more than `held_ms`.
    pub held_at_least_ms: i64,
    pub ttl_ms: Known<i64>,
    /// Negative once expired. On a stale backend: at most this much.
    pub remaining_ms: Known<i64>,
    pub waiter_count: Known<u32>,
    pub state: LockState,
    pub reasons: Vec<Reason>,
    pub safety: Safety,
    pub renewal: Known<Renewal>,
    /// By our clock.
    pub observed_at: DateTime<Utc>,
    pub age_ms: i64,
    /// Length of the runway's track: the TTL, or the most that was ever left.
    pub track_ms: Option<i64>,
    /// What is left when it will be called near expiry (see [`crate::diagnosis::notch_ms`]); none without a lease.
    #[serde(default)]
    pub notch_ms: Option<i64>,
    /// What was left when past renewals came, oldest first.
    pub low_marks_ms: Vec<i64>,
    /// Lives as long as a session: no lease to run down.
    pub session_bound: bool,
}

impl Lock {
    /// For a reader whose scope is a part of the backend: the lock is stale, and the error text of the backend is left out.
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
