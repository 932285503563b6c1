//! What a forced unlock asks of a backend, what came of it, and what it takes along.
//!
//! Says nothing about who may ask for it, nor about its record: that is decided before a backend is asked.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::generation::Generation;
use crate::known::Known;
use crate::names::{OwnerId, Resource};
use crate::observation::ObservedLock;
use crate::token::FencingToken;

/// Who breaks a lock, why, and under which record: told to the holder where the backend can.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Act {
    pub by: Arc<str>,
    pub reason: Arc<str>,
    pub audit_id: Arc<str>,
}

/// What came of a forced unlock of one holding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Release {
    /// Exactly the holding that was named has ended.
    Released,
    /// Another holding stands there now; it was not touched.
    HolderChanged { now: Box<Holding> },
    /// Nobody holds it; nothing was touched.
    AlreadyFree,
    /// It was not done, for this reason; what to do instead.
    Refused { why: String, mend: String },
    /// It was asked for and no answer came: it may have been done. Only reading the lock again can tell.
    OutcomeUnknown { why: String },
}

impl Release {
    /// The state as contracts and records write it.
    pub const fn wire(&self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::HolderChanged { .. } => "holder_changed",
            Self::AlreadyFree => "already_free",
            Self::Refused { .. } => "refused",
            Self::OutcomeUnknown { .. } => "outcome_unknown",
        }
    }

    pub fn refused(why: impl Into<String>, mend: impl Into<String>) -> Self {
        Self::Refused {
            why: why.into(),
            mend: mend.into(),
        }
    }
}

/// Who holds a lock, as far as it takes to tell one holding from another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Holding {
    pub owner_id: Known<OwnerId>,
    pub lease_id: Known<String>,
    pub generation: Known<Generation>,
    pub fencing_token: Known<FencingToken>,
}

impl From<&ObservedLock> for Holding {
    fn from(lock: &ObservedLock) -> Self {
        Self {
            owner_id: lock.owner.clone(),
            lease_id: lock.lease_id.as_ref().map(|id| id.to_string()),
            generation: lock.generation.clone(),
            fencing_token: lock.fencing_token.clone(),
        }
    }
}

/// What a forced unlock takes along, from one fresh reading.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BlastRadius {
    /// Everything else that ends with it; empty when nothing does.
    pub dies: Vec<Casualty>,
    /// Locks or keys end with it that `dies` cannot name: a list that was cut, or the rows of a transaction.
    #[serde(default)]
    pub has_unnamed: bool,
    /// Who gets it next, where the backend keeps the order of its queue.
    pub next: Option<OwnerId>,
    /// What to know before, a sentence each.
    pub warnings: Vec<String>,
}

/// One thing that ends with a forced unlock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Casualty {
    pub kind: CasualtyKind,
    /// In the backend's own words: `advisory key 42 (ExclusiveLock)`.
    pub what: String,
    /// The name that rules and scopes are compared with; none for what is not a lock of this backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<Resource>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CasualtyKind {
    Key,
    Session,
    Transaction,
    Lock,
}

impl CasualtyKind {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Session => "session",
            Self::Transaction => "transaction",
            Self::Lock => "lock",
        }
    }
}

impl BlastRadius {
    /// How a refusal begins whose rest names what would die beside what was shown.
    pub const WIDER: &str = "more would die with it than was shown";

    pub fn add(&mut self, kind: CasualtyKind, what: impl Into<String>) {
        self.dies.push(Casualty {
            kind,
            what: what.into(),
            resource: None,
        });
    }

    /// Adds a lock with its name. Without a name the radius counts as one with unnamed locks.
    pub fn add_lock(&mut self, what: impl Into<String>, resource: Option<Resource>) {
        self.has_unnamed |= resource.is_none();
        self.dies.push(Casualty {
            kind: CasualtyKind::Lock,
            what: what.into(),
            resource,
        });
    }

    pub fn warn(&mut self, sentence: impl Into<String>) {
        self.warnings.push(sentence.into());
    }
}
