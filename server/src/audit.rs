//! The audit record: rows that are appended before and after an act, and never changed.
//!
//! Owns the chain of hashes, the exported heads and reading it back. What is recorded is decided by those who act; who
//! acted comes from the session or the token, never from a form.
//!
//! **Invariants:** rows are numbered 1, 2, 3, … in commit order; each holds the hash of the one before; no statement of
//! ours updates or deletes one, and the store refuses both.

mod anonymous;
mod append;
pub mod chain;
mod cut;
pub mod export;
mod filter;
pub mod heads;
pub mod keeper;
mod read;
pub mod verify;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use domain::audit::{Action, Phase};

use crate::client_network::ClientNetwork;
use crate::clock::Clock;
use crate::db::Db;

pub use append::Appended;
pub(crate) use append::Row as StoredRow;
pub use heads::Heads;
pub use keeper::{ChainState, Keeper};
pub use read::Look;

/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct Audit {
    db: Db,
    clock: Clock,
    heads: Arc<Heads>,
    told: Arc<AtomicU64>,
    anonymous: anonymous::AnonymousCounts,
}

/// Who acts, as the session or the token says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Actor {
    /// Id of the person or the token; `anonymous`, or `system` for what nobody asked for.
    pub id: String,
    pub name: String,
    /// The role by which it was allowed, or refused.
    pub role: Option<String>,
}

/// Where a request came from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Origin {
    pub ip: Option<IpAddr>,
    pub user_agent: Option<Arc<str>>,
    pub request_id: Option<Arc<str>>,
    pub trace_id: Option<Arc<str>>,
}

impl Origin {
    pub(crate) fn network(&self) -> ClientNetwork {
        self.ip.map_or(ClientNetwork::UNKNOWN, ClientNetwork::from)
    }
}

/// What is acted on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Subject {
    pub backend: Option<String>,
    pub source: Option<String>,
    pub resource: Option<String>,
    pub unlock_id: Option<String>,
}

/// One thing to record.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub action: Action,
    pub phase: Phase,
    pub outcome: String,
    pub actor: Actor,
    pub origin: Origin,
    pub subject: Subject,
    pub reason: Option<String>,
    pub approver_id: Option<String>,
    pub before: Option<serde_json::Value>,
    pub after: Option<serde_json::Value>,
}

impl Entry {
    /// Something done at once, with its outcome.
    pub fn new(action: Action, outcome: impl Into<String>, actor: Actor, origin: Origin) -> Self {
        Self {
            action,
            phase: Phase::Outcome,
            outcome: outcome.into(),
            actor,
            origin,
            subject: Subject::default(),
            reason: None,
            approver_id: None,
            before: None,
            after: None,
        }
    }
}

impl Audit {
    pub fn new(db: Db, clock: Clock, heads: Heads) -> Self {
        Self {
            db,
            clock,
            heads: Arc::new(heads),
            told: Arc::default(),
            anonymous: anonymous::AnonymousCounts::default(),
        }
    }

    pub(crate) fn db(&self) -> &Db {
        &self.db
    }
}
