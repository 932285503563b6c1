//! Entries of the audit log.

use chrono::{DateTime, Utc};
use domain::audit::{AuditEntry, AuditPage};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "AuditPage")]
pub struct AuditPageDto {
    /// Newest first.
    entries: Vec<AuditEntryDto>,
    /// Null: there are no older ones.
    next_cursor: Option<String>,
}

/// Absent values are left out, or null.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "AuditEntry")]
pub struct AuditEntryDto {
    /// 1, 2, 3, … without a gap, as text.
    id: String,
    created_at: DateTime<Utc>,
    /// `FORCE_UNLOCK`, `LOGIN`, `TOKEN_CREATE` and so on.
    action: String,
    /// `intent`, `approval`, `act` or `outcome`; an action without an intent has only its outcome.
    phase: String,
    /// `ok`, the final state of an unlock, or the stable word of a refusal.
    outcome: String,
    actor_id: String,
    actor_name: String,
    /// Role that allowed it.
    role: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backend: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unlock_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    approver_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<Value>,
    ip: Option<String>,
    user_agent: Option<String>,
    request_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_id: Option<String>,
    /// Hash of the previous entry; zeros in the first entry.
    prev_hash: String,
    /// SHA-256 of the previous hash and every field, in hex.
    hash: String,
}

impl From<AuditPage> for AuditPageDto {
    fn from(page: AuditPage) -> Self {
        Self {
            entries: page.rows.into_iter().map(AuditEntryDto::from).collect(),
            next_cursor: page.next_cursor,
        }
    }
}

impl From<AuditEntry> for AuditEntryDto {
    fn from(row: AuditEntry) -> Self {
        // The server writes JSON; anything else is shown as text.
        let json = |text: Option<String>| {
            text.map(|text| serde_json::from_str(&text).unwrap_or(Value::String(text)))
        };
        Self {
            id: row.id,
            created_at: row.created_at,
            action: row.action,
            phase: row.phase,
            outcome: row.outcome,
            actor_id: row.actor_id,
            actor_name: row.actor_name,
            role: row.role,
            backend: row.backend,
            source: row.source,
            resource: row.resource,
            unlock_id: row.unlock_id,
            reason: row.reason,
            approver_id: row.approver_id,
            before: json(row.before),
            after: json(row.after),
            ip: row.ip,
            user_agent: row.user_agent,
            request_id: row.request_id,
            trace_id: row.trace_id,
            prev_hash: row.prev_hash,
            hash: row.hash,
        }
    }
}

impl AuditEntryDto {
    /// One line of JSON, with its end.
    pub fn line(&self) -> String {
        // A row of texts always has a JSON.
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}
