//! The audit record as it is read: who did what to which lock, why, and how it ended.
//!
//! Rows are made by the server alone, from the session and never from what somebody typed. The chain of hashes that
//! ties them together is the server's too.

mod query;
mod readable;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

pub use query::AuditQuery;
pub use query::parse_moment;
pub use readable::{Place, Readable};

/// What was done or asked for. The words are stable: filters and exports use them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Action {
    ForceUnlock,
    Login,
    Logout,
    PersonCreate,
    PersonChange,
    PersonDisable,
    GrantAdd,
    GrantRemove,
    TokenCreate,
    TokenRevoke,
    SessionRevoke,
    TierChange,
    ReadOnlyChange,
    ReceiverCreate,
    ReceiverChange,
    ReceiverRemove,
    ReceiverTest,
    /// A dead letter was started again.
    ReceiverRetry,
    RuleCreate,
    RuleChange,
    RuleRemove,
    SilenceCreate,
    SilenceEnd,
    AlertAcked,
    /// Rows left the console in a file.
    AuditExport,
    /// The configuration was read again while the server ran.
    ConfigReload,
    /// Something that the caller may not do.
    Deny,
}

impl Action {
    pub const ALL: [Self; 27] = [
        Self::ForceUnlock,
        Self::Login,
        Self::Logout,
        Self::PersonCreate,
        Self::PersonChange,
        Self::PersonDisable,
        Self::GrantAdd,
        Self::GrantRemove,
        Self::TokenCreate,
        Self::TokenRevoke,
        Self::SessionRevoke,
        Self::TierChange,
        Self::ReadOnlyChange,
        Self::ReceiverCreate,
        Self::ReceiverChange,
        Self::ReceiverRemove,
        Self::ReceiverTest,
        Self::ReceiverRetry,
        Self::RuleCreate,
        Self::RuleChange,
        Self::RuleRemove,
        Self::SilenceCreate,
        Self::SilenceEnd,
        Self::AlertAcked,
        Self::AuditExport,
        Self::ConfigReload,
        Self::Deny,
    ];

    pub const fn wire(self) -> &'static str {
        match self {
            Self::ForceUnlock => "FORCE_UNLOCK",
            Self::Login => "LOGIN",
            Self::Logout => "LOGOUT",
            Self::PersonCreate => "PERSON_CREATE",
            Self::PersonChange => "PERSON_CHANGE",
            Self::PersonDisable => "PERSON_DISABLE",
            Self::GrantAdd => "GRANT_ADD",
            Self::GrantRemove => "GRANT_REMOVE",
            Self::TokenCreate => "TOKEN_CREATE",
            Self::TokenRevoke => "TOKEN_REVOKE",
            Self::SessionRevoke => "SESSION_REVOKE",
            Self::TierChange => "TIER_CHANGE",
            Self::ReadOnlyChange => "READ_ONLY_CHANGE",
            Self::ReceiverCreate => "RECEIVER_CREATE",
            Self::ReceiverChange => "RECEIVER_CHANGE",
            Self::ReceiverRemove => "RECEIVER_REMOVE",
            Self::ReceiverTest => "RECEIVER_TEST",
            Self::ReceiverRetry => "RECEIVER_RETRY",
            Self::RuleCreate => "RULE_CREATE",
            Self::RuleChange => "RULE_CHANGE",
            Self::RuleRemove => "RULE_REMOVE",
            Self::SilenceCreate => "SILENCE_CREATE",
            Self::SilenceEnd => "SILENCE_END",
            Self::AlertAcked => "ALERT_ACKED",
            Self::AuditExport => "AUDIT_EXPORT",
            Self::ConfigReload => "CONFIG_RELOAD",
            Self::Deny => "DENY",
        }
    }

    pub fn parse(wire: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.wire() == wire)
    }

    /// For people.
    pub const fn word(self) -> &'static str {
        match self {
            Self::ForceUnlock => "forced unlock",
            Self::Login => "sign-in",
            Self::Logout => "sign-out",
            Self::PersonCreate => "person added",
            Self::PersonChange => "person changed",
            Self::PersonDisable => "person disabled",
            Self::GrantAdd => "role granted",
            Self::GrantRemove => "role taken away",
            Self::TokenCreate => "token made",
            Self::TokenRevoke => "token revoked",
            Self::SessionRevoke => "session ended",
            Self::TierChange => "tier changed",
            Self::ReadOnlyChange => "read-only switch",
            Self::ReceiverCreate => "receiver added",
            Self::ReceiverChange => "receiver changed",
            Self::ReceiverRemove => "receiver removed",
            Self::ReceiverTest => "receiver tried",
            Self::ReceiverRetry => "notification retried",
            Self::RuleCreate => "alert rule made",
            Self::RuleChange => "alert rule changed",
            Self::RuleRemove => "alert rule removed",
            Self::SilenceCreate => "silence made",
            Self::SilenceEnd => "silence ended",
            Self::AlertAcked => "alert acknowledged",
            Self::AuditExport => "record exported",
            Self::ConfigReload => "configuration read again",
            Self::Deny => "request refused",
        }
    }
}

/// A forced unlock is recorded before the act and after it; in between, people approve or give up. Everything else is
/// one row with its outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    Intent,
    Approval,
    /// The act begins: without an outcome after it, its outcome is unknown.
    Act,
    Outcome,
}

impl Phase {
    pub const ALL: [Self; 4] = [Self::Intent, Self::Approval, Self::Act, Self::Outcome];

    pub const fn wire(self) -> &'static str {
        match self {
            Self::Intent => "intent",
            Self::Approval => "approval",
            Self::Act => "act",
            Self::Outcome => "outcome",
        }
    }

    pub fn parse(wire: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|phase| phase.wire() == wire)
    }
}

/// One row, as pages, the API and exports show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditRow {
    /// 1, 2, 3, … without a gap, as text.
    pub id: String,
    pub created_at: DateTime<Utc>,
    pub action: String,
    pub phase: String,
    /// `ok`, or a stable word of the refusal, or the final state of an unlock.
    pub outcome: String,
    pub actor_id: String,
    pub actor_name: String,
    pub role: Option<String>,
    pub backend: Option<String>,
    pub source: Option<String>,
    pub resource: Option<String>,
    pub unlock_id: Option<String>,
    pub reason: Option<String>,
    pub approver_id: Option<String>,
    /// JSON.
    pub before: Option<String>,
    /// JSON.
    pub after: Option<String>,
    pub ip: Option<String>,
    pub user_agent: Option<String>,
    pub request_id: Option<String>,
    pub trace_id: Option<String>,
    pub prev_hash: String,
    pub hash: String,
}

/// Newest first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditPage {
    pub rows: Vec<AuditRow>,
    pub next_cursor: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_and_phase_reads_back_from_its_word() {
        // The word, serde's word and the parser agree.
        for action in Action::ALL {
            assert_eq!(Action::parse(action.wire()), Some(action));
            assert_eq!(serde_json::to_value(action).unwrap(), action.wire());
        }
        for phase in Phase::ALL {
            assert_eq!(Phase::parse(phase.wire()), Some(phase));
            assert_eq!(serde_json::to_value(phase).unwrap(), phase.wire());
        }
    }
}
