//! Data of the fencing page.

use domain::fencing_rejections::FencingPage;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;

use super::codec::EncodedResponse;
use super::error::ApiError;

/// `search` is the page's query string.
#[server(name = GetFencing, prefix = "/api", endpoint = "fencing", input = GetUrl, output = EncodedResponse)]
pub async fn fencing(search: String) -> Result<FencingPage, ApiError> {
    let context = super::error::from_context()?;
    let page = context.console.fencing(search).await;
    if let Ok(FencingPage {
        error: Some(error), ..
    }) = &page
    {
        // The page shows it with the typed values.
        let _shown = context.set_status::<()>(Err(crate::console::ConsoleError::BadQuery(error.clone())));
    }
    context.set_status(page)
}
