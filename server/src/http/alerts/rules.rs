//! `/v1/rules`: read, written, previewed; as JSON, and as files for review and for Prometheus.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use domain::access::Visible;
use domain::alerts::Draft;
use futures::stream;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::read;
use crate::alerts::{AlertError, Alerts, PreviewRun};
use crate::http::audit::Desk;
use crate::http::people::{Asker, Id};
use crate::http::problem::Problem;
use crate::http::wire::alerts::{PreviewWire, RuleWire, RulesWire};

/// A line of JSON for each part.
const LINES: &str = "application/x-ndjson";

#[derive(Clone)]
struct Asked {
    alerts: Arc<Alerts>,
    /// Where people reach the console, without a slash at its end.
    home: Arc<str>,
}

pub(super) fn router<S: Clone + Send + Sync + 'static>(desk: &Desk) -> OpenApiRouter<S> {
    OpenApiRouter::new()
        .routes(routes!(rules, save))
        .routes(routes!(remove))
        .routes(routes!(preview))
        .with_state(Asked {
            alerts: desk.alerts.clone(),
            home: desk.settings.home.as_str().into(),
        })
}

/// The rules about names in the caller's scope; with `format=toml` as a file for review, with `format=prometheus` as alerting rules over our metrics.
#[utoipa::path(get, path = "/v1/rules", tag = "alerts", responses((status = 200, body = RulesWire)))]
async fn rules(
    State(asked): State<Asked>,
    RawQuery(query): RawQuery,
    asker: Asker,
) -> Result<Response, Problem> {
    let visible = Visible::to(&asker.who.grants);
    let rules = asked.alerts.visible_rules(&visible).await;
    let rules = rules.map_err(AlertError::from);
    let rules = rules.map_err(|error| asker.problem(error))?;
    if query.as_deref() == Some("format=toml") {
        let text = crate::alerts::toml(rules.iter().map(|kept| Draft::from(&kept.rule)));
        return Ok(([(header::CONTENT_TYPE, "application/toml")], text).into_response());
    }
    if query.as_deref() == Some("format=prometheus") {
        let text = crate::alerts::prometheus(rules.iter().map(|kept| &kept.rule), &asked.home);
        return Ok(([(header::CONTENT_TYPE, "application/yaml")], text).into_response());
    }
    let rules = rules.iter().map(RuleWire::from).collect();
    Ok(Json(RulesWire { rules }).into_response())
}

/// Makes a rule, or changes the one with its id; with `dryRun` says what that would be.
#[utoipa::path(
    put, path = "/v1/rules", tag = "alerts", request_body = RuleWire,
    responses(
        (status = 200, body = RuleWire),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`changed`")
    )
)]
async fn save(State(asked): State<Asked>, asker: Asker, body: Body) -> Result<Json<RuleWire>, Problem> {
    let wire: RuleWire = read(&asker, body).await?;
    let (version, any_prefix, dry_run) = (wire.version, wire.any_prefix, wire.dry_run);
    let draft = wire.draft();
    if dry_run {
        let would = asked.alerts.would_save(&draft, any_prefix).await;
        let (rule, version) = would.map_err(|error| asker.problem(error))?;
        return Ok(Json(RuleWire::of(Draft::from(&rule), version)));
    }
    let saved = asked
        .alerts
        .save_rule(&asker.who, draft, version, any_prefix)
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
async fn remove(State(asked): State<Asked>, Id(id): Id, asker: Asker) -> Result<StatusCode, Problem> {
    let removed = asked.alerts.remove_rule(&asker.who, &id).await;
    removed
        .map(|()| StatusCode::NO_CONTENT)
        .map_err(|error| asker.problem(error))
}

/// What a rule would have done in the last seven days, by the code that evaluates it live. With `Accept: application/x-ndjson`
/// the newest part comes first: a line for each part, the last one is the whole.
#[utoipa::path(
    post, path = "/v1/rules/preview", tag = "alerts", request_body = RuleWire,
    responses((status = 200, body = PreviewWire), (status = 400, body = Problem, content_type = "application/problem+json"))
)]
async fn preview(
    State(asked): State<Asked>,
    // Before the asker, which takes them.
    headers: HeaderMap,
    asker: Asker,
    body: Body,
) -> Result<Response, Problem> {
    let wire: RuleWire = read(&asker, body).await?;
    let any_prefix = wire.any_prefix;
    let rule = asked.alerts.parse(&wire.draft(), any_prefix).await;
    let rule = rule.map_err(|error| asker.problem(error))?;
    let accepts = headers
        .get(header::ACCEPT)
        .and_then(|accept| accept.to_str().ok());
    if accepts.is_some_and(|accepts| accepts.contains(LINES)) {
        let run = asked.alerts.preview_run(vec![rule]);
        let lines = Body::from_stream(stream::unfold(run, next_line));
        return Ok(([(header::CONTENT_TYPE, LINES)], lines).into_response());
    }
    let preview = asked.alerts.preview(&rule).await.map_err(AlertError::from);
    preview
        .map(|preview| Json(PreviewWire::from(preview)).into_response())
        .map_err(|error| asker.problem(error))
}

/// A part of a preview as a line of JSON. A store that fails ends the answer before its end.
async fn next_line(mut run: PreviewRun) -> Option<(Result<String, AlertError>, PreviewRun)> {
    let line = match run.next().await? {
        Ok(previews) => {
            let preview = previews.into_iter().next().map(PreviewWire::from)?;
            Ok(serde_json::to_string(&preview).ok()? + "\n")
        }
        Err(error) => Err(AlertError::from(error)),
    };
    Some((line, run))
}
