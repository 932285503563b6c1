//! The audit log: entries appended before and after an operation, and never changed.
//!
//! Owns the hash chain, exported checkpoints and queries. The callers decide what is recorded; the actor comes from
//! the session or the token, never from a form.
//!
//! **Invariants:** entries are numbered 1, 2, 3, … in commit order; each holds the hash of the previous one; no
//! statement of ours updates or deletes one, and the store rejects both.

mod append;
pub mod background_verifier;
pub mod chain;
pub mod checkpoints;
pub mod export;
mod filter;
mod read;
mod redaction;
mod refusals;
pub mod verify;

use std::net::IpAddr;
use std::sync::Arc;

use domain::audit::{Action, AuditPhase};

use runtime::change_signal::ChangeSignal;
use runtime::client_network::ClientNetwork;
use runtime::clock::Clock;
use runtime::db::Db;

pub use append::Appended;
pub use append::AuditRecord as StoredRow;
pub use background_verifier::{ChainState, ChainVerifier};
pub use checkpoints::ChainCheckpoints;
pub use read::RecordWithNeighbours;

/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct Audit {
    db: Db,
    clock: Clock,
    checkpoints: Arc<ChainCheckpoints>,
    published: ChangeSignal,
    refusals: refusals::Refusals,
}

/// Id and name of the actor of a request without a session or a token.
pub const ANONYMOUS: &str = "anonymous";

/// The actor, from the session or the token.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Actor {
    /// Id of the user or the token; [`ANONYMOUS`]; `system` for automatic operations.
    pub id: String,
    pub name: String,
    /// The role that allowed the operation, if any.
    pub role: Option<String>,
}

/// Client address and request of an entry.
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

/// Subject of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EntrySubject {
    pub backend: Option<String>,
    pub source: Option<String>,
    pub resource: Option<String>,
    pub unlock_id: Option<String>,
}

/// One entry to append.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub action: Action,
    pub phase: AuditPhase,
    pub outcome: String,
    pub actor: Actor,
    pub origin: Origin,
    pub subject: EntrySubject,
    pub reason: Option<String>,
    pub approver_id: Option<String>,
    pub before: Option<serde_json::Value>,
    pub after: Option<serde_json::Value>,
}

impl Entry {
    /// An operation that is recorded once, with its outcome.
    pub fn new(action: Action, outcome: impl Into<String>, actor: Actor, origin: Origin) -> Self {
        Self {
            action,
            phase: AuditPhase::Outcome,
            outcome: outcome.into(),
            actor,
            origin,
            subject: EntrySubject::default(),
            reason: None,
            approver_id: None,
            before: None,
            after: None,
        }
    }
}

impl Audit {
    pub fn new(db: Db, clock: Clock, checkpoints: ChainCheckpoints) -> Self {
        Self {
            db,
            clock,
            checkpoints: Arc::new(checkpoints),
            published: ChangeSignal::default(),
            refusals: refusals::Refusals::default(),
        }
    }

    pub(crate) fn db(&self) -> &Db {
        &self.db
    }
}
