//! Forced unlocks: data of their pages. Their forms are posted.

use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;

use super::codec::EncodedResponse;
use super::error::ApiError;
use crate::page_data::unlock::{BulkConfirmData, BulkSelectData, ReviewData, StepData};

/// Reads the lock from its backend. `search` is the page's query string.
#[server(name = GetUnlockReview, prefix = "/api", endpoint = "unlock-review", input = GetUrl, output = EncodedResponse)]
pub async fn unlock_review(
    backend: String,
    resource: String,
    search: String,
) -> Result<ReviewData, ApiError> {
    let context = super::error::from_context()?;
    context.set_status(context.pages()?.unlock_review(backend, resource, search).await)
}

#[server(name = GetUnlock, prefix = "/api", endpoint = "unlock", input = GetUrl, output = EncodedResponse)]
pub async fn unlock(id: String) -> Result<StepData, ApiError> {
    let context = super::error::from_context()?;
    context.set_status(context.pages()?.unlock(id).await)
}

/// `search` is the page's query string: its filters.
#[server(name = GetUnlockCandidates, prefix = "/api", endpoint = "unlock-candidates", input = GetUrl, output = EncodedResponse)]
pub async fn unlock_candidates(search: String) -> Result<BulkSelectData, ApiError> {
    let context = super::error::from_context()?;
    context.set_status(context.pages()?.unlock_candidates(search).await)
}

/// `search` is the page's query string: the ids.
#[server(name = GetBulkUnlocks, prefix = "/api", endpoint = "bulk-unlocks", input = GetUrl, output = EncodedResponse)]
pub async fn bulk_unlocks(search: String) -> Result<BulkConfirmData, ApiError> {
    let context = super::error::from_context()?;
    context.set_status(context.pages()?.bulk_unlocks(search).await)
}
