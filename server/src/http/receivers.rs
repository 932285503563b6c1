//! `/v1/receivers` and `/v1/notifications`: who is told, and what is on its way. Handlers parse, ask the notifier, answer.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use domain::lease::Invalid;
use secrecy::SecretString;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::lease::body::{BodyError, Fields};
use super::people::{Asker, Id};
use super::problem::Problem;
use super::wire::receivers::{
    NewReceiverWire, NotificationWire, NotificationsWire, ReceiverChangeWire, ReceiverWire, ReceiversWire,
    TrialWire, TrialsWire,
};
use crate::notify::limits::LISTED_MAX;
use crate::notify::{DeliveryState, Kind, NewReceiver, Notifier, NotifyError, Wanted};

pub(super) fn router<S: Clone + Send + Sync + 'static>(notifier: Arc<Notifier>) -> OpenApiRouter<S> {
    OpenApiRouter::new()
        .routes(routes!(list, add))
        .routes(routes!(change, remove))
        .routes(routes!(try_out))
        .routes(routes!(notifications))
        .routes(routes!(retry))
        .with_state(notifier)
}

/// What each refusal is in HTTP.
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
            NotifyError::Invalid { field, mend, .. } => {
                let problem = Self::unlock(StatusCode::BAD_REQUEST, "invalid", &text);
                problem.with_field(field).with_mend(Some(mend.clone()))
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
#[utoipa::path(get, path = "/v1/receivers", tag = "alerts", responses((status = 200, body = ReceiversWire)))]
async fn list(State(notifier): State<Arc<Notifier>>, asker: Asker) -> Result<Json<ReceiversWire>, Problem> {
    let receivers = notifier.receivers().await.map_err(|error| asker.problem(error))?;
    let receivers = receivers.into_iter().map(ReceiverWire::from).collect();
    Ok(Json(ReceiversWire { receivers }))
}

/// Adds one.
#[utoipa::path(
    post, path = "/v1/receivers", tag = "alerts", request_body = NewReceiverWire,
    responses(
        (status = 201),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`exists`, `too_many`")
    )
)]
async fn add(State(notifier): State<Arc<Notifier>>, asker: Asker, body: Body) -> Result<StatusCode, Problem> {
    let new = read_new(&asker.headers, body)
        .await
        .map_err(|error| asker.problem(error))?;
    let added = Box::pin(notifier.add(&asker.who, new)).await;
    added
        .map(|()| StatusCode::CREATED)
        .map_err(|error| asker.problem(error))
}

async fn read_new(headers: &HeaderMap, body: Body) -> Result<NewReceiver, BodyError> {
    let mut fields = Fields::read(headers, body).await?;
    let name = fields.text("name")?;
    let kind = Kind::parse(&fields.text("kind")?).ok_or_else(|| Invalid::new("kind", bad_kind()))?;
    let urls = fields.optional_texts("urls")?.unwrap_or_default();
    let secret = fields.optional_text("secret")?;
    fields.end()?;
    Ok(NewReceiver {
        name,
        kind,
        urls: urls.into_iter().map(SecretString::from).collect(),
        secret: secret.map(SecretString::from),
    })
}

pub(super) fn bad_kind() -> String {
    format!("is one of {}", Kind::ALL.map(Kind::wire).join(", "))
}

/// Other addresses, another secret, or both.
#[utoipa::path(
    put, path = "/v1/receivers/{name}", tag = "alerts", params(("name" = String, Path)),
    request_body = ReceiverChangeWire,
    responses(
        (status = 204),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json")
    )
)]
async fn change(
    State(notifier): State<Arc<Notifier>>,
    Id(name): Id,
    asker: Asker,
    body: Body,
) -> Result<StatusCode, Problem> {
    let given = read_change(&asker.headers, body).await;
    let (urls, secret) = given.map_err(|error| asker.problem(error))?;
    let changed = Box::pin(notifier.change(&asker.who, &name, &urls, secret)).await;
    changed
        .map(|()| StatusCode::NO_CONTENT)
        .map_err(|error| asker.problem(error))
}

async fn read_change(
    headers: &HeaderMap,
    body: Body,
) -> Result<(Vec<SecretString>, Option<SecretString>), BodyError> {
    let mut fields = Fields::read(headers, body).await?;
    let urls = fields.optional_texts("urls")?.unwrap_or_default();
    let secret = fields.optional_text("secret")?;
    fields.end()?;
    let urls = urls.into_iter().map(SecretString::from).collect();
    Ok((urls, secret.map(SecretString::from)))
}

/// Takes one away, with what was on its way to it.
#[utoipa::path(
    delete, path = "/v1/receivers/{name}", tag = "alerts", params(("name" = String, Path)),
    responses((status = 204), (status = 404, body = Problem, content_type = "application/problem+json"))
)]
async fn remove(
    State(notifier): State<Arc<Notifier>>,
    Id(name): Id,
    asker: Asker,
) -> Result<StatusCode, Problem> {
    let removed = notifier.remove(&asker.who, &name).await;
    removed
        .map(|()| StatusCode::NO_CONTENT)
        .map_err(|error| asker.problem(error))
}

/// Sends a message that says of itself that it is a test, and answers with what was sent and what came back.
#[utoipa::path(
    post, path = "/v1/receivers/{name}/test", tag = "alerts", params(("name" = String, Path)),
    responses(
        (status = 200, body = TrialsWire),
        (status = 404, body = Problem, content_type = "application/problem+json")
    )
)]
async fn try_out(
    State(notifier): State<Arc<Notifier>>,
    Id(name): Id,
    asker: Asker,
) -> Result<Json<TrialsWire>, Problem> {
    let trials = Box::pin(notifier.try_out(&asker.who, &name)).await;
    let trials = trials.map_err(|error| asker.problem(error))?;
    let trials = trials.into_iter().map(TrialWire::from).collect();
    Ok(Json(TrialsWire { trials }))
}

/// Messages on their way, delivered, and given up; newest first.
#[utoipa::path(
    get, path = "/v1/notifications", tag = "alerts",
    params(
        ("state" = Option<String>, Query, description = "`pending`, `delivered` or `dead`"),
        ("receiver" = Option<String>, Query, description = "Name of a receiver"),
        ("before" = Option<String>, Query, description = "Those below this id: `nextCursor` of the page above"),
        ("limit" = Option<u32>, Query, description = "1 to 200, default 200")
    ),
    responses(
        (status = 200, body = NotificationsWire),
        (status = 400, body = Problem, content_type = "application/problem+json")
    )
)]
async fn notifications(
    State(notifier): State<Arc<Notifier>>,
    asker: Asker,
    RawQuery(query): RawQuery,
) -> Result<Json<NotificationsWire>, Problem> {
    let wanted = wanted(query.as_deref().unwrap_or_default())
        .map_err(|error| asker.problem(BodyError::from(error)))?;
    let found = notifier.deliveries(&wanted).await;
    let found = found.map_err(|error| asker.problem(error))?;
    let is_full = i64::try_from(found.len()).is_ok_and(|count| Some(count) == wanted.limit);
    let last = found.last().filter(|_| is_full).map(|one| one.id.to_string());
    Ok(Json(NotificationsWire {
        notifications: found.into_iter().map(NotificationWire::from).collect(),
        next_cursor: last,
    }))
}

fn wanted(query: &str) -> Result<Wanted, Invalid> {
    let mut wanted = Wanted {
        limit: Some(LISTED_MAX),
        ..Wanted::default()
    };
    for (field, value) in url::form_urlencoded::parse(query.as_bytes()) {
        let number = |most: i64| {
            let fits = value.parse().ok().filter(|number| (1..=most).contains(number));
            fits.ok_or_else(|| Invalid::new(&*field, format!("must be a whole number from 1 to {most}")))
        };
        match &*field {
            _ if value.is_empty() => {}
            "state" => {
                let words = || DeliveryState::ALL.map(DeliveryState::wire).join(", ");
                let state = DeliveryState::parse(&value);
                let state = state.ok_or_else(|| Invalid::new("state", format!("is one of {}", words())));
                wanted.state = Some(state?);
            }
            // Postgres takes no text that has one, and no name has.
            "receiver" => wanted.receiver = Some(value.replace('\0', " ")),
            "before" => wanted.before = Some(number(i64::MAX)?),
            "limit" => wanted.limit = Some(number(LISTED_MAX)?),
            _ => return Err(Invalid::new(&*field, "is not a parameter of this request")),
        }
    }
    Ok(wanted)
}

/// Tries a dead letter again.
#[utoipa::path(
    post, path = "/v1/notifications/{id}/retry", tag = "alerts", params(("id" = String, Path)),
    responses(
        (status = 204),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`not_dead`")
    )
)]
async fn retry(
    State(notifier): State<Arc<Notifier>>,
    Id(id): Id,
    asker: Asker,
) -> Result<StatusCode, Problem> {
    let retried = notifier.retry(&asker.who, number(&id)).await;
    retried
        .map(|()| StatusCode::NO_CONTENT)
        .map_err(|error| asker.problem(error))
}

/// What is no number is the number of none.
pub(super) fn number(id: &str) -> i64 {
    id.parse().unwrap_or(-1)
}
