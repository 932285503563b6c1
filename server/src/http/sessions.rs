//! `/v1/me`, `/v1/roles`, `/v1/sessions`, `/v1/read-only`.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use domain::access::{Permission, Role};

use crate::http::current_user::ApiUser;
use crate::http::dto::users::{MeDto, ReadOnlyDto, RoleDto, RolesDto, SessionDto, SessionsDto};
use crate::http::path_id::PathId;
use crate::http::problem::Problem;
use crate::http::state::AppState;

/// The principal of the request and its grants.
#[utoipa::path(get, path = "/v1/me", tag = "users", responses((status = 200, body = MeDto)))]
pub(in crate::http) async fn me(user: ApiUser) -> Json<MeDto> {
    Json(MeDto::from(&user.who))
}

/// All roles with their permissions.
#[utoipa::path(get, path = "/v1/roles", tag = "users", responses((status = 200, body = RolesDto)))]
pub(in crate::http) async fn roles() -> Json<RolesDto> {
    let roles = Role::ALL.map(RoleDto::from).to_vec();
    Json(RolesDto { roles })
}

/// Live sessions: all of them for admins, otherwise your own.
#[utoipa::path(get, path = "/v1/sessions", tag = "users", responses((status = 200, body = SessionsDto)))]
pub(in crate::http) async fn list(
    State(state): State<AppState>,
    user: ApiUser,
) -> Result<Json<SessionsDto>, Problem> {
    let known = state.auth.identity.sessions().await;
    let known = known.map_err(|error| user.problem(error))?;
    let sees_all = user.who.may_anywhere(Permission::Administer);
    let seen = known
        .into_iter()
        .filter(|session| sees_all || session.user_id == user.who.id());
    let sessions = seen.map(SessionDto::from).collect();
    Ok(Json(SessionsDto { sessions }))
}

/// Ends a session: your own or, for admins, any. Its streams end within a second.
#[utoipa::path(
    delete, path = "/v1/sessions/{id}", tag = "users", params(("id" = String, Path)),
    responses((status = 204), (status = 404, body = Problem, content_type = "application/problem+json"))
)]
pub(in crate::http) async fn end(
    State(state): State<AppState>,
    PathId(id): PathId,
    user: ApiUser,
) -> Result<StatusCode, Problem> {
    let may_any = user.who.may_anywhere(Permission::Administer);
    let ended = state.auth.identity.end_session_if(&user.who, &id, may_any).await;
    ended
        .map(|()| StatusCode::NO_CONTENT)
        .map_err(|error| user.problem(error))
}

/// Switches all forced unlocks off or on.
#[utoipa::path(
    put, path = "/v1/read-only", tag = "users", request_body = ReadOnlyDto,
    responses((status = 200, body = ReadOnlyDto), (status = 400, body = Problem, content_type = "application/problem+json"))
)]
pub(in crate::http) async fn set_read_only(
    State(state): State<AppState>,
    user: ApiUser,
    body: Body,
) -> Result<Json<ReadOnlyDto>, Problem> {
    let ReadOnlyDto { read_only } = user.read(body).await?;
    let set = state.auth.identity.set_read_only(&user.who, read_only).await;
    set.map_err(|error| user.problem(error))?;
    Ok(Json(ReadOnlyDto { read_only }))
}
