//! `/settings/tokens`

use std::sync::Arc;
use std::time::Duration;

use app::forms::chrome::Section;
use app::forms::settings::tokens::{Row, Tokens, tokens};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::form::Form;
use super::{Refused, SETTINGS, Settings, Viewer, on_to};
use crate::http::form_page;
use crate::http::people::Id;
use crate::identity::{IdentityError, NewToken};

const DAY: Duration = Duration::from_secs(86_400);

pub(super) async fn show(State(settings): State<Arc<Settings>>, viewer: Viewer) -> Response {
    page(&settings, &viewer, StatusCode::OK, Tokens::default()).await
}

pub(super) async fn make(State(settings): State<Arc<Settings>>, viewer: Viewer, form: Form) -> Response {
    let name = form.text("name");
    let (status, content) = match create(&settings, &viewer, &form, name.clone()).await {
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
    page(&settings, &viewer, status, content).await
}

async fn create(
    settings: &Settings,
    viewer: &Viewer,
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
    let identity = &settings.gate.identity;
    let secret = if predecessor.is_empty() {
        identity.create_token(&viewer.0, new).await?
    } else {
        identity.create_successor(&viewer.0, new, &predecessor).await?
    };
    Ok(secret.expose().to_owned())
}

pub(super) async fn revoke(State(settings): State<Arc<Settings>>, viewer: Viewer, Id(id): Id) -> Response {
    match settings.gate.identity.revoke_token(&viewer.0, &id).await {
        Ok(()) => on_to("/settings/tokens"),
        Err(error) => {
            let Refused { status, refusal, .. } = error.into();
            page(
                &settings,
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

async fn page(settings: &Settings, viewer: &Viewer, status: StatusCode, content: Tokens) -> Response {
    let known = match settings.gate.identity.tokens().await {
        Ok(known) => known,
        Err(error) => return viewer.failed(&error, SETTINGS),
    };
    let rows = known.into_iter().map(|token| Row {
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
        backends: settings.backends.names(),
        now: settings.now(),
        ..content
    };
    form_page::answer(status, tokens(&viewer.chrome(Section::Tokens), content))
}
