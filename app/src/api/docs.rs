//! The documentation.

use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;

use super::codec::EncodedResponse;
use super::error::ApiError;
use crate::page_data::docs::DocsData;

/// `path` is the path of the page.
#[server(name = GetDocs, prefix = "/api", endpoint = "docs", input = GetUrl, output = EncodedResponse)]
pub async fn docs(path: String) -> Result<DocsData, ApiError> {
    let context = super::error::from_context()?;
    context.set_status(context.pages()?.docs(path).await)
}
