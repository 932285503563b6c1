//! `/settings/people/{id}`

use std::sync::Arc;

use app::forms::chrome::Section;
use app::forms::settings::person::{Person, person};
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;

use super::form::Form;
use super::people::way;
use super::{PEOPLE, Refused, Settings, Viewer, on_to};
use crate::http::form_page;
use crate::http::people::Id;
use crate::identity::IdentityError;

/// Characters of an unknown id that are shown.
const ID_SHOWN_MAX: usize = 64;

pub(super) async fn show(
    State(settings): State<Arc<Settings>>,
    viewer: Viewer,
    Id(id): Id,
    uri: Uri,
) -> Response {
    let done = match uri.query() {
        Some("saved") => Some("Saved. It holds from now on, everywhere within a second."),
        Some("enabled") => Some("Enabled: they may sign in again."),
        Some("disabled") => Some("Disabled: every session of theirs has ended."),
        _ => None,
    };
    let content = Person {
        done: done.map(str::to_owned),
        ..Person::default()
    };
    page(&settings, &viewer, &id, StatusCode::OK, content).await
}

pub(super) async fn set_grants(
    State(settings): State<Arc<Settings>>,
    viewer: Viewer,
    Id(id): Id,
    form: Form,
) -> Response {
    let saved = match form.grants() {
        Ok(grants) => settings.gate.identity.set_grants(&viewer.0, &id, grants).await,
        Err(error) => Err(error),
    };
    done_or_refused(&settings, &viewer, &id, saved, "saved").await
}

pub(super) async fn make_link(State(settings): State<Arc<Settings>>, viewer: Viewer, Id(id): Id) -> Response {
    match settings.gate.identity.person_link(&viewer.0, &id).await {
        Ok(link) => {
            let content = Person {
                link: Some(settings.sign_in_link(&link)),
                ..Person::default()
            };
            page(&settings, &viewer, &id, StatusCode::CREATED, content).await
        }
        Err(error) => done_or_refused(&settings, &viewer, &id, Err(error), "").await,
    }
}

pub(super) async fn disable(State(settings): State<Arc<Settings>>, viewer: Viewer, Id(id): Id) -> Response {
    let disabled = settings.gate.identity.disable_person(&viewer.0, &id).await;
    done_or_refused(&settings, &viewer, &id, disabled, "disabled").await
}

pub(super) async fn enable(State(settings): State<Arc<Settings>>, viewer: Viewer, Id(id): Id) -> Response {
    let enabled = settings.gate.identity.enable_person(&viewer.0, &id).await;
    done_or_refused(&settings, &viewer, &id, enabled, "enabled").await
}

async fn done_or_refused(
    settings: &Settings,
    viewer: &Viewer,
    id: &str,
    outcome: Result<(), IdentityError>,
    word: &str,
) -> Response {
    match outcome {
        Ok(()) => on_to(&format!("/settings/people/{id}?{word}")),
        Err(error) => {
            let Refused {
                status,
                fault,
                refusal,
            } = error.into();
            let content = Person {
                fault: fault.map(|(_, why)| why),
                refusal,
                ..Person::default()
            };
            page(settings, viewer, id, status, content).await
        }
    }
}

async fn page(
    settings: &Settings,
    viewer: &Viewer,
    id: &str,
    status: StatusCode,
    content: Person,
) -> Response {
    let directory = settings.directory();
    let Some(known) = directory.people.get(id) else {
        let name = id.chars().take(ID_SHOWN_MAX).collect();
        return viewer.failed(&IdentityError::NotFound { what: "person", name }, PEOPLE);
    };
    let sessions = match settings.gate.identity.sessions().await {
        Ok(sessions) => sessions,
        Err(error) => return viewer.failed(&error, PEOPLE),
    };
    let content = Person {
        id: known.id.clone(),
        name: known.name.clone(),
        grants: known.grants.iter().cloned().collect(),
        way: way(known),
        created_at: known.created_at,
        disabled_at: known.disabled_at,
        sessions: sessions.iter().filter(|session| session.person_id == id).count(),
        is_managed: known.issuer.is_some(),
        is_oneself: viewer.0.id() == id,
        backends: settings.backends.names(),
        now: settings.now(),
        ..content
    };
    form_page::answer(status, person(&viewer.chrome(Section::People), content))
}
