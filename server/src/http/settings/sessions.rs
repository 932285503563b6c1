//! `/settings/sessions`: everybody's, for admins; and ending one, one's own or, for admins, another's.

use std::sync::Arc;

use app::forms::chrome::Section;
use app::forms::settings::sessions::{Row, Sessions, sessions};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use domain::access::Right;

use super::{Refused, SETTINGS, Settings, Viewer, on_to};
use crate::http::form_page;
use crate::http::people::Id;
use crate::identity::{IdentityError, SessionView};

pub(super) async fn show(State(settings): State<Arc<Settings>>, viewer: Viewer) -> Response {
    page(&settings, &viewer, StatusCode::OK, Sessions::default()).await
}

pub(super) async fn end(State(settings): State<Arc<Settings>>, viewer: Viewer, Id(id): Id) -> Response {
    let identity = &settings.gate.identity;
    let is_admin = viewer.0.may_anywhere(Right::Administer);
    match identity.end_session_if(&viewer.0, &id, is_admin).await {
        Ok(()) if is_admin => on_to("/settings/sessions"),
        Ok(()) => on_to("/settings"),
        Err(error) if is_admin => {
            let Refused { status, refusal, .. } = error.into();
            page(
                &settings,
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
pub(super) fn row(settings: &Settings, viewer: &Viewer, session: SessionView) -> Row {
    let directory = settings.directory();
    let person = directory.people.get(&session.person_id);
    let own = viewer.0.session.as_ref();
    Row {
        is_this: own.is_some_and(|own| own.id == session.id),
        person: person.map_or_else(|| session.person_id.clone(), |person| person.name.clone()),
        way: session.way,
        created_at: session.created_at,
        seen_at: session.seen_at,
        ip: session.ip,
        user_agent: session.user_agent,
        id: session.id,
    }
}

async fn page(settings: &Settings, viewer: &Viewer, status: StatusCode, content: Sessions) -> Response {
    let known: Result<Vec<SessionView>, IdentityError> = settings.gate.identity.sessions().await;
    let known = match known {
        Ok(known) => known,
        Err(error) => return viewer.failed(&error, SETTINGS),
    };
    let content = Sessions {
        rows: known
            .into_iter()
            .map(|session| row(settings, viewer, session))
            .collect(),
        now: settings.now(),
        ..content
    };
    form_page::answer(status, sessions(&viewer.chrome(Section::Sessions), content))
}
