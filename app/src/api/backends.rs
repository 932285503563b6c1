//! Every backend with its health.

use domain::backend::BackendView;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;

use super::error::ApiError;
use super::payload::Answer;

#[server(name = GetBackends, prefix = "/api", endpoint = "backends", input = GetUrl, output = Answer)]
pub async fn backends() -> Result<Vec<BackendView>, ApiError> {
    let asked = super::error::ask()?;
    asked.answer(asked.console.backends().await)
}
