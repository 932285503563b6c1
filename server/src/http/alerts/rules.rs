//! `/v1/rules`: read, written, previewed; as JSON, and as files for review and for Prometheus.

use axum::Json;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use domain::access::Visible;
use domain::alerts::Draft;
use futures::stream;

use super::read;
use crate::alerts::{AlertError, PreviewRun};
use crate::http::current_user::ApiUser;
use crate::http::dto::alerts::{PreviewDto, RuleDto, RulesDto};
use crate::http::path_id::PathId;
use crate::http::problem::Problem;
use crate::http::state::AppState;

/// A line of JSON for each part.
const LINES: &str = "application/x-ndjson";

/// The rules about names in the caller's scope; with `format=toml` as a file for review, with `format=prometheus` as alerting rules over our metrics.
#[utoipa::path(get, path = "/v1/rules", tag = "alerts", responses((status = 200, body = RulesDto)))]
pub(in crate::http) async fn rules(
    State(state): State<AppState>,
    RawQuery(query): RawQuery,
    user: ApiUser,
) -> Result<Response, Problem> {
    let visible = Visible::to(&user.who.grants);
    let rules = state.alerts.visible_rules(&visible).await;
    let rules = rules.map_err(AlertError::from);
    let rules = rules.map_err(|error| user.problem(error))?;
    if query.as_deref() == Some("format=toml") {
        let text = crate::alerts::toml(rules.iter().map(|stored| Draft::from(&stored.rule)));
        return Ok(([(header::CONTENT_TYPE, "application/toml")], text).into_response());
    }
    if query.as_deref() == Some("format=prometheus") {
        let text = crate::alerts::prometheus(rules.iter().map(|stored| &stored.rule), &state.auth.home);
        return Ok(([(header::CONTENT_TYPE, "application/yaml")], text).into_response());
    }
    let rules = rules.iter().map(RuleDto::from).collect();
    Ok(Json(RulesDto { rules }).into_response())
}

/// Creates a rule, or changes the one with its id; with `dryRun` answers with the result and saves nothing.
#[utoipa::path(
    put, path = "/v1/rules", tag = "alerts", request_body = RuleDto,
    responses(
        (status = 200, body = RuleDto),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "A version of a rule that was removed"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`changed`")
    )
)]
pub(in crate::http) async fn save(
    State(state): State<AppState>,
    user: ApiUser,
    body: Body,
) -> Result<Json<RuleDto>, Problem> {
    let wire: RuleDto = read(&user, body).await?;
    let (version, any_prefix, dry_run) = (wire.version, wire.any_prefix, wire.dry_run);
    let draft = wire.draft();
    if dry_run {
        let would = state.alerts.would_save(&draft, any_prefix).await;
        let (rule, version) = would.map_err(|error| user.problem(error))?;
        return Ok(Json(RuleDto::from_draft(Draft::from(&rule), version)));
    }
    let saved = state
        .alerts
        .save_rule(&user.who, draft, version, any_prefix)
        .await;
    saved
        .map(|stored| Json(RuleDto::from(&stored)))
        .map_err(|error| user.problem(error))
}

/// Removes a rule and resolves its alerts.
#[utoipa::path(
    delete, path = "/v1/rules/{id}", tag = "alerts", params(("id" = String, Path)),
    responses((status = 204), (status = 404, body = Problem, content_type = "application/problem+json"))
)]
pub(in crate::http) async fn remove(
    State(state): State<AppState>,
    PathId(id): PathId,
    user: ApiUser,
) -> Result<StatusCode, Problem> {
    let removed = state.alerts.remove_rule(&user.who, &id).await;
    removed
        .map(|()| StatusCode::NO_CONTENT)
        .map_err(|error| user.problem(error))
}

/// Alerts that a rule would have raised in the last seven days, computed by the live evaluator. With
/// `Accept: application/x-ndjson`
/// the newest part comes first: a line for each part, the last one is the whole.
#[utoipa::path(
    post, path = "/v1/rules/preview", tag = "alerts", request_body = RuleDto,
    responses((status = 200, body = PreviewDto), (status = 400, body = Problem, content_type = "application/problem+json"))
)]
pub(in crate::http) async fn preview(
    State(state): State<AppState>,
    // Before `user`, which takes the headers out of the request.
    headers: HeaderMap,
    user: ApiUser,
    body: Body,
) -> Result<Response, Problem> {
    let wire: RuleDto = read(&user, body).await?;
    let any_prefix = wire.any_prefix;
    let rule = state.alerts.parse(&wire.draft(), any_prefix).await;
    let rule = rule.map_err(|error| user.problem(error))?;
    let accepts = headers
        .get(header::ACCEPT)
        .and_then(|accept| accept.to_str().ok());
    if accepts.is_some_and(|accepts| accepts.contains(LINES)) {
        let run = state.alerts.preview_run(vec![rule]);
        let lines = Body::from_stream(stream::unfold(run, next_line));
        return Ok(([(header::CONTENT_TYPE, LINES)], lines).into_response());
    }
    let preview = state.alerts.preview(&rule).await.map_err(AlertError::from);
    preview
        .map(|preview| Json(PreviewDto::from(preview)).into_response())
        .map_err(|error| user.problem(error))
}

/// A part of a preview as a line of JSON. If the store fails, the response is cut off.
async fn next_line(mut run: PreviewRun) -> Option<(Result<String, AlertError>, PreviewRun)> {
    let line = match run.next().await? {
        Ok(previews) => {
            let preview = previews.into_iter().next().map(PreviewDto::from)?;
            Ok(serde_json::to_string(&preview).ok()? + "\n")
        }
        Err(error) => Err(AlertError::from(error)),
    };
    Some((line, run))
}
