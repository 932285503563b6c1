//! `/settings`: whoever looks.

use std::sync::Arc;

use app::forms::chrome::Section;
use app::forms::settings::you::{You, you};
use axum::extract::State;
use axum::http::{StatusCode, Uri, header};
use axum::response::Response;

use super::form::Form;
use super::{Refused, SETTINGS, Settings, Viewer, on_to, sessions};
use crate::http::form_page;
use crate::identity::{IdentityError, Subject};

pub(super) async fn show(State(settings): State<Arc<Settings>>, viewer: Viewer, uri: Uri) -> Response {
    let changed = uri.query() == Some("changed");
    let content = You {
        done: changed.then(|| "Your password is changed; your other sessions have ended.".to_owned()),
        ..You::default()
    };
    page(&settings, &viewer, StatusCode::OK, content).await
}

pub(super) async fn change_password(
    State(settings): State<Arc<Settings>>,
    viewer: Viewer,
    form: Form,
) -> Response {
    let (old, new) = (form.secret("old"), form.secret("password"));
    match settings
        .gate
        .identity
        .change_password(&viewer.0, &old, &new)
        .await
    {
        Ok(()) => on_to("/settings?changed"),
        Err(IdentityError::WrongPassword) => {
            let why = "It is not the present one.".to_owned();
            let content = You {
                fault: Some(("old".to_owned(), why)),
                ..You::default()
            };
            page(&settings, &viewer, StatusCode::UNPROCESSABLE_ENTITY, content).await
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
            let mut response = page(&settings, &viewer, status, content).await;
            if let Some(seconds) = retry_after_s {
                response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
            }
            response
        }
    }
}

async fn page(settings: &Settings, viewer: &Viewer, status: StatusCode, content: You) -> Response {
    let known = match settings.gate.identity.sessions().await {
        Ok(known) => known,
        Err(error) => return viewer.failed(&error, SETTINGS),
    };
    let who = &viewer.0;
    let own = known.into_iter().filter(|session| session.person_id == who.id());
    let rows: Vec<_> = own
        .map(|session| sessions::row(settings, viewer, session))
        .collect();
    let this = rows.iter().find(|row| row.is_this);
    let directory = settings.directory();
    let person = directory.people.get(who.id());
    let content = You {
        grants: who.grants.iter().cloned().collect(),
        way: match (&who.subject, this) {
            (Subject::Token { .. }, _) => "token".to_owned(),
            (_, Some(row)) => row.way.clone(),
            (_, None) => "unknown".to_owned(),
        },
        authenticated_at: who.session.as_ref().map(|session| session.authenticated_at),
        has_password: person.is_some_and(|person| person.has_password),
        is_managed: person.is_none_or(|person| person.issuer.is_some()),
        sessions: rows,
        now: settings.now(),
        ..content
    };
    form_page::answer(status, you(&viewer.chrome(Section::You), content))
}
