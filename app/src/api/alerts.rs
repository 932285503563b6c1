//! Alerts, and what a silence would cover.

use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;

use super::codec::EncodedResponse;
use super::error::ApiError;
use crate::page_data::alerts::{AlertsData, SilencePreview};

/// `search` is the query string of the page: its filter.
#[server(name = GetAlerts, prefix = "/api", endpoint = "alerts", input = GetUrl, output = EncodedResponse)]
pub async fn alerts(search: String) -> Result<AlertsData, ApiError> {
    let context = super::error::from_context()?;
    context.set_status(context.pages()?.alerts(search).await)
}

/// `search` are the fields of the silence form as a query string.
#[server(name = GetSilencePreview, prefix = "/api", endpoint = "silence-preview", input = GetUrl, output = EncodedResponse)]
pub async fn silence_preview(search: String) -> Result<SilencePreview, ApiError> {
    let context = super::error::from_context()?;
    context.set_status(context.pages()?.silence_preview(search).await)
}
