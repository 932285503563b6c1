//! Data of `/docs`: the reference of the API, generated from the description that this server serves, and the guides of docs/,
//! embedded. Built once, at the first request.

mod curl;
mod guides;
mod markdown;
mod reference;
mod schema;

use std::future::ready;
use std::sync::LazyLock;

use app::console::{ConsoleError, ConsoleFuture};
use app::pages::docs::{ApiPart, ContentsGroup, DocsData, DocsPort, Operation};
use utoipa::openapi::OpenApi;

use self::guides::Guide;
use crate::http::pages::caller_data::CallerData;
use crate::http::routes::DESCRIPTION;

const INDEX: &str = "/docs";
/// The page that alerts link to.
const ALERTS: &str = "runbooks";

struct Library {
    guides: Vec<Guide>,
    parts: Vec<ApiPart>,
    contents: Vec<ContentsGroup>,
}

/// Built once: it depends on the program alone.
static LIBRARY: LazyLock<Library> = LazyLock::new(|| Library::new(&DESCRIPTION));

impl Library {
    fn new(description: &OpenApi) -> Self {
        let parts = reference::parts(description);
        let guides = guides::all();
        let link = |guide: &Guide| (guide.path.clone(), guide.index_title.clone());
        let first = (INDEX.to_owned(), "Contents".to_owned());
        let of_api = parts.iter().map(|part| (part.path.clone(), part.title.clone()));
        let listed = guides.iter().filter(|guide| guide.name != guides::INDEX);
        let contents = vec![
            ContentsGroup {
                title: "API".to_owned(),
                links: std::iter::once(first).chain(of_api).collect(),
            },
            ContentsGroup {
                title: "Guides".to_owned(),
                links: listed.map(link).collect(),
            },
        ];
        Self {
            guides,
            parts,
            contents,
        }
    }

    fn guide(&self, path: &str) -> Option<&Guide> {
        self.guides.iter().find(|guide| guide.path == path)
    }

    fn page(&self, path: &str) -> Option<DocsData> {
        let page = DocsData {
            path: path.to_owned(),
            contents: self.contents.clone(),
            ..DocsData::default()
        };
        if let Some(part) = self.parts.iter().find(|part| part.path == path) {
            return Some(DocsData {
                title: format!("API: {}", part.title),
                lead: Some(part.lead.clone()),
                parts: vec![part.clone()],
                ..page
            });
        }
        let guide = self.guide(path)?;
        let html = guide.html.clone();
        if path == INDEX {
            return Some(DocsData {
                title: "Documentation".to_owned(),
                html,
                parts: self.parts.iter().map(listed).collect(),
                ..page
            });
        }
        Some(DocsData {
            title: guide.title.clone(),
            html,
            ..page
        })
    }
}

/// As the index lists a part.
fn listed(part: &ApiPart) -> ApiPart {
    ApiPart {
        operations: part.operations.iter().map(Operation::listed).collect(),
        ..part.clone()
    }
}

impl DocsPort for CallerData {
    fn docs(&self, path: String) -> ConsoleFuture<'_, DocsData> {
        Box::pin(ready(data(&path)))
    }
}

/// # Errors
/// No page has this path.
fn data(path: &str) -> Result<DocsData, ConsoleError> {
    LIBRARY.page(path).ok_or_else(|| ConsoleError::NotFound {
        what: "The documentation has no such page. Its contents are under /docs.".to_owned(),
    })
}

#[cfg(test)]
mod tests;
