//! `/settings/users/{id}`

use app::console::ConsoleError;
use app::forms::reply::FormReply;
use app::pages::settings::data::{UserData, UserToken};
use app::pages::settings::secret_panel::SECRET;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::users::sign_in_method;
use super::{error_reply, page_error};
use crate::http::pages::form_request::FormRequest;
use crate::http::path_id::PathId;
use crate::http::state::{AppState, Services};
use crate::identity::{IdentityError, Principal};

/// Characters of an unknown id that are shown.
const ID_SHOWN_MAX: usize = 64;

impl Services {
    pub(super) async fn user_data(&self, who: &Principal, id: &str) -> Result<UserData, ConsoleError> {
        let directory = self.directory();
        let known = directory.users.get(id).ok_or_else(|| {
            let name = id.chars().take(ID_SHOWN_MAX).collect();
            page_error(&IdentityError::NotFound { what: "user", name })
        })?;
        let sessions = self.auth.identity.sessions().await;
        let sessions = sessions.map_err(|error| page_error(&error))?;
        let tokens = self.auth.identity.active_tokens_of(id).await;
        let tokens = tokens.map_err(|error| page_error(&error))?.into_iter();
        let user_sessions = sessions.iter().filter(|session| session.user_id == id);
        Ok(UserData {
            id: known.id.clone(),
            name: known.name.clone(),
            grants: known.grants.iter().cloned().collect(),
            sign_in_method: sign_in_method(known),
            created_at: known.created_at,
            disabled_at: known.disabled_at,
            sessions: user_sessions.count() as u64,
            active_tokens: tokens
                .map(|token| UserToken {
                    id: token.id,
                    name: token.name,
                })
                .collect(),
            is_managed: known.issuer.is_some(),
            is_self: who.id() == id,
            backends: self.backends.names(),
            now: self.now(),
        })
    }
}

fn page(id: &str) -> String {
    format!("/settings/users/{id}")
}

pub(in crate::http) async fn set_grants(
    State(state): State<AppState>,
    PathId(id): PathId,
    form: FormRequest,
) -> Response {
    let saved = match form.form.grants() {
        Ok(grants) => state.auth.identity.set_grants(&form.who, &id, grants).await,
        Err(error) => Err(error),
    };
    answer(&state, &id, form, saved, "saved").await
}

pub(in crate::http) async fn make_link(
    State(state): State<AppState>,
    PathId(id): PathId,
    form: FormRequest,
) -> Response {
    match state.auth.identity.user_link(&form.who, &id).await {
        Ok(link) => {
            let reply = FormReply {
                values: vec![(SECRET.to_owned(), state.sign_in_link(&link))],
                ..FormReply::default()
            };
            form.reply(&state, &page(&id), StatusCode::CREATED, reply).await
        }
        Err(error) => error_reply(&state, form, &page(&id), &error).await,
    }
}

pub(in crate::http) async fn disable(
    State(state): State<AppState>,
    PathId(id): PathId,
    form: FormRequest,
) -> Response {
    // The next page lists the tokens that still work.
    let disabled = state.auth.identity.disable_user(&form.who, &id).await;
    answer(&state, &id, form, disabled.map(drop), "disabled").await
}

pub(in crate::http) async fn enable(
    State(state): State<AppState>,
    PathId(id): PathId,
    form: FormRequest,
) -> Response {
    let enabled = state.auth.identity.enable_user(&form.who, &id).await;
    answer(&state, &id, form, enabled, "enabled").await
}

/// `key` is the message of the next page.
async fn answer(
    state: &AppState,
    id: &str,
    form: FormRequest,
    outcome: Result<(), IdentityError>,
    key: &str,
) -> Response {
    match outcome {
        Ok(()) => form.moved(&format!("{}?{key}", page(id))),
        Err(error) => error_reply(state, form, &page(id), &error).await,
    }
}
