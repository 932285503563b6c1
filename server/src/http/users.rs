//! `/v1/users`: users, their grants, passwords and sign-in links.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};

use super::json_body::{self, BodyError};
use crate::http::current_user::ApiUser;
use crate::http::dto::users::{
    AddedDto, DisabledUserDto, GrantsDto, LinkDto, NewUserDto, PasswordDto, UserDto, UsersDto, parse_grants,
};
use crate::http::path_id::PathId;
use crate::http::problem::Problem;
use crate::http::state::AppState;
use crate::identity::NewUser;

/// All users, by name.
#[utoipa::path(get, path = "/v1/users", tag = "users", responses((status = 200, body = UsersDto)))]
pub(in crate::http) async fn list(State(state): State<AppState>) -> Json<UsersDto> {
    let directory = state.auth.identity.directory();
    let mut known: Vec<_> = directory.users.values().collect();
    known.sort_by(|left, right| left.name.cmp(&right.name));
    let users = known.into_iter().map(UserDto::from).collect();
    Json(UsersDto { users })
}

/// Adds a user. Without a password they sign in by a link.
#[utoipa::path(
    post, path = "/v1/users", tag = "users", request_body = NewUserDto,
    responses(
        (status = 201, body = AddedDto),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`exists`")
    )
)]
pub(in crate::http) async fn add(
    State(state): State<AppState>,
    user: ApiUser,
    body: Body,
) -> Result<(StatusCode, Json<AddedDto>), Problem> {
    let new = new_user(&user.headers, body)
        .await
        .map_err(|error| user.problem(error))?;
    let added = state.auth.identity.add_user(&user.who, new).await;
    let id = added.map_err(|error| user.problem(error))?;
    Ok((StatusCode::CREATED, Json(AddedDto { id })))
}

async fn new_user(headers: &HeaderMap, body: Body) -> Result<NewUser, BodyError> {
    let body: NewUserDto = json_body::read(headers, body).await?;
    Ok(NewUser {
        name: body.name,
        grants: parse_grants(body.grants)?,
        password: body.password.map(Into::into),
    })
}

/// Replaces all grants of a user.
#[utoipa::path(
    put, path = "/v1/users/{id}/grants", tag = "users", params(("id" = String, Path)), request_body = GrantsDto,
    responses(
        (status = 204),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`last_admin`")
    )
)]
pub(in crate::http) async fn set_grants(
    State(state): State<AppState>,
    PathId(id): PathId,
    user: ApiUser,
    body: Body,
) -> Result<StatusCode, Problem> {
    let read = async {
        let body: GrantsDto = json_body::read(&user.headers, body).await?;
        Ok::<_, BodyError>(parse_grants(body.grants)?)
    };
    let grants = read.await.map_err(|error| user.problem(error))?;
    let set = state.auth.identity.set_grants(&user.who, &id, grants).await;
    set.map(|()| StatusCode::NO_CONTENT)
        .map_err(|error| user.problem(error))
}

/// Sets the password of a user and ends their sessions and sign-in links. Users of the identity provider have none here.
#[utoipa::path(
    put, path = "/v1/users/{id}/password", tag = "users", params(("id" = String, Path)), request_body = PasswordDto,
    responses(
        (status = 204),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json")
    )
)]
pub(in crate::http) async fn set_password(
    State(state): State<AppState>,
    PathId(id): PathId,
    user: ApiUser,
    body: Body,
) -> Result<StatusCode, Problem> {
    let body: PasswordDto = user.read(body).await?;
    let password = body.password.into();
    let set = state.auth.identity.set_password(&user.who, &id, &password).await;
    set.map(|()| StatusCode::NO_CONTENT)
        .map_err(|error| user.problem(error))
}

/// Makes a link that signs another user in, once, within an hour. Earlier ones stop working. Users of the identity
/// provider have none.
#[utoipa::path(
    post, path = "/v1/users/{id}/link", tag = "users", params(("id" = String, Path)),
    responses(
        (status = 201, body = LinkDto),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json")
    )
)]
pub(in crate::http) async fn make_link(
    State(state): State<AppState>,
    PathId(id): PathId,
    user: ApiUser,
) -> Result<(StatusCode, Json<LinkDto>), Problem> {
    let result = state.auth.identity.user_link(&user.who, &id).await;
    let secret = result.map_err(|error| user.problem(error))?;
    let link = state.sign_in_link(&secret);
    Ok((StatusCode::CREATED, Json(LinkDto { link })))
}

/// Disables a user and ends their sessions and sign-in links, and those that came from them. Their API tokens keep
/// working; the answer lists them. Revoke those that the user knows, by `DELETE /v1/tokens/{id}`.
#[utoipa::path(
    post, path = "/v1/users/{id}/disable", tag = "users", params(("id" = String, Path)),
    responses(
        (status = 200, body = DisabledUserDto),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`last_admin`")
    )
)]
pub(in crate::http) async fn disable(
    State(state): State<AppState>,
    PathId(id): PathId,
    user: ApiUser,
) -> Result<Json<DisabledUserDto>, Problem> {
    let disabled = state.auth.identity.disable_user(&user.who, &id).await;
    let active_tokens = disabled.map_err(|error| user.problem(error))?;
    Ok(Json(DisabledUserDto::from(active_tokens)))
}

/// Enables a user, with the same grants as before.
#[utoipa::path(
    post, path = "/v1/users/{id}/enable", tag = "users", params(("id" = String, Path)),
    responses((status = 204), (status = 404, body = Problem, content_type = "application/problem+json"))
)]
pub(in crate::http) async fn enable(
    State(state): State<AppState>,
    PathId(id): PathId,
    user: ApiUser,
) -> Result<StatusCode, Problem> {
    let enabled = state.auth.identity.enable_user(&user.who, &id).await;
    enabled
        .map(|()| StatusCode::NO_CONTENT)
        .map_err(|error| user.problem(error))
}
