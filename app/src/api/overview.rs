//! Data of the first page.

use domain::overview::Overview;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;

use super::error::ApiError;
use super::payload::Answer;

#[server(name = GetOverview, prefix = "/api", endpoint = "overview", input = GetUrl, output = Answer)]
pub async fn overview() -> Result<Overview, ApiError> {
    let asked = super::error::ask()?;
    asked.answer(asked.console.overview().await)
}
