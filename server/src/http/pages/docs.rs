//! `/docs`: the reference of the API, made from the description that this server serves, and the guides of docs/, embedded.
//! The pages have no script and load nothing from other hosts. They are built once, at start; only the chrome depends on
//! the user.

mod curl;
mod guides;
mod markdown;
mod reference;
mod schema;

use std::sync::LazyLock;

use app::server_pages::docs::{self, Contents, Group, Part};
use app::server_pages::layout::PageSection;
use axum::http::StatusCode;
use axum::response::Response;
use utoipa::openapi::OpenApi;

use self::guides::Guide;
use crate::http::current_user::CurrentUser;
use crate::http::pages::response;
use crate::http::path_id::PathId;
use crate::http::routes::DESCRIPTION;

/// The page that alerts link to.
const ALERTS: &str = "runbooks";

struct Library {
    guides: Vec<Guide>,
    parts: Vec<Part>,
    contents: Contents,
}

/// Made once: it depends on the program alone.
static LIBRARY: LazyLock<Library> = LazyLock::new(|| Library::new(&DESCRIPTION));

impl Library {
    fn new(description: &OpenApi) -> Self {
        let parts = reference::parts(description);
        let guides = guides::all();
        let link = |guide: &Guide| (guide.path.clone(), guide.word.clone());
        let first = ("/docs".to_owned(), "Contents".to_owned());
        let of_api = parts.iter().map(|part| (part.path.clone(), part.title.clone()));
        let listed = guides.iter().filter(|guide| guide.name != guides::INDEX);
        let contents = Contents {
            groups: vec![
                Group {
                    title: "API",
                    links: std::iter::once(first).chain(of_api).collect(),
                },
                Group {
                    title: "Guides",
                    links: listed.map(link).collect(),
                },
            ],
        };
        Self {
            guides,
            parts,
            contents,
        }
    }

    fn guide(&self, path: &str) -> Option<&Guide> {
        self.guides.iter().find(|guide| guide.path == path)
    }

    fn show(&self, CurrentUser(who): &CurrentUser, path: &str) -> Response {
        let chrome = response::chrome(who, PageSection::Elsewhere);
        match self.guide(path) {
            Some(guide) => {
                let html = guide.html.clone();
                let page = docs::guide(&chrome, &self.contents, &guide.path, &guide.title, html);
                response::html_response(StatusCode::OK, page)
            }
            None => self.not_found(who),
        }
    }

    fn not_found(&self, who: &crate::identity::Principal) -> Response {
        let chrome = response::chrome(who, PageSection::Elsewhere);
        let html = "<p>No page has this name. The list shows every page.</p>".to_owned();
        let page = docs::guide(&chrome, &self.contents, "", "Page not found", html);
        response::html_response(StatusCode::NOT_FOUND, page)
    }
}

pub(in crate::http) async fn index(CurrentUser(who): CurrentUser) -> Response {
    let chrome = response::chrome(&who, PageSection::Elsewhere);
    let html = LIBRARY.guide("/docs").map_or("", |guide| &guide.html);
    let page = docs::index(&chrome, &LIBRARY.contents, html, &LIBRARY.parts);
    response::html_response(StatusCode::OK, page)
}

pub(in crate::http) async fn alerts(viewer: CurrentUser) -> Response {
    LIBRARY.show(&viewer, "/docs/alerts")
}

pub(in crate::http) async fn guide(PathId(page): PathId, viewer: CurrentUser) -> Response {
    LIBRARY.show(&viewer, &format!("/docs/{page}"))
}

pub(in crate::http) async fn part(PathId(part): PathId, CurrentUser(who): CurrentUser) -> Response {
    let path = format!("/docs/api/{part}");
    let chrome = response::chrome(&who, PageSection::Elsewhere);
    match LIBRARY.parts.iter().find(|part| part.path == path) {
        Some(part) => {
            let page = docs::reference(&chrome, &LIBRARY.contents, part);
            response::html_response(StatusCode::OK, page)
        }
        None => LIBRARY.not_found(&who),
    }
}

#[cfg(test)]
mod tests;
