//! Documentation inside the console: guides for operators and the API reference, each page with
//! the list of all pages.

pub mod operation;

use leptos::prelude::*;
use leptos_router::hooks::use_location;

use self::operation::{inline, operation};
use crate::api::docs::docs;
use crate::components::load_boundary::LoadBoundary;
use crate::components::reactive::changing;
use crate::components::title::PageTitle;
use crate::live::topics::Topics;
use crate::live::use_live;
use crate::page_data::docs::{ApiPart, ContentsGroup, DocsData};

const INDEX: &str = "/docs";

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
