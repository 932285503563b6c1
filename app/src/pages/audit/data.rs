//! Data of the audit log's pages.

use chrono::{DateTime, Utc};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use crate::api::codec::EncodedResponse;
use crate::api::error::ApiError;
use crate::console::ConsoleFuture;

/// `/audit`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditData {
    /// Names of backends to choose from.
    pub backends: Vec<String>,
    pub filters: AuditFilters,
    pub chain: ChainStatus,
    pub pending: Vec<PendingReview>,
    pub found: AuditSearchResult,
    /// Milliseconds since 1970, by the server's clock.
    pub now: i64,
}

/// The filters as entered, valid or not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditFilters {
    pub actor: String,
    pub backend: String,
    pub prefix: String,
    pub action: String,
    pub outcome: String,
    pub unlock_id: String,
    /// Format of the browser's time field, in UTC.
    pub from: String,
    pub to: String,
    /// The invalid field and its error.
    pub fault: Option<(String, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum AuditSearchResult {
    Entries {
        rows: Vec<AuditTableRow>,
        /// Cursor of the next page.
        older: Option<String>,
        is_first: bool,
    },
    /// The filter form has the error.
    InvalidFilter,
    /// The store does not answer.
    Unavailable,
}

/// Verification status of the hash chain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainStatus {
    /// Entries 1 to this one are verified.
    pub verified: i64,
    pub hash: String,
    /// Milliseconds since 1970. `None`: the first verification is not complete.
    pub checked_at: Option<i64>,
    pub walked_at: Option<i64>,
    /// The first bad entry and its error.
    pub fault: Option<(i64, String)>,
    /// The last read failed.
    pub is_unreadable: bool,
    /// The newest entry.
    pub last: Option<i64>,
    /// Verification intervals for display: new entries, all entries.
    pub intervals: (String, String),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingReview {
    pub unlock_id: String,
    pub by: String,
    pub backend: String,
    pub resource: String,
    /// Milliseconds since 1970.
    pub at: i64,
    pub kind: PendingKind,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PendingKind {
    OutcomeUnknown,
    BreakGlass { reason: String, review: ReviewRight },
}

/// Whether the user may review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReviewRight {
    May,
    /// The user's own unlock.
    Own,
    /// No permission.
    Others,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditTableRow {
    pub id: String,
    pub at: DateTime<Utc>,
    pub actor: String,
    pub role: Option<String>,
    pub action: String,
    /// Of a forced unlock.
    pub phase: Option<String>,
    pub outcome: String,
    pub backend: Option<String>,
    pub resource: Option<String>,
    /// Subject of an entry that is not about a lock.
    pub about: Option<String>,
    pub reason: Option<String>,
    pub approver: Option<String>,
    pub join: Join,
    pub flag: EntryFlag,
    /// A step of the same unlock elsewhere on the page: its label and entry.
    pub pair: Option<(String, i64)>,
}

/// Position among the steps of its unlock on this page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Join {
    #[default]
    Alone,
    First,
    Middle,
    Last,
}

/// Entries that need attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum EntryFlag {
    #[default]
    Nothing,
    /// Begun, with an unknown outcome.
    Open,
    /// Break-glass without a review.
    NotReviewed,
}

/// `/audit/{id}`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntryData {
    pub row: AuditTableRow,
    pub actor_id: String,
    pub source: Option<String>,
    pub unlock_id: Option<String>,
    pub ip: Option<String>,
    pub user_agent: Option<String>,
    pub request_id: Option<String>,
    pub trace_id: Option<String>,
    pub hash: String,
    pub prev_hash: String,
    pub is_hash_valid: bool,
    pub follows_previous: bool,
    pub changes: Vec<FieldChange>,
    /// Every step of its unlock, oldest first.
    pub steps: Vec<AuditTableRow>,
    pub older: Option<AuditTableRow>,
    pub newer: Option<AuditTableRow>,
    /// Its break-glass unlock is not reviewed.
    pub review: Option<ReviewRight>,
}

/// One field before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldChange {
    pub field: String,
    pub before: Option<String>,
    pub after: Option<String>,
    pub mark: ChangeMark,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChangeMark {
    Same,
    Changed,
    /// Only one side has the field.
    OneSided,
}

/// Port: the server implements it, for the caller of a request.
pub trait AuditPort {
    fn audit(&self, search: String) -> ConsoleFuture<'_, AuditData>;
    fn audit_entry(&self, id: String) -> ConsoleFuture<'_, AuditEntryData>;
}

/// `search` is the page's query string: its filters and its cursor.
#[server(name = GetAudit, prefix = "/api", endpoint = "audit", input = GetUrl, output = EncodedResponse)]
pub async fn audit(search: String) -> Result<AuditData, ApiError> {
    let context = crate::api::error::from_context()?;
    context.set_status(context.pages()?.audit(search).await)
}

#[server(name = GetAuditEntry, prefix = "/api", endpoint = "audit-entry", input = GetUrl, output = EncodedResponse)]
pub async fn audit_entry(id: String) -> Result<AuditEntryData, ApiError> {
    let context = crate::api::error::from_context()?;
    context.set_status(context.pages()?.audit_entry(id).await)
}
