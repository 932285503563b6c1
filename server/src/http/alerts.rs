//! `/v1/alerts`, `/v1/silences`, and in `alerts/rules.rs` `/v1/rules`: handlers parse, ask the alerts, answer.

mod page;
pub(in crate::http) mod rules;

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use domain::access::{Permission, Visible};
use domain::alerts::SilenceDraft;
use serde::de::DeserializeOwned;

use self::page::PageQuery;
use super::json_body::{self, BodyError};
use crate::alerts::{AlertError, AlertSelection, Alerts, path};
use crate::http::current_user::ApiUser;
use crate::http::dto::alerts::{AckDto, AlertDto, AlertsDto, NewSilenceDto, SilenceDto, SilencesDto};
use crate::http::path_id::PathId;
use crate::http::problem::Problem;

/// Longest body of a rule or silence, in bytes.
const BYTES_MAX: usize = 256 * 1024;

impl From<AlertError> for Problem {
    fn from(error: AlertError) -> Self {
        match error {
            AlertError::Invalid(errors) => match errors.first() {
                Some(first) => Self::invalid(&first.field, format!("It {}", first.why))
                    .with_remedy(Some(
                        errors
                            .iter()
                            .map(ToString::to_string)
                            .collect::<Vec<_>>()
                            .join("; "),
                    ))
                    .with_errors(
                        errors
                            .iter()
                            .map(|error| (error.field.clone(), error.why.clone())),
                    ),
                None => Self::invalid("rule", "It is not valid".to_owned()),
            },
            AlertError::NotFound(what) => Self::not_found(format!("there is no such {what}")),
            AlertError::Changed { .. } => Self::conflict("changed", error.to_string()),
            AlertError::TooMany { .. } => Self::conflict("too_many", error.to_string()),
            AlertError::Forbidden(why) => Self::forbidden(why),
            AlertError::Store(error) => {
                tracing::warn!("alerts cannot be read or written: {error}");
                Self::store_unavailable()
            }
        }
    }
}

async fn read<T: DeserializeOwned>(user: &ApiUser, body: Body) -> Result<T, Problem> {
    let read = json_body::read_up_to(BYTES_MAX, &user.headers, body).await;
    read.map_err(|error| user.problem(error))
}

/// Pending and firing alerts, most severe first, as far as the principal may see.
#[utoipa::path(
    get, path = "/v1/alerts", tag = "alerts",
    params(
        ("limit" = Option<u32>, Query, description = "1 to 1000, default 100; a page of long names has fewer"),
        ("cursor" = Option<String>, Query, description = "`nextCursor` of the previous page")
    ),
    responses(
        (status = 200, body = AlertsDto),
        (status = 400, body = Problem, content_type = "application/problem+json")
    )
)]
pub(in crate::http) async fn list(
    State(alerts): State<Arc<Alerts>>,
    user: ApiUser,
    RawQuery(query): RawQuery,
) -> Result<Json<AlertsDto>, Problem> {
    let query = PageQuery::parse(query.as_deref().unwrap_or_default())
        .map_err(|error| user.problem(BodyError::from(error)))?;
    let visible = Visible::to(&user.who.grants);
    let open = alerts.open(&visible).await.map_err(AlertError::from);
    let open = open.map_err(|error| user.problem(error))?;
    let (page, next_cursor) = query.take(open);
    let wire = page.into_iter().map(|open| AlertDto {
        id: open.kept.alert.id.to_string(),
        state: if open.kept.alert.is_firing() {
            "firing"
        } else {
            "pending"
        },
        rule: open.rule.id.to_string(),
        fingerprint: open.fingerprint,
        is_silenced: open.is_silenced,
        labels: open.labels,
        since_ms: open.kept.alert.since(),
        path: path(&open.kept.alert.subject),
        why: open.kept.alert.why,
        acknowledged_by: open.kept.acked.map(|(_, by, _)| by),
        runbook: open.rule.runbook(),
    });
    Ok(Json(AlertsDto {
        alerts: wire.collect(),
        next_cursor,
    }))
}

/// Acknowledges an alert.
#[utoipa::path(
    post, path = "/v1/alerts/{id}/ack", tag = "alerts", params(("id" = String, Path)), request_body = AckDto,
    responses((status = 204), (status = 404, body = Problem, content_type = "application/problem+json"))
)]
pub(in crate::http) async fn ack(
    State(alerts): State<Arc<Alerts>>,
    PathId(id): PathId,
    user: ApiUser,
    body: Body,
) -> Result<StatusCode, Problem> {
    let ack: AckDto = read(&user, body).await?;
    let id = id.parse().unwrap_or(0);
    let done = alerts
        .acknowledge(&user.who, &AlertSelection::One(id), &ack.note)
        .await;
    done.map(|_| StatusCode::NO_CONTENT)
        .map_err(|error| user.problem(error))
}

/// Silences that have not ended.
#[utoipa::path(get, path = "/v1/silences", tag = "alerts", responses((status = 200, body = SilencesDto)))]
pub(in crate::http) async fn silences(
    State(alerts): State<Arc<Alerts>>,
    user: ApiUser,
) -> Result<Json<SilencesDto>, Problem> {
    let silences = alerts.silences().await.map_err(AlertError::from);
    let silences = silences.map_err(|error| user.problem(error))?;
    let is_whole = user.who.grants.may_everywhere(Permission::View);
    // They may hold names of locks outside the principal's scope.
    let silences = silences.into_iter().filter(|_| is_whole).map(SilenceDto::from);
    Ok(Json(SilencesDto {
        silences: silences.collect(),
    }))
}

/// Silences alerts for a while. The principal is the author.
#[utoipa::path(
    post, path = "/v1/silences", tag = "alerts", request_body = NewSilenceDto,
    responses(
        (status = 201, body = SilenceDto),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 403, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`too_many`")
    )
)]
pub(in crate::http) async fn silence(
    State(alerts): State<Arc<Alerts>>,
    user: ApiUser,
    body: Body,
) -> Result<(StatusCode, Json<SilenceDto>), Problem> {
    let wire: NewSilenceDto = read(&user, body).await?;
    let draft = SilenceDraft {
        matchers: wire
            .matchers
            .into_iter()
            .map(|matcher| (matcher.label, matcher.value))
            .collect(),
        lasts: wire.lasts,
        comment: wire.comment,
    };
    let result = alerts.silence(&user.who, &draft).await;
    result
        .map(|silence| (StatusCode::CREATED, Json(silence.into())))
        .map_err(|error| user.problem(error))
}

/// Ends a silence now.
#[utoipa::path(
    delete, path = "/v1/silences/{id}", tag = "alerts", params(("id" = String, Path)),
    responses((status = 204), (status = 404, body = Problem, content_type = "application/problem+json"))
)]
pub(in crate::http) async fn end(
    State(alerts): State<Arc<Alerts>>,
    PathId(id): PathId,
    user: ApiUser,
) -> Result<StatusCode, Problem> {
    let ended = alerts.end_silence(&user.who, &id).await;
    ended
        .map(|()| StatusCode::NO_CONTENT)
        .map_err(|error| user.problem(error))
}
