//! A past that did not happen, for the history of a demo: holdings of locks, as a workload would have made them.

use crate::backend::BackendKind;
use crate::names::{BackendName, Resource, Source};

/// Times are milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulatedPast {
    pub from: i64,
    pub until: i64,
    pub backends: Vec<SimulatedBackend>,
    /// In any order; each within `from` and `until`.
    pub holds: Vec<SimulatedHold>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulatedBackend {
    pub name: BackendName,
    pub kind: BackendKind,
    pub reports_waiters: bool,
}

/// One holding of one lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulatedHold {
    pub backend: BackendName,
    pub source: Source,
    pub resource: Resource,
    pub owner: String,
    pub began: i64,
    pub ended: i64,
    /// The lease ran out; otherwise its owner released it.
    pub is_expired: bool,
    /// `None`: it lasts as long as the session of its owner.
    pub ttl_ms: Option<u32>,
    /// `None`: never renewed.
    pub renews_every_ms: Option<i64>,
    /// Time before its end without renewals.
    pub silent_ms: i64,
    /// Owners that wait while it is held; the first of them is granted next.
    pub waiters: u32,
}
