//! `/settings/people`

use std::collections::HashMap;
use std::sync::Arc;

use app::forms::chrome::Section;
use app::forms::settings::people::{People, Row, people};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::form::Form;
use super::{Refused, SETTINGS, Settings, Viewer};
use crate::http::form_page;
use crate::identity::{IdentityError, NewPerson, Person};

pub(super) async fn show(State(settings): State<Arc<Settings>>, viewer: Viewer) -> Response {
    page(&settings, &viewer, StatusCode::OK, People::default()).await
}

pub(super) async fn add(State(settings): State<Arc<Settings>>, viewer: Viewer, form: Form) -> Response {
    let name = form.text("name");
    let added = add_with_link(&settings, &viewer, &form, name.clone()).await;
    let (status, content) = match added {
        Ok(link) => {
            let added = Some((name, link));
            (
                StatusCode::CREATED,
                People {
                    added,
                    ..People::default()
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
                People {
                    name,
                    fault,
                    refusal,
                    ..People::default()
                },
            )
        }
    };
    page(&settings, &viewer, status, content).await
}

async fn add_with_link(
    settings: &Settings,
    viewer: &Viewer,
    form: &Form,
    name: String,
) -> Result<String, IdentityError> {
    let identity = &settings.gate.identity;
    let new = NewPerson {
        name,
        grants: form.grants()?,
        password: None,
    };
    let id = identity.add_person(&viewer.0, new).await?;
    let link = identity.person_link(&viewer.0, &id).await?;
    Ok(settings.sign_in_link(&link))
}

/// How somebody signs in, as the pages say it.
pub(super) fn way(person: &Person) -> String {
    match (&person.issuer, person.has_password) {
        (Some(issuer), _) => issuer.clone(),
        (None, true) => "password".to_owned(),
        (None, false) => "link".to_owned(),
    }
}

async fn page(settings: &Settings, viewer: &Viewer, status: StatusCode, content: People) -> Response {
    let sessions = match settings.gate.identity.sessions().await {
        Ok(sessions) => sessions,
        Err(error) => return viewer.failed(&error, SETTINGS),
    };
    let mut seen: HashMap<&str, i64> = HashMap::new();
    for session in &sessions {
        let latest = seen.entry(&session.person_id).or_insert(session.seen_at);
        *latest = session.seen_at.max(*latest);
    }
    let directory = settings.directory();
    let mut rows: Vec<Row> = directory
        .people
        .values()
        .map(|person| Row {
            id: person.id.clone(),
            name: person.name.clone(),
            grants: person.grants.iter().cloned().collect(),
            way: way(person),
            created_at: person.created_at,
            is_disabled: person.disabled_at.is_some(),
            seen_at: seen.get(person.id.as_str()).copied(),
        })
        .collect();
    rows.sort_by(|one, two| (one.is_disabled, &one.name).cmp(&(two.is_disabled, &two.name)));
    let content = People {
        rows,
        backends: settings.backends.names(),
        now: settings.now(),
        ..content
    };
    form_page::answer(status, people(&viewer.chrome(Section::People), content))
}
