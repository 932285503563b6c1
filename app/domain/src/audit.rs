//! Audit entries as read: actor, action, lock, reason, outcome.
//!
//! The server creates entries from the session, never from user input. The hash chain over them
//! is in the server too.

mod query;
mod visibility;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

pub use query::AuditQuery;
pub use query::parse_moment;
pub use visibility::{EntrySubject, Readable};

crate::wire_enum! {
    /// Recorded action. The names are stable: filters and exports use them.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "SCREAMING_SNAKE_CASE")]
    pub enum Action {
        ForceUnlock = "FORCE_UNLOCK",
        Login = "LOGIN",
        Logout = "LOGOUT",
        UserCreate = "USER_CREATE",
        UserChange = "USER_CHANGE",
        UserDisable = "USER_DISABLE",
        TokenCreate = "TOKEN_CREATE",
        TokenRevoke = "TOKEN_REVOKE",
        SessionRevoke = "SESSION_REVOKE",
        ProtectedPrefixChange = "PROTECTED_PREFIX_CHANGE",
        ReadOnlyChange = "READ_ONLY_CHANGE",
        ReceiverCreate = "RECEIVER_CREATE",
        ReceiverChange = "RECEIVER_CHANGE",
        ReceiverRemove = "RECEIVER_REMOVE",
        ReceiverTest = "RECEIVER_TEST",
        /// Delivery of a dead letter was started again.
        ReceiverRetry = "RECEIVER_RETRY",
        RuleCreate = "RULE_CREATE",
        RuleChange = "RULE_CHANGE",
        RuleRemove = "RULE_REMOVE",
        SilenceCreate = "SILENCE_CREATE",
        SilenceEnd = "SILENCE_END",
        AlertAcked = "ALERT_ACKED",
        /// Entries were exported to a file.
        AuditExport = "AUDIT_EXPORT",
        /// The configuration was reloaded while the server ran.
        ConfigReload = "CONFIG_RELOAD",
        /// An action that the caller has no permission for.
        Deny = "DENY",
    }
}

impl Action {
    /// For display.
    pub const fn label(self) -> &'static str {
        match self {
            Self::ForceUnlock => "forced unlock",
            Self::Login => "sign-in",
            Self::Logout => "sign-out",
            Self::UserCreate => "user added",
            Self::UserChange => "user changed",
            Self::UserDisable => "user disabled",
            Self::TokenCreate => "token created",
            Self::TokenRevoke => "token revoked",
            Self::SessionRevoke => "session ended",
            Self::ProtectedPrefixChange => "protected prefix changed",
            Self::ReadOnlyChange => "read-only switch",
            Self::ReceiverCreate => "receiver added",
            Self::ReceiverChange => "receiver changed",
            Self::ReceiverRemove => "receiver removed",
            Self::ReceiverTest => "receiver tested",
            Self::ReceiverRetry => "notification retried",
            Self::RuleCreate => "alert rule created",
            Self::RuleChange => "alert rule changed",
            Self::RuleRemove => "alert rule removed",
            Self::SilenceCreate => "silence created",
            Self::SilenceEnd => "silence ended",
            Self::AlertAcked => "alert acknowledged",
            Self::AuditExport => "audit log exported",
            Self::ConfigReload => "configuration reloaded",
            Self::Deny => "request refused",
        }
    }
}

crate::wire_enum! {
    /// A forced unlock has entries before the release and after it, and for approvals and
    /// cancellation in between. Every other action is one entry with its outcome.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum AuditPhase {
        Intent = "intent",
        Approval = "approval",
        /// The release begins. Without a following outcome entry its outcome is unknown.
        Act = "act",
        Outcome = "outcome",
    }
}

/// One entry, as shown by pages, the API and exports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditEntry {
    /// 1, 2, 3, … without a gap, as text.
    pub id: String,
    pub created_at: DateTime<Utc>,
    pub action: String,
    pub phase: String,
    /// `ok`, an error code, or the final state of an unlock.
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
    pub rows: Vec<AuditEntry>,
    pub next_cursor: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_and_phase_parses_from_its_wire_name() {
        // The wire name, serde and the parser agree.
        for action in Action::ALL {
            assert_eq!(Action::parse(action.as_str()), Some(action));
            assert_eq!(serde_json::to_value(action).unwrap(), action.as_str());
        }
        for phase in AuditPhase::ALL {
            assert_eq!(AuditPhase::parse(phase.as_str()), Some(phase));
            assert_eq!(serde_json::to_value(phase).unwrap(), phase.as_str());
        }
    }
}
