//! `/v1/alerts`, `/v1/rules`, `/v1/silences`: handlers parse, ask the alerts, answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::body::{Body, to_bytes};
use axum::extract::{RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use domain::access::{Right, Visible};
use domain::alerts::{Draft, Labels, Preview, Silence, SilenceDraft, fingerprint};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::people::{Asker, Id};
use super::problem::Problem;
use crate::alerts::{AlertError, Alerts, KeptRule, path};

const BYTES_MAX: usize = 256 * 1024;

pub(super) fn router<S: Clone + Send + Sync + 'static>(alerts: Arc<Alerts>) -> OpenApiRouter<S> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(ack))
        .routes(routes!(rules, save))
        .routes(routes!(remove))
        .routes(routes!(preview))
        .routes(routes!(silences, silence))
        .routes(routes!(end))
        .with_state(alerts)
}

impl From<AlertError> for Problem {
    fn from(error: AlertError) -> Self {
        match error {
            AlertError::Invalid(faults) => match faults.first() {
                Some(first) => Self::invalid(&first.field, format!("It {}", first.why)).with_mend(Some(
                    faults
                        .iter()
                        .map(ToString::to_string)
                        .collect::<Vec<_>>()
                        .join("; "),
                )),
                None => Self::invalid("rule", "It is not valid".to_owned()),
            },
            AlertError::NotFound(what) => Self::not_found(format!("there is no such {what}")),
            AlertError::Changed { .. } => Self::conflict("changed", error.to_string()),
            AlertError::Forbidden(why) => Self::forbidden(why),
            AlertError::Store(error) => {
                tracing::warn!("alerts cannot be read or written: {error}");
                Self::store_unavailable()
            }
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Alerts")]
struct AlertsWire {
    alerts: Vec<AlertWire>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Alert")]
struct AlertWire {
    id: String,
    /// `pending` or `firing`.
    state: &'static str,
    rule: String,
    #[schema(value_type = Object)]
    labels: Labels,
    fingerprint: String,
    why: String,
    /// Milliseconds since 1970.
    since_ms: i64,
    acknowledged_by: Option<String>,
    is_silenced: bool,
    path: String,
    runbook: String,
}

/// A rule as it is written. What is left out is as in the built-in rule on its condition.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(title = "Rule", example = json!({"id": "billing_long", "name": "Long-held, billing", "condition": "long_held", "prefix": "billing:", "anyPrefix": true, "severity": "warning", "for": "2m", "with": {"longer_than": "2h"}}))]
struct RuleWire {
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
    #[serde(default = "yes")]
    enabled: bool,
    /// Thresholds by name.
    #[serde(default)]
    with: BTreeMap<String, String>,
    /// The one that is changed; of another nothing is.
    #[serde(default)]
    version: Option<i64>,
    /// Also a prefix that covers nothing yet.
    #[serde(default, skip_serializing)]
    any_prefix: bool,
}

const fn yes() -> bool {
    true
}

impl RuleWire {
    fn of(draft: Draft, version: Option<i64>) -> Self {
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
        }
    }

    fn draft(self) -> Draft {
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

impl From<&KeptRule> for RuleWire {
    fn from(kept: &KeptRule) -> Self {
        Self::of(Draft::from(&kept.rule), Some(kept.version))
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(title = "Rules")]
struct RulesWire {
    rules: Vec<RuleWire>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Preview")]
struct PreviewWire {
    /// Null where history can tell; else why it cannot.
    unknown: Option<String>,
    count: u64,
    /// Milliseconds since 1970, at most 1,000.
    at_ms: Vec<i64>,
    from_ms: i64,
    to_ms: i64,
    events: u64,
    locks: u64,
    acquisitions: u64,
    acquisitions_without_ttl: u64,
    gaps: u64,
}

impl From<Preview> for PreviewWire {
    fn from(preview: Preview) -> Self {
        Self {
            unknown: preview.unknown,
            count: preview.count,
            at_ms: preview.firings.iter().map(|firing| firing.at).collect(),
            from_ms: preview.from,
            to_ms: preview.to,
            events: preview.events,
            locks: preview.locks,
            acquisitions: preview.acquisitions,
            acquisitions_without_ttl: preview.without_ttl,
            gaps: preview.gaps.len() as u64,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(title = "Silences")]
struct SilencesWire {
    silences: Vec<SilenceWire>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Silence")]
struct SilenceWire {
    id: String,
    matchers: Vec<MatcherWire>,
    starts_at_ms: i64,
    ends_at_ms: i64,
    comment: String,
    by: String,
    suppressed: u64,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(title = "Matcher")]
struct MatcherWire {
    /// `rule`, `severity`, `backend`, `prefix`, `resource` or `owner`.
    label: String,
    /// With `*` for what differs.
    value: String,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(title = "NewSilence", example = json!({"matchers": [{"label": "rule", "value": "billing_long"}], "lasts": "2h", "comment": "The month is being closed by hand."}))]
struct NewSilenceWire {
    #[serde(default)]
    matchers: Vec<MatcherWire>,
    /// From now: `2h`.
    #[serde(default)]
    lasts: String,
    #[serde(default)]
    comment: String,
}

#[derive(Debug, Deserialize, ToSchema, Default)]
#[serde(deny_unknown_fields)]
#[schema(title = "Acknowledgement", example = json!({"note": "I am looking at it."}))]
struct AckWire {
    #[serde(default)]
    note: String,
}

impl From<Silence> for SilenceWire {
    fn from(silence: Silence) -> Self {
        let matchers = silence.matchers.iter().map(|matcher| MatcherWire {
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

async fn read<T: DeserializeOwned>(asker: &Asker, body: Body) -> Result<T, Problem> {
    let bytes = to_bytes(body, BYTES_MAX).await;
    let bytes = bytes.map_err(|_| asker.problem(Problem::invalid("body", "It is too large".to_owned())))?;
    serde_json::from_slice(&bytes)
        .map_err(|error| asker.problem(Problem::invalid("body", format!("It cannot be read: {error}"))))
}

/// What is pending or fires, the gravest first; cut to what the caller may see.
#[utoipa::path(get, path = "/v1/alerts", tag = "alerts", responses((status = 200, body = AlertsWire)))]
async fn list(State(alerts): State<Arc<Alerts>>, asker: Asker) -> Result<Json<AlertsWire>, Problem> {
    let visible = Visible::to(&asker.who.grants);
    let open = alerts.open(&visible).await.map_err(AlertError::from);
    let silences = alerts.silences().await.map_err(AlertError::from);
    let (open, silences) = (
        open.map_err(|error| asker.problem(error))?,
        silences.map_err(|error| asker.problem(error))?,
    );
    let wire = open.into_iter().map(|(kept, rule, labels)| AlertWire {
        id: kept.alert.id.to_string(),
        state: if kept.alert.is_firing() {
            "firing"
        } else {
            "pending"
        },
        rule: rule.id.to_string(),
        fingerprint: fingerprint(&labels),
        is_silenced: silences.iter().any(|silence| silence.matches(&labels)),
        labels,
        since_ms: kept.alert.since(),
        path: path(&kept.alert.subject),
        why: kept.alert.why,
        acknowledged_by: kept.acked.map(|(_, by, _)| by),
        runbook: rule.runbook(),
    });
    Ok(Json(AlertsWire {
        alerts: wire.collect(),
    }))
}

/// Somebody has it in hand.
#[utoipa::path(
    post, path = "/v1/alerts/{id}/ack", tag = "alerts", params(("id" = String, Path)), request_body = AckWire,
    responses((status = 204), (status = 404, body = Problem, content_type = "application/problem+json"))
)]
async fn ack(
    State(alerts): State<Arc<Alerts>>,
    Id(id): Id,
    asker: Asker,
    body: Body,
) -> Result<StatusCode, Problem> {
    let ack: AckWire = read(&asker, body).await?;
    let id = id.parse().unwrap_or(0);
    let done = alerts.acknowledge(&asker.who, id, &ack.note).await;
    done.map(|()| StatusCode::NO_CONTENT)
        .map_err(|error| asker.problem(error))
}

/// Every rule; with `format=toml` as a file for review.
#[utoipa::path(get, path = "/v1/rules", tag = "alerts", responses((status = 200, body = RulesWire)))]
async fn rules(
    State(alerts): State<Arc<Alerts>>,
    RawQuery(query): RawQuery,
    asker: Asker,
) -> Result<Response, Problem> {
    let rules = alerts.rules().await.map_err(AlertError::from);
    let rules = rules.map_err(|error| asker.problem(error))?;
    if query.as_deref() == Some("format=toml") {
        let text = crate::alerts::toml(rules.iter().map(|kept| Draft::from(&kept.rule)));
        return Ok(([(header::CONTENT_TYPE, "application/toml")], text).into_response());
    }
    let rules = rules.iter().map(RuleWire::from).collect();
    Ok(Json(RulesWire { rules }).into_response())
}

/// Makes a rule, or changes the one with its id.
#[utoipa::path(
    put, path = "/v1/rules", tag = "alerts", request_body = RuleWire,
    responses(
        (status = 200, body = RuleWire),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`changed`")
    )
)]
async fn save(
    State(alerts): State<Arc<Alerts>>,
    asker: Asker,
    body: Body,
) -> Result<Json<RuleWire>, Problem> {
    let wire: RuleWire = read(&asker, body).await?;
    let (version, any_prefix) = (wire.version, wire.any_prefix);
    let saved = alerts
        .save_rule(&asker.who, wire.draft(), version, any_prefix)
        .await;
    saved
        .map(|kept| Json(RuleWire::from(&kept)))
        .map_err(|error| asker.problem(error))
}

/// Takes a rule away; what it fired is told to be over.
#[utoipa::path(
    delete, path = "/v1/rules/{id}", tag = "alerts", params(("id" = String, Path)),
    responses((status = 204), (status = 404, body = Problem, content_type = "application/problem+json"))
)]
async fn remove(State(alerts): State<Arc<Alerts>>, Id(id): Id, asker: Asker) -> Result<StatusCode, Problem> {
    let removed = alerts.remove_rule(&asker.who, &id).await;
    removed
        .map(|()| StatusCode::NO_CONTENT)
        .map_err(|error| asker.problem(error))
}

/// What a rule would have done in the last seven days, by the code that evaluates it live.
#[utoipa::path(
    post, path = "/v1/rules/preview", tag = "alerts", request_body = RuleWire,
    responses((status = 200, body = PreviewWire), (status = 400, body = Problem, content_type = "application/problem+json"))
)]
async fn preview(
    State(alerts): State<Arc<Alerts>>,
    asker: Asker,
    body: Body,
) -> Result<Json<PreviewWire>, Problem> {
    let wire: RuleWire = read(&asker, body).await?;
    let any_prefix = wire.any_prefix;
    let rule = alerts.parse(&wire.draft(), any_prefix).await;
    let rule = rule.map_err(|error| asker.problem(error))?;
    let preview = alerts.preview(&rule).await.map_err(AlertError::from);
    preview
        .map(|preview| Json(preview.into()))
        .map_err(|error| asker.problem(error))
}

/// Those that are not over.
#[utoipa::path(get, path = "/v1/silences", tag = "alerts", responses((status = 200, body = SilencesWire)))]
async fn silences(State(alerts): State<Arc<Alerts>>, asker: Asker) -> Result<Json<SilencesWire>, Problem> {
    let silences = alerts.silences().await.map_err(AlertError::from);
    let silences = silences.map_err(|error| asker.problem(error))?;
    let is_whole = asker.who.grants.may_everywhere(Right::View);
    // Names of others' locks may stand in them.
    let silences = silences.into_iter().filter(|_| is_whole).map(SilenceWire::from);
    Ok(Json(SilencesWire {
        silences: silences.collect(),
    }))
}

/// Keeps alerts quiet for a while. The author is who asks.
#[utoipa::path(
    post, path = "/v1/silences", tag = "alerts", request_body = NewSilenceWire,
    responses(
        (status = 201, body = SilenceWire),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 403, body = Problem, content_type = "application/problem+json")
    )
)]
async fn silence(
    State(alerts): State<Arc<Alerts>>,
    asker: Asker,
    body: Body,
) -> Result<(StatusCode, Json<SilenceWire>), Problem> {
    let wire: NewSilenceWire = read(&asker, body).await?;
    let draft = SilenceDraft {
        matchers: wire
            .matchers
            .into_iter()
            .map(|one| (one.label, one.value))
            .collect(),
        lasts: wire.lasts,
        comment: wire.comment,
    };
    let made = alerts.silence(&asker.who, &draft).await;
    made.map(|silence| (StatusCode::CREATED, Json(silence.into())))
        .map_err(|error| asker.problem(error))
}

/// Ends a silence now.
#[utoipa::path(
    delete, path = "/v1/silences/{id}", tag = "alerts", params(("id" = String, Path)),
    responses((status = 204), (status = 404, body = Problem, content_type = "application/problem+json"))
)]
async fn end(State(alerts): State<Arc<Alerts>>, Id(id): Id, asker: Asker) -> Result<StatusCode, Problem> {
    let ended = alerts.end_silence(&asker.who, &id).await;
    ended
        .map(|()| StatusCode::NO_CONTENT)
        .map_err(|error| asker.problem(error))
}
