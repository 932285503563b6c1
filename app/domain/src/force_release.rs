//! Forced release at a backend: request, result, blast radius.
//!
//! Authorization and audit happen before a backend is called.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::generation::Generation;
use crate::names::{OwnerId, Resource};
use crate::observation::ObservedLock;
use crate::reported::Reported;
use crate::token::FencingToken;

/// Actor, reason and record of a forced unlock; passed to the holder if the backend supports
/// it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Act {
    pub by: Arc<str>,
    pub reason: Arc<str>,
    pub audit_id: Arc<str>,
}

/// Result of a forced release of one holding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Release {
    /// Exactly the named holding has ended.
    Released,
    /// Another holding exists now; it was not touched.
    HolderChanged { now: Box<Holding> },
    /// The lock is free; nothing was touched.
    AlreadyFree,
    /// Not done, with reason and remedy.
    Refused { why: String, remedy: String },
    /// The request was sent and no answer came: it may have been done. Only reading the lock
    /// again can tell.
    OutcomeUnknown { why: String },
    /// A release on several independent nodes: what follows from the results on each of them.
    OnNodes {
        result: Box<Self>,
        nodes: Vec<NodeRelease>,
    },
}

/// Result of a forced release on one of several independent nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeRelease {
    /// `host:port`; a number for a reader of a part of the backend.
    pub node: String,
    pub result: NodeResult,
    /// Why it was not done or is not known.
    #[serde(default)]
    pub why: Option<String>,
}

crate::wire_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum NodeResult {
        Deleted = "deleted",
        /// It had no key.
        NoKey = "no_key",
        /// It has another value, which was not touched.
        OtherValue = "other_value",
        Refused = "refused",
        Unreachable = "unreachable",
        /// The request was sent and no answer came.
        Unknown = "unknown",
    }
}

impl NodeResult {
    /// Label for users.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Deleted => "deleted",
            Self::NoKey => "no key",
            Self::OtherValue => "another value, not touched",
            Self::Refused => "refused",
            Self::Unreachable => "unreachable",
            Self::Unknown => "outcome unknown",
        }
    }
}

impl Release {
    /// The result's name in the API and in records.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::HolderChanged { .. } => "holder_changed",
            Self::AlreadyFree => "already_free",
            Self::Refused { .. } => "refused",
            Self::OutcomeUnknown { .. } => "outcome_unknown",
            Self::OnNodes { result, .. } => result.as_str(),
        }
    }

    pub fn refused(why: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Refused {
            why: why.into(),
            remedy: remedy.into(),
        }
    }
}

/// Identifies one holding of a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Holding {
    pub owner_id: Reported<OwnerId>,
    pub lease_id: Reported<String>,
    pub generation: Reported<Generation>,
    pub fencing_token: Reported<FencingToken>,
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

/// What else ends with a forced unlock, from one fresh reading.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BlastRadius {
    /// Everything else that ends with it.
    pub dies: Vec<Casualty>,
    /// Locks or keys end with it that `dies` cannot name: a truncated list, or the rows of a
    /// transaction.
    #[serde(default)]
    pub has_unnamed: bool,
    /// Number of locks that `dies` does not list, because its length is limited.
    #[serde(default)]
    pub unlisted: u64,
    /// Next in the queue, if the backend keeps a queue order.
    pub next: Option<OwnerId>,
    /// Warnings, one sentence each.
    pub warnings: Vec<String>,
    /// Why the next holding may look the same; `None` if it cannot.
    #[serde(default)]
    pub weak_identity: Option<String>,
}

/// One lock or key that ends with a forced unlock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Casualty {
    pub kind: CasualtyKind,
    /// In the backend's terms: `advisory key 42 (ExclusiveLock)`.
    pub what: String,
    /// The name that rules and scopes match; `None` if it is not a lock of this backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<Resource>,
}

crate::wire_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum CasualtyKind {
        Key = "key",
        Session = "session",
        Transaction = "transaction",
        Lock = "lock",
    }
}

impl CasualtyKind {
    /// For readers of a part of the backend. Descriptions of sessions and transactions could contain names of
    /// others; those of locks and keys are shown or left out by their names.
    pub const fn general_text(self) -> Option<&'static str> {
        match self {
            Self::Session => Some("the session that holds it"),
            Self::Transaction => Some("its open transaction"),
            Self::Key | Self::Lock => None,
        }
    }
}

impl BlastRadius {
    /// Prefix of a refusal that lists what would end besides what was shown.
    pub const WIDER: &str = "more would die with it than was shown";

    pub fn add(&mut self, kind: CasualtyKind, what: impl Into<String>) {
        self.dies.push(Casualty {
            kind,
            what: what.into(),
            resource: None,
        });
    }

    /// Adds a lock. Without a resource the radius counts as one with unnamed locks.
    pub fn add_lock(&mut self, what: impl Into<String>, resource: Option<Resource>) {
        self.has_unnamed |= resource.is_none();
        self.dies.push(Casualty {
            kind: CasualtyKind::Lock,
            what: what.into(),
            resource,
        });
    }

    /// `why`: a clause.
    pub fn weaken(&mut self, why: impl Into<String>) {
        let why = why.into();
        self.warn(format!(
            "The next holding may look the same: {why}. It is refused if more time is left than was reviewed and no renewal \
             explains it."
        ));
        self.weak_identity = Some(why);
    }

    pub fn warn(&mut self, sentence: impl Into<String>) {
        self.warnings.push(sentence.into());
    }
}
