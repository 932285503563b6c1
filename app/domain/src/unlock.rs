//! A forced unlock as a thing with a state: what was looked at, by whom, why, and what came of it.
//!
//! Knows the words and the rules that need no server. Who may, and what happens, is decided on the server.

mod reason;
mod typed;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::escape;
use crate::generation::Generation;
use crate::known::Known;
use crate::lock::Renewal;
use crate::names::{BackendName, OwnerId, Resource, Source};
use crate::observation::Waiter;
use crate::release::{BlastRadius, Holding};
use crate::token::FencingToken;

pub use reason::{REASON_CHARS_MAX, REASON_CHARS_MIN, Reason, WeakReason};
pub use typed::{difference, is_the_name, to_type};

/// Where a forced unlock stands. The words are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnlockState {
    Pending,
    Released,
    HolderChanged,
    AlreadyFree,
    Refused,
    /// From the act until its answer; and for good until the lock could be read again.
    OutcomeUnknown,
    Expired,
    Cancelled,
}

impl UnlockState {
    pub const ALL: [Self; 8] = [
        Self::Pending,
        Self::Released,
        Self::HolderChanged,
        Self::AlreadyFree,
        Self::Refused,
        Self::OutcomeUnknown,
        Self::Expired,
        Self::Cancelled,
    ];

    pub const fn wire(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Released => "released",
            Self::HolderChanged => "holder_changed",
            Self::AlreadyFree => "already_free",
            Self::Refused => "refused",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.wire() == word)
    }
}

/// How careful a forced unlock must be, by the prefix of the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    Standard,
    /// Somebody who proved a short while ago who they are, and a second person.
    Protected,
}

impl Tier {
    pub const fn wire(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Protected => "protected",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        [Self::Standard, Self::Protected]
            .into_iter()
            .find(|tier| tier.wire() == word)
    }
}

/// Why a forced unlock is held to a tier above `standard`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "because", rename_all = "snake_case")]
pub enum TierReason {
    /// A rule protects the name itself.
    Resource,
    /// A rule protects a lock that would be released with it. No name for readers who may not see it.
    Casualty { resource: Option<String> },
    /// Some of what would be released has no name, and a rule protects names of this backend.
    UnnamedCasualty,
}

impl TierReason {
    /// The word on the wire.
    pub const fn wire(&self) -> &'static str {
        match self {
            Self::Resource => "resource",
            Self::Casualty { .. } => "casualty",
            Self::UnnamedCasualty => "unnamed_casualty",
        }
    }

    /// The protected lock that would be released as well.
    pub fn casualty(&self) -> Option<&str> {
        match self {
            Self::Casualty { resource } => resource.as_deref(),
            Self::Resource | Self::UnnamedCasualty => None,
        }
    }

    /// The same without a name that `may_see` refuses.
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
impl std::fmt::Display for TierReason {
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

/// The lock as it was read for the intent: what the unlock is bound to. Never read again for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Observed {
    pub owner_id: Known<OwnerId>,
    pub owner_count: u32,
    pub lease_id: Known<String>,
    pub generation: Generation,
    pub fencing_token: Known<FencingToken>,
    pub acquired_at: Known<DateTime<Utc>>,
    pub held_ms: Known<i64>,
    pub held_at_least_ms: Option<i64>,
    pub ttl_ms: Known<i64>,
    /// By the backend's clock at the reading.
    pub remaining_ms: Known<i64>,
    /// Whether its holder still renews.
    pub renewing: Known<bool>,
    pub renewal: Known<Renewal>,
    pub waiters: Vec<Waiter>,
    pub blast_radius: BlastRadius,
    pub read_at: DateTime<Utc>,
}

impl Observed {
    pub fn holding(&self) -> Holding {
        Holding {
            owner_id: self.owner_id.clone(),
            lease_id: self.lease_id.clone(),
            generation: Known::Known(self.generation.clone()),
            fencing_token: self.fencing_token.clone(),
        }
    }
}

/// What is known of how it ended.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Ending {
    /// Who holds it after the act; none when nobody does, or nobody could tell.
    pub now: Option<Holding>,
    /// Whether `now` was read, or could not be.
    pub is_read: bool,
    /// Why it was not done, or why it is not known.
    pub why: Option<String>,
    /// What to do instead.
    pub mend: Option<String>,
    /// The answer to the act was lost; this was found by reading the lock again.
    pub is_by_rereading: bool,
}

/// A second person's word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    pub by_id: String,
    pub by_name: String,
    pub at: DateTime<Utc>,
}

/// Acting alone where a second person was wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BreakGlass {
    pub reason: String,
    /// None: it stays flagged.
    pub review: Option<Approval>,
}

/// One forced unlock, whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unlock {
    pub id: String,
    pub state: UnlockState,
    /// The strictest of the lock and of everything that would be released with it.
    pub tier: Tier,
    /// None where the tier is `standard`.
    pub tier_reason: Option<TierReason>,
    pub by_id: String,
    pub by_name: String,
    /// The person behind the session or token that began it; none where that is unknown.
    pub by_root_id: Option<String>,
    pub backend: BackendName,
    pub source: Source,
    pub resource: Resource,
    pub reason: String,
    pub observed: Observed,
    pub created_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
    /// Wrong names typed so far; the third one cancels it.
    pub mismatches: u32,
    pub approval: Option<Approval>,
    pub break_glass: Option<BreakGlass>,
    /// When the act began.
    pub acted_at: Option<DateTime<Utc>>,
    pub ended_at: Option<DateTime<Utc>>,
    pub ending: Ending,
    /// Rows of the audit record: of the intent, of the act, of the outcome.
    pub intent_row: i64,
    pub act_row: Option<i64>,
    pub outcome_row: Option<i64>,
    /// How often the lock was read again after an unknown outcome.
    pub rereads: u32,
}

impl Unlock {
    /// Acted on, and its outcome neither told nor found out.
    pub fn is_open(&self) -> bool {
        self.state == UnlockState::OutcomeUnknown
    }

    /// The name that confirms it.
    pub fn to_type(&self) -> String {
        to_type(&self.resource)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_and_tier_reads_back_from_its_word() {
        // The word, serde's word and the parser agree.
        for state in UnlockState::ALL {
            assert_eq!(UnlockState::parse(state.wire()), Some(state));
            assert_eq!(serde_json::to_value(state).unwrap(), state.wire());
        }
        for tier in [Tier::Standard, Tier::Protected] {
            assert_eq!(Tier::parse(tier.wire()), Some(tier));
            assert_eq!(serde_json::to_value(tier).unwrap(), tier.wire());
        }
    }
}
