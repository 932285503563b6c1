//! Data of the waits page.

use domain::waits::page::WaitsPage;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;

use super::codec::EncodedResponse;
use super::error::ApiError;

#[server(name = GetWaits, prefix = "/api", endpoint = "waits", input = GetUrl, output = EncodedResponse)]
pub async fn waits() -> Result<WaitsPage, ApiError> {
    let context = super::error::from_context()?;
    context.set_status(context.console.waits().await)
}
