//! The rule editor and its preview.

use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;

use super::codec::EncodedResponse;
use super::error::ApiError;
use crate::page_data::rule_editor::{RuleEditorData, RulePreview};

/// An empty `id`: a new rule, with the values of the page's query string.
#[server(name = GetRule, prefix = "/api", endpoint = "rule", input = GetUrl, output = EncodedResponse)]
pub async fn rule(id: String, search: String) -> Result<RuleEditorData, ApiError> {
    let context = super::error::from_context()?;
    context.set_status(context.pages()?.rule(id, search).await)
}

/// The preview of `fields`, the form as a query string; if empty, of the rule as the page opens it.
/// `part` is `newest` for a quick result, else empty.
#[server(name = GetRulePreview, prefix = "/api", endpoint = "rule-preview", input = GetUrl, output = EncodedResponse)]
pub async fn rule_preview(
    id: String,
    search: String,
    fields: String,
    part: String,
) -> Result<RulePreview, ApiError> {
    let context = super::error::from_context()?;
    let is_newest = part == "newest";
    context.set_status(context.pages()?.rule_preview(id, search, fields, is_newest).await)
}
