//! `/settings/sessions`: all sessions, for admins; any user may end their own.

use app::server_pages::layout::Section;
use app::server_pages::settings::sessions::{SessionRow, Sessions, sessions};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use domain::access::Permission;

use super::{Refused, SETTINGS};
use crate::http::current_user::CurrentUser;
use crate::http::pages::response;
use crate::http::pages::response::see_other;
use crate::http::path_id::PathId;
use crate::http::state::{AppState, Services};
use crate::identity::{IdentityError, SessionView};

pub(in crate::http) async fn show(State(state): State<AppState>, viewer: CurrentUser) -> Response {
    page(&state, &viewer, StatusCode::OK, Sessions::default()).await
}

pub(in crate::http) async fn end(
    State(state): State<AppState>,
    viewer: CurrentUser,
    PathId(id): PathId,
) -> Response {
    let identity = &state.auth.identity;
    let is_admin = viewer.0.may_anywhere(Permission::Administer);
    match identity.end_session_if(&viewer.0, &id, is_admin).await {
        Ok(()) if is_admin => see_other("/settings/sessions"),
        Ok(()) => see_other("/settings"),
        Err(error) if is_admin => {
            let Refused { status, refusal, .. } = error.into();
            page(
                &state,
                &viewer,
                status,
                Sessions {
                    refusal,
                    ..Sessions::default()
                },
            )
            .await
        }
        Err(error) => viewer.failed(&error, SETTINGS),
    }
}

/// As a page shows it.
pub(super) fn row(state: &Services, viewer: &CurrentUser, session: SessionView) -> SessionRow {
    let directory = state.directory();
    let user = directory.users.get(&session.user_id);
    let own = viewer.0.session.as_ref();
    SessionRow {
        is_this: own.is_some_and(|own| own.id == session.id),
        user: user.map_or_else(|| session.user_id.clone(), |user| user.name.clone()),
        way: session.way,
        created_at: session.created_at,
        seen_at: session.seen_at,
        ip: session.ip,
        user_agent: session.user_agent,
        id: session.id,
    }
}

async fn page(state: &Services, viewer: &CurrentUser, status: StatusCode, content: Sessions) -> Response {
    let known: Result<Vec<SessionView>, IdentityError> = state.auth.identity.sessions().await;
    let known = match known {
        Ok(known) => known,
        Err(error) => return viewer.failed(&error, SETTINGS),
    };
    let content = Sessions {
        rows: known
            .into_iter()
            .map(|session| row(state, viewer, session))
            .collect(),
        now: state.now(),
        ..content
    };
    response::html_response(status, sessions(&viewer.chrome(Section::Sessions), content))
}
