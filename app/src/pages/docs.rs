//! Documentation inside the console: guides for operators and the API reference, each page with
//! the list of all pages.

pub mod operation;

use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use leptos_router::hooks::use_location;
use serde::{Deserialize, Serialize};

use self::operation::{inline, operation};
use crate::api::codec::EncodedResponse;
use crate::api::error::ApiError;
use crate::components::load_boundary::LoadBoundary;
use crate::components::reactive::changing;
use crate::components::title::PageTitle;
use crate::console::ConsoleFuture;
use crate::live::topics::Topics;
use crate::live::use_live;

const INDEX: &str = "/docs";

/// `/docs`, `/docs/{page}`, `/docs/api/{part}`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocsData {
    /// Path of this page.
    pub path: String,
    pub title: String,
    pub lead: Option<String>,
    /// A guide, rendered from the Markdown of this build; empty for the reference.
    pub html: String,
    /// The index lists every part, a page of the reference has one, a guide none.
    pub parts: Vec<ApiPart>,
    /// Navigation of every page.
    pub contents: Vec<ContentsGroup>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentsGroup {
    pub title: String,
    /// URL path and label.
    pub links: Vec<(String, String)>,
}

/// A part of the API with its operations.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiPart {
    pub path: String,
    pub title: String,
    pub lead: String,
    pub operations: Vec<Operation>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// Its anchor.
    pub id: String,
    pub method: String,
    pub path: String,
    pub summary: String,
    pub text: String,
    pub needs: String,
    pub parameters: Vec<ParameterRow>,
    pub body: Vec<ParameterRow>,
    pub answers: Vec<ResponseExample>,
    pub curl: String,
}

impl Operation {
    /// What the index shows of it.
    #[must_use]
    pub fn listed(&self) -> Self {
        Self {
            id: self.id.clone(),
            method: self.method.clone(),
            path: self.path.clone(),
            summary: self.summary.clone(),
            ..Self::default()
        }
    }
}

/// A parameter or a field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParameterRow {
    pub name: String,
    /// `path`, `query`, `header`; empty for fields.
    pub location: String,
    pub kind: String,
    pub is_required: bool,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResponseExample {
    pub status: String,
    pub text: String,
    /// Empty for problems, which share one format.
    pub rows: Vec<ParameterRow>,
}

/// Port: the server implements it, for the caller of a request.
pub trait DocsPort {
    /// `path` is the path of the page.
    fn docs(&self, path: String) -> ConsoleFuture<'_, DocsData>;
}

/// `path` is the path of the page.
#[server(name = GetDocs, prefix = "/api", endpoint = "docs", input = GetUrl, output = EncodedResponse)]
pub async fn docs(path: String) -> Result<DocsData, ApiError> {
    let context = crate::api::error::from_context()?;
    context.set_status(context.pages()?.docs(path).await)
}

/// Serves every path below `/docs`. Its data belongs to the build and never changes.
#[component]
pub fn DocsPage() -> impl IntoView {
    let path = use_location().pathname;
    // During navigation the page outlives its URL for a moment.
    let path = Memo::new(move |before: Option<&String>| {
        let path = path.get();
        match before {
            Some(before) if !path.starts_with(INDEX) => before.clone(),
            _ => path,
        }
    });
    let load = use_live().refreshing(Topics::NONE, move || path.get(), docs);
    view! {
        <div class="page">
            <LoadBoundary load let:data>
                <Body data/>
            </LoadBoundary>
        </div>
    }
}

#[component]
fn Body(data: Signal<DocsData>) -> impl IntoView {
    let title = Memo::new(move |_| data.with(|data| data.title.clone()));
    let lead = move || {
        data.with(|data| data.lead.clone())
            .map(|lead| view! { <p>{lead}</p> }.into_any())
    };
    view! {
        <PageTitle text=move || title.get()/>
        <div class="pagehead"><h1>{move || title.get()}</h1>{changing(lead)}</div>
        <div class="settings doc-two">
            <nav class="sections" aria-label="documentation">{changing(move || data.with(|data| contents(&data.contents, &data.path)))}</nav>
            <article class="doc">{changing(move || data.with(content))}</article>
        </div>
    }
    .into_any()
}

fn contents(groups: &[ContentsGroup], here: &str) -> AnyView {
    let groups = groups.iter().map(|group| {
        let links = group.links.iter().map(|(path, label)| {
            let current = (path == here).then_some("page");
            view! { <li><a href=path.clone() aria-current=current>{label.clone()}</a></li> }.into_any()
        });
        view! { <h2 class="not-narrow">{group.title.clone()}</h2><ul>{links.collect_view()}</ul> }.into_any()
    });
    groups.collect_view().into_any()
}

fn content(data: &DocsData) -> AnyView {
    let guide =
        (!data.html.is_empty()).then(|| view! { <div inner_html=data.html.clone()></div> }.into_any());
    let reference = if data.path == INDEX {
        index(&data.parts)
    } else {
        let operations = data.parts.iter().flat_map(|part| &part.operations);
        operations.map(operation).collect_view().into_any()
    };
    view! { {guide}{reference} }.into_any()
}

/// All operations of the API.
fn index(parts: &[ApiPart]) -> AnyView {
    let lists = parts.iter().map(|part| {
        let rows = part.operations.iter().map(|operation| {
            let link = format!("{}#{}", part.path, operation.id);
            view! {
                <tr>
                    <td class="op-m">{operation.method.clone()}</td>
                    <td><a class="link" href=link><code>{operation.path.clone()}</code></a></td>
                    <td class="wrap">{inline(&operation.summary)}</td>
                </tr>
            }
            .into_any()
        });
        view! {
            <h3>{part.title.clone()}</h3>
            <div class="scroll"><table class="t st-table"><tbody>{rows.collect_view()}</tbody></table></div>
        }
        .into_any()
    });
    view! {
        <h2 id="api">"API reference"</h2>
        <p>"Generated from the description that the server serves at "<a class="link" href="/v1/openapi.json" rel="external">"/v1/openapi.json"</a>"."</p>
        {lists.collect_view()}
    }
    .into_any()
}
