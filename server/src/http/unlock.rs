//! `/v1/unlocks`: forced unlocks in two steps.

pub(in crate::http) mod bulk;
mod problem;
mod request;

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use domain::unlock::Unlock;

pub(super) use self::problem::status;
use self::request::{ConfirmationDto, UnlockRequestDto};
use super::current_user::ApiUser;
use crate::http::dto::unlock::UnlockDto;
use crate::http::problem::Problem;
use crate::unlock::{UnlockError, Unlocks, VisibleUnlock};

/// The unlock, limited to what the principal may view.
fn redacted(user: &ApiUser, unlock: Unlock) -> UnlockDto {
    VisibleUnlock::new(unlock, &user.who).into()
}

fn id(path: Result<Path<String>, PathRejection>) -> Result<String, UnlockError> {
    let missing = || UnlockError::NotFound {
        what: "no unlock has this id".to_owned(),
    };
    path.map(|Path(id)| id).map_err(|_| missing())
}

/// Reads a lock fresh and records the intent to unlock it by force. The lock is not touched.
///
/// Good for two minutes, once, and for the caller alone.
#[utoipa::path(
    post, path = "/v1/unlocks", tag = "unlocks",
    request_body = UnlockRequestDto,
    responses(
        (status = 201, body = UnlockDto),
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
pub(in crate::http) async fn begin(
    State(unlocks): State<Arc<Unlocks>>,
    user: ApiUser,
    body: Body,
) -> Result<(StatusCode, Json<UnlockDto>), Problem> {
    let body: UnlockRequestDto = user.read(body).await?;
    let unlock_request = body.parse().map_err(|error| user.problem(error))?;
    let result = unlocks.begin(&user.who, unlock_request).await;
    result
        .map(|unlock| (StatusCode::CREATED, Json(redacted(&user, unlock))))
        .map_err(|error| user.problem(error))
}

/// State of a forced unlock.
#[utoipa::path(
    get, path = "/v1/unlocks/{unlockId}", tag = "unlocks",
    params(("unlockId" = String, Path)),
    responses(
        (status = 200, body = UnlockDto),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")
    )
)]
pub(in crate::http) async fn read(
    State(unlocks): State<Arc<Unlocks>>,
    user: ApiUser,
    path: Result<Path<String>, PathRejection>,
) -> Result<Json<UnlockDto>, Problem> {
    let id = id(path).map_err(|error| user.problem(error))?;
    respond(&user, unlocks.get(&user.who, &id)).await
}

/// Releases exactly the holding that was read, or nothing.
///
/// 200 with the final state; `outcome_unknown` means that no answer came, and the lock is read again until it is known.
#[utoipa::path(
    post, path = "/v1/unlocks/{unlockId}/confirm", tag = "unlocks",
    params(("unlockId" = String, Path)),
    request_body = ConfirmationDto,
    responses(
        (status = 200, body = UnlockDto),
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
pub(in crate::http) async fn confirm(
    State(unlocks): State<Arc<Unlocks>>,
    user: ApiUser,
    path: Result<Path<String>, PathRejection>,
    body: Body,
) -> Result<Json<UnlockDto>, Problem> {
    let id = id(path).map_err(|error| user.problem(error))?;
    let body: ConfirmationDto = user.read(body).await?;
    respond(&user, unlocks.confirm(&user.who, &id, body.into())).await
}

/// A second approver agrees to the forced unlock of a protected lock.
#[utoipa::path(
    post, path = "/v1/unlocks/{unlockId}/approve", tag = "unlocks",
    params(("unlockId" = String, Path)),
    responses(
        (status = 200, body = UnlockDto),
        (status = 403, body = Problem, content_type = "application/problem+json",
            description = "Without the permission, or by the user who requested it"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json",
            description = "`already_used`, `no_approval_needed`"),
        (status = 410, body = Problem, content_type = "application/problem+json", description = "`intent_expired`"),
        (status = 503, body = Problem, content_type = "application/problem+json")
    )
)]
pub(in crate::http) async fn approve(
    State(unlocks): State<Arc<Unlocks>>,
    user: ApiUser,
    path: Result<Path<String>, PathRejection>,
) -> Result<Json<UnlockDto>, Problem> {
    let id = id(path).map_err(|error| user.problem(error))?;
    respond(&user, unlocks.approve(&user.who, &id)).await
}

/// Cancels an intent. The lock is not touched.
#[utoipa::path(
    post, path = "/v1/unlocks/{unlockId}/cancel", tag = "unlocks",
    params(("unlockId" = String, Path)),
    responses(
        (status = 200, body = UnlockDto),
        (status = 403, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`already_used`"),
        (status = 410, body = Problem, content_type = "application/problem+json", description = "`intent_expired`"),
        (status = 503, body = Problem, content_type = "application/problem+json")
    )
)]
pub(in crate::http) async fn cancel(
    State(unlocks): State<Arc<Unlocks>>,
    user: ApiUser,
    path: Result<Path<String>, PathRejection>,
) -> Result<Json<UnlockDto>, Problem> {
    let id = id(path).map_err(|error| user.problem(error))?;
    respond(&user, unlocks.cancel(&user.who, &id)).await
}

/// Marks a break-glass unlock as reviewed by another user.
#[utoipa::path(
    post, path = "/v1/unlocks/{unlockId}/review", tag = "unlocks",
    params(("unlockId" = String, Path)),
    responses(
        (status = 200, body = UnlockDto),
        (status = 403, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`nothing_to_review`"),
        (status = 503, body = Problem, content_type = "application/problem+json")
    )
)]
pub(in crate::http) async fn review(
    State(unlocks): State<Arc<Unlocks>>,
    user: ApiUser,
    path: Result<Path<String>, PathRejection>,
) -> Result<Json<UnlockDto>, Problem> {
    let id = id(path).map_err(|error| user.problem(error))?;
    respond(&user, unlocks.review(&user.who, &id)).await
}

/// The unlock as the caller may see it.
async fn respond(
    user: &ApiUser,
    unlock: impl Future<Output = Result<Unlock, UnlockError>>,
) -> Result<Json<UnlockDto>, Problem> {
    let unlock = unlock.await;
    unlock
        .map(|unlock| Json(redacted(user, unlock)))
        .map_err(|error| user.problem(error))
}
