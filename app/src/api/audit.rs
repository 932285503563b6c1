//! The audit log.

use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;

use super::codec::EncodedResponse;
use super::error::ApiError;
use crate::page_data::audit::{AuditData, AuditEntryData};

/// `search` is the page's query string: its filters and its cursor.
#[server(name = GetAudit, prefix = "/api", endpoint = "audit", input = GetUrl, output = EncodedResponse)]
pub async fn audit(search: String) -> Result<AuditData, ApiError> {
    let context = super::error::from_context()?;
    context.set_status(context.pages()?.audit(search).await)
}

#[server(name = GetAuditEntry, prefix = "/api", endpoint = "audit-entry", input = GetUrl, output = EncodedResponse)]
pub async fn audit_entry(id: String) -> Result<AuditEntryData, ApiError> {
    let context = super::error::from_context()?;
    context.set_status(context.pages()?.audit_entry(id).await)
}
