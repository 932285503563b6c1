//! `/settings`: the account of the user.

use app::server_pages::layout::Section;
use app::server_pages::settings::account::{You, you};
use axum::extract::State;
use axum::http::{StatusCode, Uri, header};
use axum::response::Response;

use super::{Refused, SETTINGS, sessions};
use crate::http::current_user::CurrentUser;
use crate::http::form_body::Form;
use crate::http::pages::response;
use crate::http::pages::response::see_other;
use crate::http::state::{AppState, Services};
use crate::identity::{IdentityError, Subject};

pub(in crate::http) async fn show(State(state): State<AppState>, viewer: CurrentUser, uri: Uri) -> Response {
    let changed = uri.query() == Some("changed");
    let content = You {
        done: changed.then(|| "Password changed; your other sessions have ended.".to_owned()),
        ..You::default()
    };
    page(&state, &viewer, StatusCode::OK, content).await
}

pub(in crate::http) async fn change_password(
    State(state): State<AppState>,
    viewer: CurrentUser,
    form: Form,
) -> Response {
    let (old, new) = (form.secret("old"), form.secret("password"));
    match state.auth.identity.change_password(&viewer.0, &old, &new).await {
        Ok(()) => see_other("/settings?changed"),
        Err(IdentityError::WrongPassword) => {
            let why = "The present password is wrong.".to_owned();
            let content = You {
                fault: Some(("old".to_owned(), why)),
                ..You::default()
            };
            page(&state, &viewer, StatusCode::UNPROCESSABLE_ENTITY, content).await
        }
        Err(error) => {
            let retry_after_s = error.retry_after_s();
            let Refused {
                status,
                fault,
                refusal,
            } = error.into();
            let content = You {
                fault,
                refusal,
                ..You::default()
            };
            let mut response = page(&state, &viewer, status, content).await;
            if let Some(seconds) = retry_after_s {
                response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
            }
            response
        }
    }
}

async fn page(state: &Services, viewer: &CurrentUser, status: StatusCode, content: You) -> Response {
    let known = match state.auth.identity.sessions().await {
        Ok(known) => known,
        Err(error) => return viewer.failed(&error, SETTINGS),
    };
    let who = &viewer.0;
    let own = known.into_iter().filter(|session| session.user_id == who.id());
    let rows: Vec<_> = own.map(|session| sessions::row(state, viewer, session)).collect();
    let this = rows.iter().find(|row| row.is_this);
    let directory = state.directory();
    let user = directory.users.get(who.id());
    let content = You {
        grants: who.grants.iter().cloned().collect(),
        way: match (&who.subject, this) {
            (Subject::Token { .. }, _) => "token".to_owned(),
            (_, Some(row)) => row.way.clone(),
            (_, None) => "unknown".to_owned(),
        },
        authenticated_at: who.session.as_ref().map(|session| session.authenticated_at),
        has_password: user.is_some_and(|user| user.has_password),
        is_managed: user.is_none_or(|user| user.issuer.is_some()),
        sessions: rows,
        now: state.now(),
        ..content
    };
    response::html_response(status, you(&viewer.chrome(Section::You), content))
}
