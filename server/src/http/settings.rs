//! `/settings/…`: pages of the settings, without a script. Handlers parse, ask identity, answer with a page, or send on to
//! one so that reloading repeats nothing.

pub(super) mod form;
mod people;
mod person;
mod sessions;
pub(super) mod tiers;
mod tokens;
mod you;

use std::convert::Infallible;
use std::sync::Arc;

use app::forms::chrome::{self, Chrome, Place, Section};
use app::forms::failed::failed;
use app::forms::settings::roles;
use axum::Router;
use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::{get, post};
use domain::access::Right;
use domain::names::BackendName;

use super::access::Gate;
use super::form_page;
use super::pages;
use crate::audit::Origin;
use crate::backends::Roster;
use crate::clock::Clock;
use crate::identity::{Directory, IdentityError, Secret, Who};

/// What the pages ask.
#[derive(Clone)]
pub struct Settings {
    pub gate: Gate,
    pub clock: Clock,
    /// What is configured, for choices.
    pub backends: Arc<Roster>,
    /// Where people reach the console, without a slash at its end.
    pub home: String,
}

impl Settings {
    /// Names of the backends on which the right holds somewhere, for choices.
    pub(super) fn backend_choices(&self, who: &Who, right: Right) -> Vec<String> {
        let is_visible = |name: &String| {
            let name = BackendName::parse(name);
            name.is_ok_and(|name| !who.scope_on(right, &name).is_nothing())
        };
        let names = self.backends.names();
        names.into_iter().filter(is_visible).collect()
    }
}

pub(super) fn router(settings: Arc<Settings>) -> Router {
    Router::new()
        .route("/settings", get(you::show))
        .route("/settings/password", post(you::change_password))
        .route("/settings/people", get(people::show).post(people::add))
        .route("/settings/people/{id}", get(person::show))
        .route("/settings/people/{id}/grants", post(person::set_grants))
        .route("/settings/people/{id}/link", post(person::make_link))
        .route("/settings/people/{id}/disable", post(person::disable))
        .route("/settings/people/{id}/enable", post(person::enable))
        .route("/settings/tokens", get(tokens::show).post(tokens::make))
        .route("/settings/tokens/{id}/revoke", post(tokens::revoke))
        .route("/settings/sessions", get(sessions::show))
        .route("/settings/sessions/{id}/end", post(sessions::end))
        .route("/settings/roles", get(show_roles))
        .layer(axum::middleware::map_response(pages::set_headers))
        .with_state(settings)
}

/// Who looks at a page. Behind the guard there is always somebody.
pub(super) struct Viewer(pub(super) Who);

impl<S: Sync> FromRequestParts<S> for Viewer {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let who = parts.extensions.remove::<Who>();
        Ok(Self(who.unwrap_or_else(|| Who::anonymous(Origin::default()))))
    }
}

impl Viewer {
    fn chrome(&self, section: Section) -> Chrome {
        form_page::chrome(&self.0, Place::Settings(section))
    }
}

impl Settings {
    pub(super) fn now(&self) -> i64 {
        self.clock.now().wall.timestamp_millis()
    }

    /// For handing over.
    pub(super) fn sign_in_link(&self, secret: &Secret) -> String {
        format!("{}/sign-in?link={}", self.home, secret.expose())
    }

    pub(super) fn directory(&self) -> Arc<Directory> {
        self.gate.identity.directory()
    }
}

async fn show_roles(viewer: Viewer) -> Response {
    form_page::answer(StatusCode::OK, roles::roles(&viewer.chrome(Section::Roles)))
}

impl Viewer {
    /// A page instead of the one whose content could not be read, or is not there.
    fn failed(&self, error: &IdentityError, back: (&'static str, &'static str)) -> Response {
        let title = match error {
            IdentityError::NotFound { .. } => "There is no such entry",
            _ => "This page cannot be shown now",
        };
        let page = chrome::Page {
            title: title.to_owned(),
            lead: None,
            content: failed(&form_page::sentence(error), back),
        };
        let chrome = form_page::chrome(&self.0, Place::Elsewhere);
        let response = form_page::answer(form_page::status_of(error), chrome::page(&chrome, page));
        form_page::with_retry_after(response, error)
    }
}

const SETTINGS: (&str, &str) = ("/settings", "Settings");
const PEOPLE: (&str, &str) = ("/settings/people", "People");

/// Done: on to a page, with a word that it may say.
pub(super) fn on_to(path: &str) -> Response {
    Redirect::to(path).into_response()
}

/// Status, field with its fault, and what is said of the whole: one of the last two.
struct Refused {
    status: StatusCode,
    fault: Option<(String, String)>,
    refusal: Option<String>,
}

impl From<IdentityError> for Refused {
    fn from(error: IdentityError) -> Self {
        let status = form_page::status_of(&error);
        match error {
            IdentityError::Invalid { field, why } => Self {
                status,
                fault: Some((field.to_owned(), format!("It {why}."))),
                refusal: None,
            },
            other => Self {
                status,
                fault: None,
                refusal: Some(form_page::sentence(&other)),
            },
        }
    }
}
