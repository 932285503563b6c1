//! `/v1/me`, `/v1/roles`, `/v1/sessions`, `/v1/read-only`: who asks, what roles there are, where people are signed in.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use domain::access::{Right, Role};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::lease::body::{BodyError, Fields};
use super::people::{Asker, Id};
use super::problem::Problem;
use super::settings::Settings;
use super::wire::people::{MeWire, ReadOnlyWire, RoleWire, RolesWire, SessionWire, SessionsWire};

pub(super) fn router<S: Clone + Send + Sync + 'static>(settings: Arc<Settings>) -> OpenApiRouter<S> {
    OpenApiRouter::new()
        .routes(routes!(me))
        .routes(routes!(roles))
        .routes(routes!(list))
        .routes(routes!(end))
        .routes(routes!(set_read_only))
        .with_state(settings)
}

/// Who asks, and what they may do.
#[utoipa::path(get, path = "/v1/me", tag = "people", responses((status = 200, body = MeWire)))]
async fn me(asker: Asker) -> Json<MeWire> {
    Json(MeWire::from(&asker.who))
}

/// The one table of rights.
#[utoipa::path(get, path = "/v1/roles", tag = "people", responses((status = 200, body = RolesWire)))]
async fn roles() -> Json<RolesWire> {
    let roles = Role::ALL.map(RoleWire::from).to_vec();
    Json(RolesWire { roles })
}

/// Sessions that live: everybody's for admins, else one's own.
#[utoipa::path(get, path = "/v1/sessions", tag = "people", responses((status = 200, body = SessionsWire)))]
async fn list(State(settings): State<Arc<Settings>>, asker: Asker) -> Result<Json<SessionsWire>, Problem> {
    let known = settings.gate.identity.sessions().await;
    let known = known.map_err(|error| asker.problem(error))?;
    let sees_all = asker.who.may_anywhere(Right::Administer);
    let seen = known
        .into_iter()
        .filter(|session| sees_all || session.person_id == asker.who.id());
    let sessions = seen.map(SessionWire::from).collect();
    Ok(Json(SessionsWire { sessions }))
}

/// Ends a session: one's own or, for admins, anybody's. Its streams end within a second.
#[utoipa::path(
    delete, path = "/v1/sessions/{id}", tag = "people", params(("id" = String, Path)),
    responses((status = 204), (status = 404, body = Problem, content_type = "application/problem+json"))
)]
async fn end(State(settings): State<Arc<Settings>>, Id(id): Id, asker: Asker) -> Result<StatusCode, Problem> {
    let may_any = asker.who.may_anywhere(Right::Administer);
    let ended = settings
        .gate
        .identity
        .end_session_if(&asker.who, &id, may_any)
        .await;
    ended
        .map(|()| StatusCode::NO_CONTENT)
        .map_err(|error| asker.problem(error))
}

/// The one switch that stops every forced unlock.
#[utoipa::path(
    put, path = "/v1/read-only", tag = "people", request_body = ReadOnlyWire,
    responses((status = 200, body = ReadOnlyWire), (status = 400, body = Problem, content_type = "application/problem+json"))
)]
async fn set_read_only(
    State(settings): State<Arc<Settings>>,
    asker: Asker,
    body: Body,
) -> Result<Json<ReadOnlyWire>, Problem> {
    let read = async {
        let mut fields = Fields::read(&asker.headers, body).await?;
        let read_only = fields.flag("readOnly")?;
        fields.end()?;
        Ok::<_, BodyError>(read_only)
    };
    let read_only = read.await.map_err(|error| asker.problem(error))?;
    let set = settings.gate.identity.set_read_only(&asker.who, read_only).await;
    set.map_err(|error| asker.problem(error))?;
    Ok(Json(ReadOnlyWire { read_only }))
}
