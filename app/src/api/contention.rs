//! Data of the contention page.

use domain::contention::ContentionPage;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;

use super::codec::EncodedResponse;
use super::error::ApiError;

/// `search` is the page's query string.
#[server(name = GetContention, prefix = "/api", endpoint = "contention", input = GetUrl, output = EncodedResponse)]
pub async fn contention(search: String) -> Result<ContentionPage, ApiError> {
    let context = super::error::from_context()?;
    context.set_status(context.console.contention(search).await)
}
