//! `/settings/tokens`

use std::time::Duration;

use app::server_pages::layout::Section;
use app::server_pages::settings::tokens::{TokenRow, Tokens, tokens};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::{Refused, SETTINGS};
use crate::http::current_user::CurrentUser;
use crate::http::form_body::Form;
use crate::http::pages::response;
use crate::http::pages::response::see_other;
use crate::http::path_id::PathId;
use crate::http::state::{AppState, Services};
use crate::identity::{IdentityError, NewToken};

const DAY: Duration = Duration::from_secs(86_400);

pub(in crate::http) async fn show(State(state): State<AppState>, viewer: CurrentUser) -> Response {
    page(&state, &viewer, StatusCode::OK, Tokens::default()).await
}

pub(in crate::http) async fn make(
    State(state): State<AppState>,
    viewer: CurrentUser,
    form: Form,
) -> Response {
    let name = form.text("name");
    let (status, content) = match create(&state, &viewer, &form, name.clone()).await {
        Ok(secret) => {
            let made = Some((name, secret));
            (
                StatusCode::CREATED,
                Tokens {
                    made,
                    ..Tokens::default()
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
                Tokens {
                    name,
                    fault,
                    refusal,
                    ..Tokens::default()
                },
            )
        }
    };
    page(&state, &viewer, status, content).await
}

async fn create(
    state: &Services,
    viewer: &CurrentUser,
    form: &Form,
    name: String,
) -> Result<String, IdentityError> {
    let days = form.text("days");
    let days = Some(days)
        .filter(|days| !days.is_empty())
        .map(|days| days.parse::<u32>());
    let days = days
        .transpose()
        .ok()
        .flatten()
        .filter(|days| (1..=3_660).contains(days));
    let new = NewToken {
        name,
        grants: form.grants()?,
        expires_in: days.map(|days| DAY * days),
    };
    let predecessor = form.text("successor_of");
    let identity = &state.auth.identity;
    let secret = if predecessor.is_empty() {
        identity.create_token(&viewer.0, new).await?
    } else {
        identity.create_successor(&viewer.0, new, &predecessor).await?
    };
    Ok(secret.expose().to_owned())
}

pub(in crate::http) async fn revoke(
    State(state): State<AppState>,
    viewer: CurrentUser,
    PathId(id): PathId,
) -> Response {
    match state.auth.identity.revoke_token(&viewer.0, &id).await {
        Ok(()) => see_other("/settings/tokens"),
        Err(error) => {
            let Refused { status, refusal, .. } = error.into();
            page(
                &state,
                &viewer,
                status,
                Tokens {
                    refusal,
                    ..Tokens::default()
                },
            )
            .await
        }
    }
}

async fn page(state: &Services, viewer: &CurrentUser, status: StatusCode, content: Tokens) -> Response {
    let known = match state.auth.identity.tokens().await {
        Ok(known) => known,
        Err(error) => return viewer.failed(&error, SETTINGS),
    };
    let rows = known.into_iter().map(|token| TokenRow {
        id: token.id,
        name: token.name,
        grants: token.grants,
        created_at: token.created_at,
        root: token.root.filter(|root| *root != token.created_by),
        created_by: token.created_by,
        expires_at: token.expires_at,
        used_at: token.used_at,
        revoked_at: token.revoked_at,
        successor_of: token.successor_of,
    });
    let content = Tokens {
        rows: rows.collect(),
        backends: state.backends.names(),
        now: state.now(),
        ..content
    };
    response::html_response(status, tokens(&viewer.chrome(Section::Tokens), content))
}
