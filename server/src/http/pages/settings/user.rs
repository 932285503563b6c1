//! `/settings/users/{id}`

use app::server_pages::layout::Section;
use app::server_pages::settings::user::{User, user};
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;

use super::users::way;
use super::{Refused, USERS};
use crate::http::current_user::CurrentUser;
use crate::http::form_body::Form;
use crate::http::pages::response;
use crate::http::pages::response::see_other;
use crate::http::path_id::PathId;
use crate::http::state::{AppState, Services};
use crate::identity::IdentityError;

/// Characters of an unknown id that are shown.
const ID_SHOWN_MAX: usize = 64;

pub(in crate::http) async fn show(
    State(state): State<AppState>,
    viewer: CurrentUser,
    PathId(id): PathId,
    uri: Uri,
) -> Response {
    let done = match uri.query() {
        Some("saved") => Some("Saved. All servers apply it within a second."),
        Some("enabled") => Some("Enabled: the user can sign in again."),
        Some("disabled") => Some("Disabled: all sessions of the user have ended."),
        _ => None,
    };
    let content = User {
        done: done.map(str::to_owned),
        ..User::default()
    };
    page(&state, &viewer, &id, StatusCode::OK, content).await
}

pub(in crate::http) async fn set_grants(
    State(state): State<AppState>,
    viewer: CurrentUser,
    PathId(id): PathId,
    form: Form,
) -> Response {
    let saved = match form.grants() {
        Ok(grants) => state.auth.identity.set_grants(&viewer.0, &id, grants).await,
        Err(error) => Err(error),
    };
    done_or_refused(&state, &viewer, &id, saved, "saved").await
}

pub(in crate::http) async fn make_link(
    State(state): State<AppState>,
    viewer: CurrentUser,
    PathId(id): PathId,
) -> Response {
    match state.auth.identity.user_link(&viewer.0, &id).await {
        Ok(link) => {
            let content = User {
                link: Some(state.sign_in_link(&link)),
                ..User::default()
            };
            page(&state, &viewer, &id, StatusCode::CREATED, content).await
        }
        Err(error) => done_or_refused(&state, &viewer, &id, Err(error), "").await,
    }
}

pub(in crate::http) async fn disable(
    State(state): State<AppState>,
    viewer: CurrentUser,
    PathId(id): PathId,
) -> Response {
    let disabled = state.auth.identity.disable_user(&viewer.0, &id).await;
    done_or_refused(&state, &viewer, &id, disabled, "disabled").await
}

pub(in crate::http) async fn enable(
    State(state): State<AppState>,
    viewer: CurrentUser,
    PathId(id): PathId,
) -> Response {
    let enabled = state.auth.identity.enable_user(&viewer.0, &id).await;
    done_or_refused(&state, &viewer, &id, enabled, "enabled").await
}

async fn done_or_refused(
    state: &Services,
    viewer: &CurrentUser,
    id: &str,
    outcome: Result<(), IdentityError>,
    word: &str,
) -> Response {
    match outcome {
        Ok(()) => see_other(&format!("/settings/users/{id}?{word}")),
        Err(error) => {
            let Refused {
                status,
                fault,
                refusal,
            } = error.into();
            let content = User {
                fault: fault.map(|(_, why)| why),
                refusal,
                ..User::default()
            };
            page(state, viewer, id, status, content).await
        }
    }
}

async fn page(
    state: &Services,
    viewer: &CurrentUser,
    id: &str,
    status: StatusCode,
    content: User,
) -> Response {
    let directory = state.directory();
    let Some(known) = directory.users.get(id) else {
        let name = id.chars().take(ID_SHOWN_MAX).collect();
        return viewer.failed(&IdentityError::NotFound { what: "user", name }, USERS);
    };
    let sessions = match state.auth.identity.sessions().await {
        Ok(sessions) => sessions,
        Err(error) => return viewer.failed(&error, USERS),
    };
    let content = User {
        id: known.id.clone(),
        name: known.name.clone(),
        grants: known.grants.iter().cloned().collect(),
        way: way(known),
        created_at: known.created_at,
        disabled_at: known.disabled_at,
        sessions: sessions.iter().filter(|session| session.user_id == id).count(),
        is_managed: known.issuer.is_some(),
        is_oneself: viewer.0.id() == id,
        backends: state.backends.names(),
        now: state.now(),
        ..content
    };
    response::html_response(status, user(&viewer.chrome(Section::Users), content))
}
