//! Data of the contention page.

use domain::contention::ContentionPage;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;

use super::codec::EncodedResponse;
use super::error::ApiError;

/// `search` is the page's query string.
#[server(name = GetContention, prefix = "/api", endpoint = "contention", input = GetUrl, output = EncodedResponse)]
pub async fn contention(search: String) -> Result<ContentionPage, ApiError> {
    let asked = super::error::from_context()?;
    asked.set_status(asked.console.contention(search).await)
}
