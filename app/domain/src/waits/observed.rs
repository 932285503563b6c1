//! Input of the graph: the locks with waiters of each backend, as last observed.

use std::sync::Arc;

use super::WaitParty;
use crate::backend::{BackendKind, BackendStatus};
use crate::names::{BackendName, LockId};
use crate::tick::Tick;

/// One backend. All of it is present, also when it does not answer.
#[derive(Debug, Clone)]
pub struct BackendWaits {
    pub backend: BackendName,
    pub kind: BackendKind,
    pub status: BackendStatus,
    pub age_ms: Option<i64>,
    /// It reports its waiters.
    pub reports_waiters: bool,
    pub locks: Vec<LockWaits>,
    /// Locks whose waiters are counted by the backend, but not identified.
    pub unidentified_locks: u64,
}

/// One lock with its waiters.
#[derive(Debug, Clone)]
pub struct LockWaits {
    pub lock: LockId,
    /// The reading that found these waiters.
    pub read_at: Tick,
    pub is_stale: bool,
    /// How long its holder has held it, if known.
    pub held_ms: Option<i64>,
    pub waiters: Vec<WaitingParty>,
    /// Waiters beyond the limit per lock.
    pub more: u64,
}

#[derive(Debug, Clone)]
pub struct WaitingParty {
    pub party: Arc<WaitParty>,
    /// When it began to wait, or was first observed to wait.
    pub since: Tick,
    /// `since` is reported by the backend; otherwise the wait may be longer.
    pub is_since_reported: bool,
    /// What it asks for, where the backend says it: `ShareLock on transaction 812`.
    pub wants: Option<Box<str>>,
    /// The owners that it waits for.
    pub blocked_by: Vec<Arc<WaitParty>>,
}
