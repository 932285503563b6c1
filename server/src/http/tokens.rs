//! `/v1/tokens`: what programs sign in with. A token is shown once, when it is made.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use domain::lease::Invalid;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::lease::body::{BodyError, Fields};
use super::people::{Asker, Id, grants};
use super::problem::Problem;
use super::settings::Settings;
use super::wire::people::{MadeTokenWire, NewTokenWire, TokenWire, TokensWire};
use crate::identity::NewToken;

/// Ten years.
const EXPIRES_SECONDS_MAX: i64 = 315_360_000;

pub(super) fn router<S: Clone + Send + Sync + 'static>(settings: Arc<Settings>) -> OpenApiRouter<S> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(revoke))
        .with_state(settings)
}

/// All of them, newest first, revoked ones too.
#[utoipa::path(get, path = "/v1/tokens", tag = "people", responses((status = 200, body = TokensWire)))]
async fn list(State(settings): State<Arc<Settings>>, asker: Asker) -> Result<Json<TokensWire>, Problem> {
    let tokens = settings.gate.identity.tokens().await;
    let tokens = tokens.map_err(|error| asker.problem(error))?;
    let tokens = tokens.into_iter().map(TokenWire::from).collect();
    Ok(Json(TokensWire { tokens }))
}

/// Makes one. The answer is the only place where it ever stands.
#[utoipa::path(
    post, path = "/v1/tokens", tag = "people", request_body = NewTokenWire,
    responses(
        (status = 201, body = MadeTokenWire),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`exists`")
    )
)]
async fn create(
    State(settings): State<Arc<Settings>>,
    asker: Asker,
    body: Body,
) -> Result<(StatusCode, Json<MadeTokenWire>), Problem> {
    let (new, predecessor) = new_token(&asker.headers, body)
        .await
        .map_err(|error| asker.problem(error))?;
    let identity = &settings.gate.identity;
    let made = match predecessor {
        Some(predecessor) => identity.create_successor(&asker.who, new, &predecessor).await,
        None => identity.create_token(&asker.who, new).await,
    };
    let token = made.map_err(|error| asker.problem(error))?.expose().to_owned();
    Ok((StatusCode::CREATED, Json(MadeTokenWire { token })))
}

/// The token, and the id or name of the one that it succeeds.
async fn new_token(headers: &HeaderMap, body: Body) -> Result<(NewToken, Option<String>), BodyError> {
    let mut fields = Fields::read(headers, body).await?;
    let new = NewToken {
        name: fields.text("name")?,
        grants: grants(&mut fields)?,
        expires_in: expires(fields.optional_whole("expiresInSeconds")?)?,
    };
    let predecessor = fields.optional_text("successorOf")?;
    fields.end()?;
    Ok((new, predecessor))
}

fn expires(seconds: Option<i64>) -> Result<Option<Duration>, Invalid> {
    let Some(seconds) = seconds else { return Ok(None) };
    if (1..=EXPIRES_SECONDS_MAX).contains(&seconds) {
        return Ok(Some(Duration::from_secs(seconds.unsigned_abs())));
    }
    Err(Invalid::new(
        "expiresInSeconds",
        format!("must be 1 to {EXPIRES_SECONDS_MAX}, but is {seconds}"),
    ))
}

/// It is refused at once here, within a second elsewhere. A second time it changes nothing.
#[utoipa::path(
    delete, path = "/v1/tokens/{id}", tag = "people", params(("id" = String, Path, description = "Id or name")),
    responses((status = 204), (status = 404, body = Problem, content_type = "application/problem+json"))
)]
async fn revoke(
    State(settings): State<Arc<Settings>>,
    Id(id): Id,
    asker: Asker,
) -> Result<StatusCode, Problem> {
    let revoked = settings.gate.identity.revoke_token(&asker.who, &id).await;
    revoked
        .map(|()| StatusCode::NO_CONTENT)
        .map_err(|error| asker.problem(error))
}
