//! `/v1/unlocks`: forced unlocks in two steps. Handlers parse, ask the unlocks, answer.

mod asked;
mod bulk;
mod problem;

use std::convert::Infallible;
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use domain::unlock::Unlock;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::asked::{AskedWire, ConfirmationWire};
pub(super) use self::problem::status;
use super::lease::body::Fields;
use super::problem::Problem;
use super::wire::unlock::UnlockWire;
use crate::identity::Who;
use crate::unlock::{UnlockError, Unlocks, VisibleUnlock};

/// All calls, with their description, for any outer state.
pub(super) fn router<S: Clone + Send + Sync + 'static>(unlocks: Arc<Unlocks>) -> OpenApiRouter<S> {
    OpenApiRouter::new()
        .routes(routes!(begin))
        .routes(routes!(read))
        .routes(routes!(confirm))
        .routes(routes!(approve))
        .routes(routes!(cancel))
        .routes(routes!(review))
        .routes(routes!(bulk::begin))
        .routes(routes!(bulk::confirm))
        .with_state(unlocks)
}

/// Who asks. Without a guard in front nobody is known, and nobody may anything.
struct Caller {
    who: Who,
    headers: HeaderMap,
}

impl Caller {
    fn problem(&self, error: impl Into<Problem>) -> Problem {
        error.into().with_request_id(&self.headers)
    }

    fn shown(&self, unlock: Unlock) -> UnlockWire {
        VisibleUnlock::new(unlock, &self.who).into()
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let who = parts.extensions.get::<Who>().cloned();
        Ok(Self {
            who: who.unwrap_or_else(|| Who::anonymous(crate::audit::Origin::default())),
            headers: std::mem::take(&mut parts.headers),
        })
    }
}

fn id(path: Result<Path<String>, PathRejection>) -> Result<String, UnlockError> {
    let missing = || UnlockError::NotFound {
        what: "there is no such unlock".to_owned(),
    };
    path.map(|Path(id)| id).map_err(|_| missing())
}

/// Reads a lock fresh and records the intent to unlock it by force. The lock is not touched.
///
/// Good for two minutes, once, and for the caller alone.
#[utoipa::path(
    post, path = "/v1/unlocks", tag = "unlocks",
    request_body = AskedWire,
    responses(
        (status = 201, body = UnlockWire),
        (status = 400, body = Problem, content_type = "application/problem+json", description = "A field is invalid"),
        (status = 403, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json",
            description = "`holder_changed`, `unlock_unavailable`, `ambiguous_source`"),
        (status = 422, body = Problem, content_type = "application/problem+json", description = "`reason_too_weak`"),
        (status = 503, body = Problem, content_type = "application/problem+json",
            description = "`backend_stale`, `blast_radius_unknown`, `audit_unavailable`")
    )
)]
async fn begin(
    State(unlocks): State<Arc<Unlocks>>,
    caller: Caller,
    body: Body,
) -> Result<(StatusCode, Json<UnlockWire>), Problem> {
    let fields = Fields::read(&caller.headers, body).await;
    let asked = fields.and_then(|fields| Ok(asked::parse(fields, None)?));
    let asked = asked.map_err(|error| caller.problem(error))?;
    let begun = unlocks.begin(&caller.who, asked).await;
    begun
        .map(|unlock| (StatusCode::CREATED, Json(caller.shown(unlock))))
        .map_err(|error| caller.problem(error))
}

/// One forced unlock as it stands.
#[utoipa::path(
    get, path = "/v1/unlocks/{unlockId}", tag = "unlocks",
    params(("unlockId" = String, Path)),
    responses(
        (status = 200, body = UnlockWire),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")
    )
)]
async fn read(
    State(unlocks): State<Arc<Unlocks>>,
    caller: Caller,
    path: Result<Path<String>, PathRejection>,
) -> Result<Json<UnlockWire>, Problem> {
    let id = id(path).map_err(|error| caller.problem(error))?;
    answer(&caller, unlocks.get(&caller.who, &id)).await
}

/// Acts: ends exactly the holding that was looked at, or nothing.
///
/// 200 with the final state; `outcome_unknown` means that no answer came, and the lock is read again until it is known.
#[utoipa::path(
    post, path = "/v1/unlocks/{unlockId}/confirm", tag = "unlocks",
    params(("unlockId" = String, Path)),
    request_body = ConfirmationWire,
    responses(
        (status = 200, body = UnlockWire),
        (status = 400, body = Problem, content_type = "application/problem+json", description = "A field is invalid"),
        (status = 403, body = Problem, content_type = "application/problem+json",
            description = "`forbidden`, `needs_reauthentication`, `needs_approval`"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json",
            description = "`holder_changed`, `already_used`, `unlock_unavailable`"),
        (status = 410, body = Problem, content_type = "application/problem+json", description = "`intent_expired`"),
        (status = 422, body = Problem, content_type = "application/problem+json",
            description = "`name_mismatch`: the third one cancels it; `reason_too_weak`"),
        (status = 503, body = Problem, content_type = "application/problem+json",
            description = "`backend_stale`, `blast_radius_unknown`, `audit_unavailable`")
    )
)]
async fn confirm(
    State(unlocks): State<Arc<Unlocks>>,
    caller: Caller,
    path: Result<Path<String>, PathRejection>,
    body: Body,
) -> Result<Json<UnlockWire>, Problem> {
    let id = id(path).map_err(|error| caller.problem(error))?;
    let fields = Fields::read(&caller.headers, body).await;
    let typed = fields.and_then(|fields| Ok(asked::confirmation(fields)?));
    let typed = typed.map_err(|error| caller.problem(error))?;
    answer(&caller, unlocks.confirm(&caller.who, &id, typed)).await
}

/// A second person agrees to the forced unlock of a protected lock.
#[utoipa::path(
    post, path = "/v1/unlocks/{unlockId}/approve", tag = "unlocks",
    params(("unlockId" = String, Path)),
    responses(
        (status = 200, body = UnlockWire),
        (status = 403, body = Problem, content_type = "application/problem+json",
            description = "Without the right, or whoever began it themselves"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json",
            description = "`already_used`, `no_approval_needed`"),
        (status = 410, body = Problem, content_type = "application/problem+json", description = "`intent_expired`"),
        (status = 503, body = Problem, content_type = "application/problem+json")
    )
)]
async fn approve(
    State(unlocks): State<Arc<Unlocks>>,
    caller: Caller,
    path: Result<Path<String>, PathRejection>,
) -> Result<Json<UnlockWire>, Problem> {
    let id = id(path).map_err(|error| caller.problem(error))?;
    answer(&caller, unlocks.approve(&caller.who, &id)).await
}

/// Gives an intent up. The lock is not touched.
#[utoipa::path(
    post, path = "/v1/unlocks/{unlockId}/cancel", tag = "unlocks",
    params(("unlockId" = String, Path)),
    responses(
        (status = 200, body = UnlockWire),
        (status = 403, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`already_used`"),
        (status = 410, body = Problem, content_type = "application/problem+json", description = "`intent_expired`"),
        (status = 503, body = Problem, content_type = "application/problem+json")
    )
)]
async fn cancel(
    State(unlocks): State<Arc<Unlocks>>,
    caller: Caller,
    path: Result<Path<String>, PathRejection>,
) -> Result<Json<UnlockWire>, Problem> {
    let id = id(path).map_err(|error| caller.problem(error))?;
    answer(&caller, unlocks.cancel(&caller.who, &id)).await
}

/// Somebody else has looked at an unlock that was done alone (break-glass): it is not flagged any more.
#[utoipa::path(
    post, path = "/v1/unlocks/{unlockId}/review", tag = "unlocks",
    params(("unlockId" = String, Path)),
    responses(
        (status = 200, body = UnlockWire),
        (status = 403, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`nothing_to_review`"),
        (status = 503, body = Problem, content_type = "application/problem+json")
    )
)]
async fn review(
    State(unlocks): State<Arc<Unlocks>>,
    caller: Caller,
    path: Result<Path<String>, PathRejection>,
) -> Result<Json<UnlockWire>, Problem> {
    let id = id(path).map_err(|error| caller.problem(error))?;
    answer(&caller, unlocks.review(&caller.who, &id)).await
}

/// What an unlock that was asked for comes to on the wire.
async fn answer(
    caller: &Caller,
    unlock: impl Future<Output = Result<Unlock, UnlockError>>,
) -> Result<Json<UnlockWire>, Problem> {
    let unlock = unlock.await;
    unlock
        .map(|unlock| Json(caller.shown(unlock)))
        .map_err(|error| caller.problem(error))
}
