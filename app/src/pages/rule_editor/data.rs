//! Data of the rule editor. A draft travels as the fields of its form.

use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use crate::api::codec::EncodedResponse;
use crate::api::error::ApiError;
use crate::console::ConsoleFuture;
/// Reason of a rule that is not found.
pub const NO_SUCH_RULE: &str = "this rule does not exist any more";
/// For a form with its input.
pub const REMOVED_NOTE: &str =
    "The rule was removed. Everything typed is still here: save it as a new rule, or discard it.";

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleEditorData {
    /// Empty: a new rule.
    pub id: String,
    /// Wire name of the condition; empty or unknown: the page first offers a choice of conditions.
    pub condition: String,
    /// `None`: a new rule.
    pub version: Option<i64>,
    /// Fields of the form and their values.
    pub fields: Vec<(String, String)>,
    /// The same of the saved version; empty for a new rule.
    pub saved: Vec<(String, String)>,
    /// Errors of the URL's values.
    pub faults: Vec<(String, String)>,
    pub backends: Vec<String>,
    /// Newest first.
    pub versions: Vec<VersionRow>,
    /// Alerts of the rule that fire now.
    pub firing: u32,
    pub may_edit: bool,
    /// Removed while the page is open: the form is that of a new rule. Set in the browser.
    pub is_removed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionRow {
    pub number: i64,
    pub at: i64,
    pub by: String,
    /// Field, before, after. `None`: the first version, or the one before is not stored.
    pub changes: Option<Vec<(String, String, String)>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RulePreview {
    /// Invalid fields: no preview.
    pub faults: Vec<(String, String)>,
    /// `None`: no condition is picked, or a field is invalid.
    pub edited: Option<PreviewData>,
    /// Of the saved version, if it differs.
    pub saved: Option<PreviewData>,
    pub took_ms: i64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviewData {
    pub from: i64,
    pub to: i64,
    pub is_cut: bool,
    /// The newest part only: the complete preview takes longer.
    pub is_partial: bool,
    /// Why the history has no data for this preview.
    pub unknown: Option<String>,
    /// Firings; each is one notification, or part of one.
    pub count: u64,
    pub events: u64,
    pub locks: u64,
    pub acquisitions: u64,
    pub without_ttl: u64,
    /// One chart per part of the condition.
    pub parts: Vec<PreviewPart>,
    /// All intervals in which it fires, oldest first; limited.
    pub spans: Vec<(i64, i64)>,
    /// The newest firings, newest first.
    pub firings: Vec<FiringRow>,
    pub gaps: Vec<(i64, i64)>,
    /// What is shown before this time was simulated, for a demo.
    pub simulated_until: Option<i64>,
    pub for_ms: i64,
    pub keep_ms: i64,
}

/// One threshold of the condition, with what is measured in its unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviewPart {
    /// Name of the condition; several have a threshold of the same name.
    pub condition: String,
    /// Name of the threshold.
    pub param: String,
    /// `None`: left out.
    pub threshold: Option<i64>,
    pub is_falling: bool,
    /// Time and worst measure; `None`: nothing was measured.
    pub points: Vec<(i64, Option<i64>)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FiringRow {
    pub at: i64,
    /// `None`: still firing.
    pub until: Option<i64>,
    pub subject: String,
    pub path: String,
    pub owner: Option<String>,
    pub measure: i64,
    pub why: String,
}

/// Port: the server implements it, for the caller of a request.
pub trait RuleEditorPort {
    /// An empty id: a new rule, with the values of the page's query string.
    fn rule(&self, id: String, search: String) -> ConsoleFuture<'_, RuleEditorData>;
    /// `fields` is the form; empty: the rule as [`rule`](Self::rule) returns it. `is_newest`: the
    /// newest part is enough.
    fn rule_preview(
        &self,
        id: String,
        search: String,
        fields: String,
        is_newest: bool,
    ) -> ConsoleFuture<'_, RulePreview>;
}

/// An empty `id`: a new rule, with the values of the page's query string.
#[server(name = GetRule, prefix = "/api", endpoint = "rule", input = GetUrl, output = EncodedResponse)]
pub async fn rule(id: String, search: String) -> Result<RuleEditorData, ApiError> {
    let context = crate::api::error::from_context()?;
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
    let context = crate::api::error::from_context()?;
    let is_newest = part == "newest";
    context.set_status(context.pages()?.rule_preview(id, search, fields, is_newest).await)
}
