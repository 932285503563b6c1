//! Data of the fencing page.

use domain::fencing_rejections::FencingPage;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;

use super::codec::EncodedResponse;
use super::error::ApiError;

/// `search` is the page's query string.
#[server(name = GetFencing, prefix = "/api", endpoint = "fencing", input = GetUrl, output = EncodedResponse)]
pub async fn fencing(search: String) -> Result<FencingPage, ApiError> {
    let asked = super::error::from_context()?;
    asked.set_status(asked.console.fencing(search).await)
}
