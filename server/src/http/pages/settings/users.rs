//! `/settings/users`

use std::collections::HashMap;

use app::server_pages::layout::Section;
use app::server_pages::settings::users::{UserRow, Users, users};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::{Refused, SETTINGS};
use crate::http::current_user::CurrentUser;
use crate::http::form_body::Form;
use crate::http::pages::response;
use crate::http::state::{AppState, Services};
use crate::identity::{IdentityError, NewUser, User};

pub(in crate::http) async fn show(State(state): State<AppState>, viewer: CurrentUser) -> Response {
    page(&state, &viewer, StatusCode::OK, Users::default()).await
}

pub(in crate::http) async fn add(State(state): State<AppState>, viewer: CurrentUser, form: Form) -> Response {
    let name = form.text("name");
    let added = add_with_link(&state, &viewer, &form, name.clone()).await;
    let (status, content) = match added {
        Ok(link) => {
            let added = Some((name, link));
            (
                StatusCode::CREATED,
                Users {
                    added,
                    ..Users::default()
                },
            )
        }
        Err(error) => {
            let Refused {
                status,
                fault,
                refusal,
            } = error.into();
            (
                status,
                Users {
                    name,
                    fault,
                    refusal,
                    ..Users::default()
                },
            )
        }
    };
    page(&state, &viewer, status, content).await
}

async fn add_with_link(
    state: &Services,
    viewer: &CurrentUser,
    form: &Form,
    name: String,
) -> Result<String, IdentityError> {
    let identity = &state.auth.identity;
    let new = NewUser {
        name,
        grants: form.grants()?,
        password: None,
    };
    let id = identity.add_user(&viewer.0, new).await?;
    let link = identity.user_link(&viewer.0, &id).await?;
    Ok(state.sign_in_link(&link))
}

/// Words for the ways to sign in.
pub(super) fn way(user: &User) -> String {
    match (&user.issuer, user.has_password) {
        (Some(issuer), _) => issuer.clone(),
        (None, true) => "password".to_owned(),
        (None, false) => "link".to_owned(),
    }
}

async fn page(state: &Services, viewer: &CurrentUser, status: StatusCode, content: Users) -> Response {
    let sessions = match state.auth.identity.sessions().await {
        Ok(sessions) => sessions,
        Err(error) => return viewer.failed(&error, SETTINGS),
    };
    let mut seen: HashMap<&str, i64> = HashMap::new();
    for session in &sessions {
        let latest = seen.entry(&session.user_id).or_insert(session.seen_at);
        *latest = session.seen_at.max(*latest);
    }
    let directory = state.directory();
    let mut rows: Vec<UserRow> = directory
        .users
        .values()
        .map(|user| UserRow {
            id: user.id.clone(),
            name: user.name.clone(),
            grants: user.grants.iter().cloned().collect(),
            way: way(user),
            created_at: user.created_at,
            is_disabled: user.disabled_at.is_some(),
            seen_at: seen.get(user.id.as_str()).copied(),
        })
        .collect();
    rows.sort_by(|one, two| (one.is_disabled, &one.name).cmp(&(two.is_disabled, &two.name)));
    let content = Users {
        rows,
        backends: state.backends.names(),
        now: state.now(),
        ..content
    };
    response::html_response(status, users(&viewer.chrome(Section::Users), content))
}
