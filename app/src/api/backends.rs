//! All backends with their health.

use domain::backend::BackendView;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;

use super::codec::EncodedResponse;
use super::error::ApiError;

#[server(name = GetBackends, prefix = "/api", endpoint = "backends", input = GetUrl, output = EncodedResponse)]
pub async fn backends() -> Result<Vec<BackendView>, ApiError> {
    let context = super::error::from_context()?;
    context.set_status(context.console.backends().await)
}
