//! `/settings/sessions`: all sessions, for admins; any user may end their own.

use app::console::ConsoleError;
use app::pages::settings::data::{SessionRow, SessionsData};
use axum::extract::State;
use axum::response::Response;
use domain::access::Permission;

use super::{error_reply, page_error};
use crate::http::pages::form_request::FormRequest;
use crate::http::path_id::PathId;
use crate::http::state::{AppState, Services};
use crate::identity::{Principal, SessionView};

impl Services {
    pub(super) async fn sessions_data(&self, who: &Principal) -> Result<SessionsData, ConsoleError> {
        let known = self.auth.identity.sessions().await;
        let known = known.map_err(|error| page_error(&error))?;
        Ok(SessionsData {
            rows: known.into_iter().map(|session| row(self, who, session)).collect(),
            now: self.now(),
        })
    }
}

/// The row of a session on the page.
pub(super) fn row(state: &Services, who: &Principal, session: SessionView) -> SessionRow {
    let directory = state.directory();
    let user = directory.users.get(&session.user_id);
    let own_session = who.session.as_ref();
    SessionRow {
        is_current: own_session.is_some_and(|own_session| own_session.id == session.id),
        user: user.map_or_else(|| session.user_id.clone(), |user| user.name.clone()),
        sign_in_method: session.way,
        created_at: session.created_at,
        seen_at: session.seen_at,
        ip: session.ip,
        user_agent: session.user_agent,
        id: session.id,
    }
}

pub(in crate::http) async fn end(
    State(state): State<AppState>,
    PathId(id): PathId,
    form: FormRequest,
) -> Response {
    let identity = &state.auth.identity;
    let is_admin = form.who.may_anywhere(Permission::Administer);
    let page = if is_admin {
        "/settings/sessions"
    } else {
        "/settings"
    };
    match identity.end_session_if(&form.who, &id, is_admin).await {
        Ok(()) => form.moved(&format!("{page}?ended")),
        Err(error) => error_reply(&state, form, page, &error).await,
    }
}
