//! Alerts, rules, previews and silences.

use std::collections::BTreeMap;

use domain::alerts::{Draft, Labels, Preview, Silence};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::alerts::KeptRule;
use crate::http::json_body::objects;

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Alerts")]
pub struct AlertsDto {
    pub alerts: Vec<AlertDto>,
    pub next_cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Alert")]
pub struct AlertDto {
    pub id: String,
    /// `pending` or `firing`.
    pub state: &'static str,
    pub rule: String,
    #[schema(value_type = Object)]
    pub labels: Labels,
    pub fingerprint: String,
    pub why: String,
    /// Milliseconds since 1970.
    pub since_ms: i64,
    pub acknowledged_by: Option<String>,
    pub is_silenced: bool,
    pub path: String,
    pub runbook: String,
}

/// A rule. A member that is left out has its value from the built-in rule for the same condition.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(title = "Rule", example = json!({"id": "billing_long", "name": "Long-held, billing", "condition": "long_held", "prefix": "billing:", "anyPrefix": true, "severity": "warning", "for": "2m", "with": {"longer_than": "2h"}}))]
pub struct RuleDto {
    #[serde(default)]
    id: String,
    #[serde(default)]
    name: String,
    condition: String,
    #[serde(default)]
    severity: String,
    #[serde(rename = "for", default)]
    for_: Option<String>,
    #[serde(default)]
    keep_firing_for: Option<String>,
    #[serde(default)]
    backends: Vec<String>,
    #[serde(default)]
    prefix: String,
    #[serde(default)]
    owner: String,
    #[serde(default)]
    safety: String,
    #[serde(default)]
    group_by: Option<Vec<String>>,
    #[serde(default)]
    receivers: Vec<String>,
    #[serde(default)]
    runbook: String,
    #[serde(default)]
    template: String,
    #[serde(default = "default_true")]
    enabled: bool,
    /// Thresholds by name.
    #[serde(default)]
    with: BTreeMap<String, String>,
    /// The version to change. If the rule has another version or was removed, nothing is changed.
    #[serde(default)]
    pub version: Option<i64>,
    /// Also accepts a prefix that covers no lock yet.
    #[serde(default, skip_serializing)]
    pub any_prefix: bool,
    /// Saves nothing: the response is the rule as it would be saved, with all members.
    #[serde(default, skip_serializing)]
    pub dry_run: bool,
}

const fn default_true() -> bool {
    true
}

impl RuleDto {
    pub fn from_draft(draft: Draft, version: Option<i64>) -> Self {
        Self {
            id: draft.id,
            name: draft.name,
            condition: draft.condition,
            severity: draft.severity,
            for_: draft.for_,
            keep_firing_for: draft.keep_firing_for,
            backends: draft.backends,
            prefix: draft.prefix,
            owner: draft.owner,
            safety: draft.safety,
            group_by: draft.group_by,
            receivers: draft.receivers,
            runbook: draft.runbook,
            template: draft.template,
            enabled: draft.enabled,
            with: draft.with,
            version,
            any_prefix: false,
            dry_run: false,
        }
    }

    pub fn draft(self) -> Draft {
        Draft {
            id: self.id,
            name: self.name,
            condition: self.condition,
            severity: self.severity,
            for_: self.for_,
            keep_firing_for: self.keep_firing_for,
            backends: self.backends,
            prefix: self.prefix,
            owner: self.owner,
            safety: self.safety,
            group_by: self.group_by,
            receivers: self.receivers,
            runbook: self.runbook,
            template: self.template,
            enabled: self.enabled,
            with: self.with,
        }
    }
}

impl From<&KeptRule> for RuleDto {
    fn from(kept: &KeptRule) -> Self {
        Self::from_draft(Draft::from(&kept.rule), Some(kept.version))
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(title = "Rules")]
pub struct RulesDto {
    pub rules: Vec<RuleDto>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Preview")]
pub struct PreviewDto {
    /// Why there is no preview; null if there is one.
    unknown: Option<String>,
    count: u64,
    /// Milliseconds since 1970, at most 1,000.
    at_ms: Vec<i64>,
    /// Later than seven days ago where `isCut`.
    from_ms: i64,
    to_ms: i64,
    /// More events exist than a preview reads: only events since `fromMs` were read.
    is_cut: bool,
    /// A first part, since `fromMs`; the complete preview follows.
    is_partial: bool,
    events: u64,
    locks: u64,
    acquisitions: u64,
    acquisitions_without_ttl: u64,
    gaps: u64,
    /// Outages of single backends: no alert about their locks fires or resolves in these times.
    outages: u64,
    /// Holds that began or ended in an outage; they do not count for quantiles.
    holds_uncertain: u64,
    /// Events that are not counted, because they are of more prefixes than a rule counts.
    uncounted: u64,
}

impl From<Preview> for PreviewDto {
    fn from(preview: Preview) -> Self {
        Self {
            unknown: preview.unknown,
            count: preview.count,
            at_ms: preview.firings.iter().map(|firing| firing.at).collect(),
            from_ms: preview.from,
            to_ms: preview.to,
            is_cut: preview.is_cut,
            is_partial: preview.is_partial,
            events: preview.events,
            locks: preview.locks,
            acquisitions: preview.acquisitions,
            acquisitions_without_ttl: preview.without_ttl,
            gaps: preview.gaps.len() as u64,
            outages: preview.outages,
            holds_uncertain: preview.uncertain_holds,
            uncounted: preview.uncounted,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(title = "Silences")]
pub struct SilencesDto {
    pub silences: Vec<SilenceDto>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Silence")]
pub struct SilenceDto {
    id: String,
    matchers: Vec<MatcherDto>,
    starts_at_ms: i64,
    ends_at_ms: i64,
    comment: String,
    by: String,
    suppressed: u64,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(title = "Matcher")]
pub struct MatcherDto {
    /// `rule`, `severity`, `backend`, `prefix`, `resource` or `owner`.
    pub label: String,
    /// With `*` for what differs.
    pub value: String,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(title = "NewSilence", example = json!({"matchers": [{"label": "rule", "value": "billing_long"}], "lasts": "2h", "comment": "The month is closed manually."}))]
pub struct NewSilenceDto {
    #[serde(default, deserialize_with = "objects")]
    pub matchers: Vec<MatcherDto>,
    /// Duration from now, such as `2h`.
    #[serde(default)]
    pub lasts: String,
    #[serde(default)]
    pub comment: String,
}

#[derive(Debug, Deserialize, ToSchema, Default)]
#[serde(deny_unknown_fields)]
#[schema(title = "Acknowledgement", example = json!({"note": "I am investigating."}))]
pub struct AckDto {
    #[serde(default)]
    pub note: String,
}

impl From<Silence> for SilenceDto {
    fn from(silence: Silence) -> Self {
        let matchers = silence.matchers.iter().map(|matcher| MatcherDto {
            label: matcher.label.to_owned(),
            value: matcher.value.as_str().to_owned(),
        });
        Self {
            matchers: matchers.collect(),
            id: silence.id,
            starts_at_ms: silence.starts_at,
            ends_at_ms: silence.ends_at,
            comment: silence.comment,
            by: silence.by,
            suppressed: silence.suppressed,
        }
    }
}
