//! `/v1/tokens`: API tokens. A token is shown once, when it is created.

use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use domain::lease::ValidationError;

use super::json_body::{self, BodyError, FieldErrors};
use crate::http::current_user::ApiUser;
use crate::http::dto::users::{
    MadeTokenDto, NewTokenDto, RevokedTokenDto, TokenDto, TokensDto, parse_grants,
};
use crate::http::path_id::PathId;
use crate::http::problem::Problem;
use crate::http::state::AppState;
use crate::identity::NewToken;
use crate::identity::limits::{TOKEN_LIFETIME_MAX, TOKEN_LIFETIME_MIN};

/// All tokens, newest first, revoked ones included.
#[utoipa::path(get, path = "/v1/tokens", tag = "users", responses((status = 200, body = TokensDto)))]
pub(in crate::http) async fn list(
    State(state): State<AppState>,
    user: ApiUser,
) -> Result<Json<TokensDto>, Problem> {
    let tokens = state.auth.identity.tokens().await;
    let tokens = tokens.map_err(|error| user.problem(error))?;
    let tokens = tokens.into_iter().map(TokenDto::from).collect();
    Ok(Json(TokensDto { tokens }))
}

/// Creates a token. Only this answer shows it.
#[utoipa::path(
    post, path = "/v1/tokens", tag = "users", request_body = NewTokenDto,
    responses(
        (status = 201, body = MadeTokenDto),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`exists`")
    )
)]
pub(in crate::http) async fn create(
    State(state): State<AppState>,
    user: ApiUser,
    body: Body,
) -> Result<(StatusCode, Json<MadeTokenDto>), Problem> {
    let (new, predecessor) = new_token(&user.headers, body)
        .await
        .map_err(|error| user.problem(error))?;
    let identity = &state.auth.identity;
    let result = match predecessor {
        Some(predecessor) => identity.create_successor(&user.who, new, &predecessor).await,
        None => identity.create_token(&user.who, new).await,
    };
    let token = result.map_err(|error| user.problem(error))?.expose().to_owned();
    Ok((StatusCode::CREATED, Json(MadeTokenDto { token })))
}

/// The token, and the id or name of the one that it succeeds.
async fn new_token(headers: &HeaderMap, body: Body) -> Result<(NewToken, Option<String>), BodyError> {
    let body: NewTokenDto = json_body::read(headers, body).await?;
    let mut errors = FieldErrors::default();
    let grants = errors.check(parse_grants(body.grants));
    let expires_in = errors.check(expires(body.expires_in_seconds));
    let (Some(grants), Some(expires_in)) = (grants, expires_in) else {
        return Err(errors.into());
    };
    let new = NewToken {
        name: body.name,
        grants,
        expires_in,
    };
    Ok((new, body.successor_of))
}

fn expires(seconds: Option<i64>) -> Result<Option<Duration>, ValidationError> {
    let Some(seconds) = seconds else { return Ok(None) };
    let lifetime = u64::try_from(seconds).ok().map(Duration::from_secs);
    let allowed = TOKEN_LIFETIME_MIN..=TOKEN_LIFETIME_MAX;
    let valid = lifetime.filter(|lifetime| allowed.contains(lifetime));
    valid.map(Some).ok_or_else(|| {
        let (min, max) = (TOKEN_LIFETIME_MIN.as_secs(), TOKEN_LIFETIME_MAX.as_secs());
        ValidationError::new(
            "expiresInSeconds",
            format!("must be {min} to {max}, but is {seconds}"),
        )
    })
}

/// Revokes a token: at once on this server, within a second on others. The tokens, sign-in links and sessions that came from it end
/// too; the answer says which. Idempotent.
#[utoipa::path(
    delete, path = "/v1/tokens/{id}", tag = "users", params(("id" = String, Path, description = "Id or name")),
    responses(
        (status = 200, body = RevokedTokenDto),
        (status = 404, body = Problem, content_type = "application/problem+json")
    )
)]
pub(in crate::http) async fn revoke(
    State(state): State<AppState>,
    PathId(id): PathId,
    user: ApiUser,
) -> Result<Json<RevokedTokenDto>, Problem> {
    let revoked = state.auth.identity.revoke_token(&user.who, &id).await;
    let ended = revoked.map_err(|error| user.problem(error))?;
    Ok(Json(RevokedTokenDto::from(ended)))
}
