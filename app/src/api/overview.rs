//! Data of the overview page.

use domain::overview::Overview;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;

use super::codec::EncodedResponse;
use super::error::ApiError;

/// `search` is the page's query string: the time range of its charts.
#[server(name = GetOverview, prefix = "/api", endpoint = "overview", input = GetUrl, output = EncodedResponse)]
pub async fn overview(search: String) -> Result<Overview, ApiError> {
    let context = super::error::from_context()?;
    let mut found = context.console.overview().await;
    if let Ok(overview) = &mut found {
        overview.charts = context.console.overview_charts(overview, &search).await;
    }
    context.set_status(found)
}
