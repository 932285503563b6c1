//! `/v1/receivers` and `/v1/notifications`.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use domain::lease::ValidationError;
use secrecy::SecretString;

use super::json_body::{self, BodyError};
use crate::alerts::Alerts;
use crate::http::current_user::ApiUser;
use crate::http::dto::receivers::{
    NewReceiverDto, NotificationDto, NotificationsDto, ReceiverChangeDto, ReceiverDto, ReceiversDto,
    TrialDto, TrialsDto,
};
use crate::http::path_id::PathId;
use crate::http::problem::Problem;
use crate::identity::Principal;
use crate::notify::limits::LISTED_MAX;
use crate::notify::{DeliveryFilter, DeliveryState, NewReceiver, Notifier, NotifyError, ReceiverKind};

/// The status of each error.
pub(super) fn status(error: &NotifyError) -> StatusCode {
    match error {
        NotifyError::Invalid { .. } => StatusCode::UNPROCESSABLE_ENTITY,
        NotifyError::NotFound { .. } => StatusCode::NOT_FOUND,
        NotifyError::Exists { .. }
        | NotifyError::TooMany { .. }
        | NotifyError::NotDead { .. }
        | NotifyError::Locked { .. } => StatusCode::CONFLICT,
        NotifyError::Store(_) | NotifyError::NoChance => StatusCode::SERVICE_UNAVAILABLE,
    }
}

impl From<NotifyError> for Problem {
    fn from(error: NotifyError) -> Self {
        let text = error.to_string();
        let plain = |code| Self::unlock(status(&error), code, &text);
        match &error {
            NotifyError::Invalid { field, remedy, .. } => {
                let problem = Self::unlock(StatusCode::BAD_REQUEST, "invalid", &text);
                problem.with_field(field).with_remedy(Some(remedy.clone()))
            }
            NotifyError::NotFound { .. } => plain("not_found"),
            NotifyError::Exists { .. } => plain("exists").with_field("name"),
            NotifyError::TooMany { .. } => plain("too_many"),
            NotifyError::NotDead { .. } => plain("not_dead"),
            NotifyError::Locked { .. } => plain("locked_secret"),
            NotifyError::Store(_) | NotifyError::NoChance => Self::store_unavailable(),
        }
    }
}

/// Every receiver, by name. Secrets are not shown.
#[utoipa::path(get, path = "/v1/receivers", tag = "alerts", responses((status = 200, body = ReceiversDto)))]
pub(in crate::http) async fn list(
    State(notifier): State<Arc<Notifier>>,
    user: ApiUser,
) -> Result<Json<ReceiversDto>, Problem> {
    let receivers = notifier.receivers().await.map_err(|error| user.problem(error))?;
    let receivers = receivers.into_iter().map(ReceiverDto::from).collect();
    Ok(Json(ReceiversDto { receivers }))
}

/// Adds a receiver.
#[utoipa::path(
    post, path = "/v1/receivers", tag = "alerts", request_body = NewReceiverDto,
    responses(
        (status = 201),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`exists`, `too_many`")
    )
)]
pub(in crate::http) async fn add(
    State(notifier): State<Arc<Notifier>>,
    user: ApiUser,
    body: Body,
) -> Result<StatusCode, Problem> {
    let new = read_new(&user.headers, body)
        .await
        .map_err(|error| user.problem(error))?;
    let added = Box::pin(notifier.add(&user.who, new)).await;
    added
        .map(|()| StatusCode::CREATED)
        .map_err(|error| user.problem(error))
}

async fn read_new(headers: &HeaderMap, body: Body) -> Result<NewReceiver, BodyError> {
    let body: NewReceiverDto = json_body::read(headers, body).await?;
    let kind = ReceiverKind::parse(&body.kind).ok_or_else(|| ValidationError::new("kind", bad_kind()))?;
    Ok(NewReceiver {
        name: body.name,
        kind,
        urls: body.urls.into_iter().map(SecretString::from).collect(),
        secret: body.secret.map(SecretString::from),
    })
}

pub(super) fn bad_kind() -> String {
    format!(
        "must be one of {}",
        ReceiverKind::ALL.map(ReceiverKind::as_str).join(", ")
    )
}

/// Changes the addresses, the secret, or both.
#[utoipa::path(
    put, path = "/v1/receivers/{name}", tag = "alerts", params(("name" = String, Path)),
    request_body = ReceiverChangeDto,
    responses(
        (status = 204),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json")
    )
)]
pub(in crate::http) async fn change(
    State(notifier): State<Arc<Notifier>>,
    PathId(name): PathId,
    user: ApiUser,
    body: Body,
) -> Result<StatusCode, Problem> {
    let body: ReceiverChangeDto = user.read(body).await?;
    let urls: Vec<_> = body.urls.into_iter().flatten().map(SecretString::from).collect();
    let secret = body.secret.map(SecretString::from);
    let changed = Box::pin(notifier.change(&user.who, &name, &urls, secret)).await;
    changed
        .map(|()| StatusCode::NO_CONTENT)
        .map_err(|error| user.problem(error))
}

/// Removes a receiver, its pending messages and its dead letters. It is not notified when alerts that it was sent resolve.
#[utoipa::path(
    delete, path = "/v1/receivers/{name}", tag = "alerts", params(("name" = String, Path)),
    responses((status = 204), (status = 404, body = Problem, content_type = "application/problem+json"))
)]
pub(in crate::http) async fn remove(
    State(notifier): State<Arc<Notifier>>,
    PathId(name): PathId,
    user: ApiUser,
) -> Result<StatusCode, Problem> {
    let removed = Box::pin(notifier.remove(&user.who, &name)).await;
    removed
        .map(|()| StatusCode::NO_CONTENT)
        .map_err(|error| user.problem(error))
}

/// Sends a test message, and answers with the request and the response.
#[utoipa::path(
    post, path = "/v1/receivers/{name}/test", tag = "alerts", params(("name" = String, Path)),
    responses(
        (status = 200, body = TrialsDto),
        (status = 404, body = Problem, content_type = "application/problem+json")
    )
)]
pub(in crate::http) async fn try_out(
    State(notifier): State<Arc<Notifier>>,
    PathId(name): PathId,
    user: ApiUser,
) -> Result<Json<TrialsDto>, Problem> {
    let trials = Box::pin(notifier.try_out(&user.who, &name)).await;
    let trials = trials.map_err(|error| user.problem(error))?;
    let trials = trials.into_iter().map(TrialDto::from).collect();
    Ok(Json(TrialsDto { trials }))
}

/// Pending, delivered and dead messages; newest first.
#[utoipa::path(
    get, path = "/v1/notifications", tag = "alerts",
    params(
        ("state" = Option<String>, Query, description = "`pending`, `delivered` or `dead`"),
        ("receiver" = Option<String>, Query, description = "Name of a receiver"),
        ("before" = Option<String>, Query, description = "Entries below this id: `nextCursor` of the previous page"),
        ("limit" = Option<u32>, Query, description = "1 to 200, default 200")
    ),
    responses(
        (status = 200, body = NotificationsDto),
        (status = 400, body = Problem, content_type = "application/problem+json")
    )
)]
pub(in crate::http) async fn notifications(
    State(notifier): State<Arc<Notifier>>,
    user: ApiUser,
    RawQuery(query): RawQuery,
) -> Result<Json<NotificationsDto>, Problem> {
    let filter = parse_filter(query.as_deref().unwrap_or_default())
        .map_err(|error| user.problem(BodyError::from(error)))?;
    let found = notifier.deliveries(&filter).await;
    let found = found.map_err(|error| user.problem(error))?;
    let is_full = i64::try_from(found.len()).is_ok_and(|count| Some(count) == filter.limit);
    let last = found
        .last()
        .filter(|_| is_full)
        .map(|delivery| delivery.id.to_string());
    Ok(Json(NotificationsDto {
        notifications: found.into_iter().map(NotificationDto::from).collect(),
        next_cursor: last,
    }))
}

fn parse_filter(query: &str) -> Result<DeliveryFilter, ValidationError> {
    let mut filter = DeliveryFilter {
        limit: Some(LISTED_MAX),
        ..DeliveryFilter::default()
    };
    for (field, value) in url::form_urlencoded::parse(query.as_bytes()) {
        let number = |most: i64| {
            let parsed = value.parse().ok().filter(|number| (1..=most).contains(number));
            parsed.ok_or_else(|| {
                ValidationError::new(&*field, format!("must be a whole number from 1 to {most}"))
            })
        };
        match &*field {
            _ if value.is_empty() => {}
            "state" => {
                let names = || DeliveryState::ALL.map(DeliveryState::as_str).join(", ");
                let state = DeliveryState::parse(&value);
                let state =
                    state.ok_or_else(|| ValidationError::new("state", format!("must be one of {}", names())));
                filter.state = Some(state?);
            }
            // Postgres takes no text with a NUL character, and no name has one.
            "receiver" => filter.receiver = Some(value.replace('\0', " ")),
            "before" => filter.before = Some(number(i64::MAX)?),
            "limit" => filter.limit = Some(number(LISTED_MAX)?),
            _ => {
                return Err(ValidationError::new(
                    &*field,
                    "is not a parameter of this request",
                ));
            }
        }
    }
    Ok(filter)
}

/// Tries a dead letter again. Alerts that have ended since are sent as resolved.
#[utoipa::path(
    post, path = "/v1/notifications/{id}/retry", tag = "alerts", params(("id" = String, Path)),
    responses(
        (status = 204),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`not_dead`")
    )
)]
pub(in crate::http) async fn retry(
    State(notifier): State<Arc<Notifier>>,
    State(alerts): State<Arc<Alerts>>,
    PathId(id): PathId,
    user: ApiUser,
) -> Result<StatusCode, Problem> {
    let retried = retry_dead_letter(&notifier, &alerts, &user.who, &id).await;
    retried
        .map(|()| StatusCode::NO_CONTENT)
        .map_err(|error| user.problem(error))
}

/// Retries a dead letter with the current state of its alerts.
pub(super) async fn retry_dead_letter(
    notifier: &Notifier,
    alerts: &Alerts,
    who: &Principal,
    id: &str,
) -> Result<(), NotifyError> {
    let firing = alerts.notified_fingerprints().await?;
    // No message has the id -1.
    let id = id.parse::<i64>().unwrap_or(-1);
    Box::pin(notifier.retry(who, id, &firing)).await
}
