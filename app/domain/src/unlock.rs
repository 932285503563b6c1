//! State of a forced unlock: the lock as observed, who requested it, the reason, the result.
//!
//! Owns the types and the rules that need no server. Authorization and execution are in the
//! server.

mod general_reason;
mod name_confirmation;
mod reason;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::escape;
use crate::force_release::{BlastRadius, Holding, NodeRelease};
use crate::generation::Generation;
use crate::lock::Renewal;
use crate::names::{BackendName, OwnerId, Resource, Source};
use crate::observation::Waiter;
use crate::quorum::Quorum;
use crate::reported::Reported;
use crate::token::FencingToken;

pub use general_reason::{GENERAL_REMEDY, general_reason};
pub use name_confirmation::{difference, is_the_name, to_type};
pub use reason::{REASON_CHARS_MAX, REASON_CHARS_MIN, UnlockReason, WeakReason};

crate::wire_enum! {
    /// State of a forced unlock. The names are stable.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum UnlockState {
        Pending = "pending",
        Released = "released",
        HolderChanged = "holder_changed",
        AlreadyFree = "already_free",
        Refused = "refused",
        /// From the release until its answer; stays if the lock could not be read again.
        OutcomeUnknown = "outcome_unknown",
        Expired = "expired",
        Cancelled = "cancelled",
    }
}

crate::wire_enum! {
    /// Protection level of a lock, by the prefix of its name.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum ProtectionLevel {
        Standard = "standard",
        /// Requires a recent sign-in and a second approver.
        Protected = "protected",
    }
}

/// Why the protection level is above `standard`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "because", rename_all = "snake_case")]
pub enum ProtectionReason {
    /// A rule protects the name itself.
    Resource,
    /// A rule protects a lock that would be released too. `None` for readers who may not see
    /// its name.
    Casualty { resource: Option<String> },
    /// Some of the locks that would be released have no name, and a rule protects names of this
    /// backend.
    UnnamedCasualty,
}

impl ProtectionReason {
    /// Wire name.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Resource => "resource",
            Self::Casualty { .. } => "casualty",
            Self::UnnamedCasualty => "unnamed_casualty",
        }
    }

    /// The protected lock that would be released too.
    pub fn casualty(&self) -> Option<&str> {
        match self {
            Self::Casualty { resource } => resource.as_deref(),
            Self::Resource | Self::UnnamedCasualty => None,
        }
    }

    /// The same without a name that `may_see` rejects.
    #[must_use]
    pub fn cut(self, may_see: impl FnOnce(&str) -> bool) -> Self {
        match self {
            Self::Casualty { resource } => Self::Casualty {
                resource: resource.filter(|name| may_see(name)),
            },
            other => other,
        }
    }
}

/// A clause, without a capital at its start or a full stop at its end.
impl std::fmt::Display for ProtectionReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Resource => f.write_str("this name is protected"),
            Self::Casualty { resource: Some(name) } => {
                write!(
                    f,
                    "it would also release {}, which is protected",
                    escape::visible(name)
                )
            }
            Self::Casualty { resource: None } => {
                f.write_str("it would also release a lock that is protected")
            }
            Self::UnnamedCasualty => f.write_str(
                "it would also release locks that cannot be named, and this backend has protected names",
            ),
        }
    }
}

/// The lock as read for the intent; the unlock is bound to it. Never read again for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObservedHolding {
    pub owner_id: Reported<OwnerId>,
    pub owner_count: u32,
    pub lease_id: Reported<String>,
    pub generation: Generation,
    pub fencing_token: Reported<FencingToken>,
    pub acquired_at: Reported<DateTime<Utc>>,
    pub held_ms: Reported<i64>,
    pub held_at_least_ms: Option<i64>,
    pub ttl_ms: Reported<i64>,
    /// By the backend's clock at the reading.
    pub remaining_ms: Reported<i64>,
    /// Whether its holder still renews.
    pub renewing: Reported<bool>,
    pub renewal: Reported<Renewal>,
    pub waiters: Vec<Waiter>,
    /// For a lock on several independent nodes.
    #[serde(default)]
    pub quorum: Option<Quorum>,
    pub blast_radius: BlastRadius,
    pub read_at: DateTime<Utc>,
}

impl ObservedHolding {
    pub fn holding(&self) -> Holding {
        Holding {
            owner_id: self.owner_id.clone(),
            lease_id: self.lease_id.clone(),
            generation: Reported::Value(self.generation.clone()),
            fencing_token: self.fencing_token.clone(),
        }
    }
}

/// What is known about the end of a holding.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EndedHolding {
    /// Current holding after the release; `None` if free or unknown.
    pub now: Option<Holding>,
    /// Whether `now` was read.
    pub is_read: bool,
    /// Why it was not done, or why the result is unknown.
    pub why: Option<String>,
    /// Remedy.
    pub remedy: Option<String>,
    /// The response to the release was lost; this comes from reading the lock again.
    pub is_by_rereading: bool,
    /// Result on each node, for a lock on several independent nodes.
    #[serde(default)]
    pub nodes: Vec<NodeRelease>,
}

/// Approval by a second approver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    pub by_id: String,
    pub by_name: String,
    pub at: DateTime<Utc>,
}

/// Break-glass: executed without a second approver although one was required.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BreakGlass {
    pub reason: String,
    /// `None`: still flagged for review.
    pub review: Option<Approval>,
}

/// One forced unlock with all its steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unlock {
    pub id: String,
    pub state: UnlockState,
    /// The strictest level of the lock and of everything that would be released with it.
    pub protection: ProtectionLevel,
    /// `None` if the protection is `standard`.
    pub protection_reason: Option<ProtectionReason>,
    pub by_id: String,
    pub by_name: String,
    /// The user behind the session or token that requested it; `None` if unknown.
    pub by_root_user_id: Option<String>,
    pub backend: BackendName,
    pub source: Source,
    pub resource: Resource,
    pub reason: String,
    pub observed: ObservedHolding,
    pub created_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
    /// Wrong names typed so far; the third one cancels it.
    pub mismatches: u32,
    pub approval: Option<Approval>,
    pub break_glass: Option<BreakGlass>,
    /// When the release began.
    pub acted_at: Option<DateTime<Utc>>,
    pub ended_at: Option<DateTime<Utc>>,
    pub ending: EndedHolding,
    /// Audit entries of the intent, the release and the outcome.
    pub intent_entry: i64,
    pub act_entry: Option<i64>,
    pub outcome_entry: Option<i64>,
    /// How often the lock was read again after an unknown outcome.
    pub rereads: u32,
}

impl Unlock {
    /// Released with an outcome that is still unknown.
    pub fn is_open(&self) -> bool {
        self.state == UnlockState::OutcomeUnknown
    }

    /// The text to type for confirmation.
    pub fn to_type(&self) -> String {
        to_type(&self.resource)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_and_protection_parses_from_its_wire_name() {
        // The wire name, serde and the parser agree.
        for state in UnlockState::ALL {
            assert_eq!(UnlockState::parse(state.as_str()), Some(state));
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
        }
        for protection in [ProtectionLevel::Standard, ProtectionLevel::Protected] {
            assert_eq!(ProtectionLevel::parse(protection.as_str()), Some(protection));
            assert_eq!(serde_json::to_value(protection).unwrap(), protection.as_str());
        }
    }
}
