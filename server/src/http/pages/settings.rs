//! `/settings/…`: pages of the settings, without a script. Handlers parse, ask identity, answer with a page, or send on to
//! one so that reloading repeats nothing.

pub(in crate::http) mod account;
pub(in crate::http) mod protected_prefixes;
pub(in crate::http) mod sessions;
pub(in crate::http) mod tokens;
pub(in crate::http) mod user;
pub(in crate::http) mod users;

use app::server_pages::failed::failed;
use app::server_pages::layout::{self, Chrome, PageSection, Section};
use app::server_pages::settings::roles;
use axum::http::StatusCode;
use axum::response::Response;

use crate::http::current_user::CurrentUser;
use crate::http::pages::response;
use crate::identity::IdentityError;

impl CurrentUser {
    fn chrome(&self, section: Section) -> Chrome {
        response::chrome(&self.0, PageSection::Settings(section))
    }
}

pub(in crate::http) async fn show_roles(viewer: CurrentUser) -> Response {
    response::html_response(StatusCode::OK, roles::roles(&viewer.chrome(Section::Roles)))
}

impl CurrentUser {
    /// An error page: the content could not be read or does not exist.
    fn failed(&self, error: &IdentityError, back: (&'static str, &'static str)) -> Response {
        let title = match error {
            IdentityError::NotFound { what: "user", .. } => "User not found",
            IdentityError::NotFound { .. } => "Not found",
            _ => "Page unavailable",
        };
        let page = layout::Page {
            title: title.to_owned(),
            lead: None,
            content: failed(&response::sentence(error), back),
        };
        let chrome = response::chrome(&self.0, PageSection::Elsewhere);
        let response = response::html_response(response::status_of(error), layout::page(&chrome, page));
        response::with_retry_after(response, error)
    }
}

const SETTINGS: (&str, &str) = ("/settings", "Settings");
const USERS: (&str, &str) = ("/settings/users", "Users");

/// Status, field with its fault, and what is said of the whole: one of the last two.
struct Refused {
    status: StatusCode,
    fault: Option<(String, String)>,
    refusal: Option<String>,
}

impl From<IdentityError> for Refused {
    fn from(error: IdentityError) -> Self {
        let status = response::status_of(&error);
        match error {
            IdentityError::Invalid { field, why } => Self {
                status,
                fault: Some((field.to_owned(), format!("It {why}."))),
                refusal: None,
            },
            other => Self {
                status,
                fault: None,
                refusal: Some(response::sentence(&other)),
            },
        }
    }
}
