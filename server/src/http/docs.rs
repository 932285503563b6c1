//! `/docs`: the reference of the API, made from the description that this server serves, and the guides of docs/, embedded.
//! Pages without a script that load nothing from elsewhere. Made once, at start; only what stands around them depends on who
//! looks.

mod curl;
mod guides;
mod markdown;
mod reference;
mod schema;

use std::sync::Arc;

use app::forms::chrome::Place;
use app::forms::docs::{self, Contents, Group, Part};
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use utoipa::openapi::OpenApi;

use self::guides::Guide;
use super::people::Id;
use super::settings::Viewer;
use super::{form_page, pages};

/// The page that alerts link to.
const ALERTS: &str = "runbooks";

struct Library {
    guides: Vec<Guide>,
    parts: Vec<Part>,
    contents: Contents,
}

pub(super) fn router<S: Clone + Send + Sync + 'static>(description: &OpenApi) -> Router<S> {
    Router::new()
        .route("/docs", get(index))
        .route("/docs/alerts", get(alerts))
        .route("/docs/api/{part}", get(part))
        .route("/docs/{page}", get(guide))
        .layer(axum::middleware::map_response(pages::set_headers))
        .with_state(Arc::new(Library::new(description)))
}

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

    fn show(&self, Viewer(who): &Viewer, path: &str) -> Response {
        let chrome = form_page::chrome(who, Place::Elsewhere);
        match self.guide(path) {
            Some(guide) => {
                let html = guide.html.clone();
                let page = docs::guide(&chrome, &self.contents, &guide.path, &guide.title, html);
                form_page::answer(StatusCode::OK, page)
            }
            None => self.missing(who),
        }
    }

    fn missing(&self, who: &crate::identity::Who) -> Response {
        let chrome = form_page::chrome(who, Place::Elsewhere);
        let html = "<p>There is no page of this name; the list has all there are.</p>".to_owned();
        let page = docs::guide(&chrome, &self.contents, "", "No such page", html);
        form_page::answer(StatusCode::NOT_FOUND, page)
    }
}

async fn index(State(library): State<Arc<Library>>, Viewer(who): Viewer) -> Response {
    let chrome = form_page::chrome(&who, Place::Elsewhere);
    let html = library.guide("/docs").map_or("", |guide| &guide.html);
    let page = docs::index(&chrome, &library.contents, html, &library.parts);
    form_page::answer(StatusCode::OK, page)
}

async fn alerts(State(library): State<Arc<Library>>, viewer: Viewer) -> Response {
    library.show(&viewer, "/docs/alerts")
}

async fn guide(State(library): State<Arc<Library>>, Id(page): Id, viewer: Viewer) -> Response {
    library.show(&viewer, &format!("/docs/{page}"))
}

async fn part(State(library): State<Arc<Library>>, Id(part): Id, Viewer(who): Viewer) -> Response {
    let path = format!("/docs/api/{part}");
    let chrome = form_page::chrome(&who, Place::Elsewhere);
    match library.parts.iter().find(|part| part.path == path) {
        Some(part) => {
            let page = docs::reference(&chrome, &library.contents, part);
            form_page::answer(StatusCode::OK, page)
        }
        None => library.missing(&who),
    }
}

#[cfg(test)]
mod tests;
