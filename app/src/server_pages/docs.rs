//! Documentation inside the console: guides for operators and the API reference, each page with
//! the list of all pages.

pub mod operation;

use leptos::prelude::*;

use self::operation::{Operation, operation};
use crate::server_pages::layout::{Chrome, Page, PageSection, page};

/// Navigation of every page.
#[derive(Debug, Clone, Default)]
pub struct Contents {
    pub groups: Vec<Group>,
}

#[derive(Debug, Clone)]
pub struct Group {
    pub title: &'static str,
    /// URL path and label.
    pub links: Vec<(String, String)>,
}

/// A part of the API with its operations.
#[derive(Debug, Clone)]
pub struct Part {
    pub path: String,
    pub title: String,
    pub lead: String,
    pub operations: Vec<Operation>,
}

/// Index page: introduction and a list of all operations.
pub fn index(chrome: &Chrome, contents: &Contents, html: &str, parts: &[Part]) -> String {
    let lists = parts.iter().map(|part| {
        let rows = part.operations.iter().map(|one| {
            let link = format!("{}#{}", part.path, one.id);
            view! {
                <tr>
                    <td class="op-m">{one.method.clone()}</td>
                    <td><a class="link" href=link><code>{one.path.clone()}</code></a></td>
                    <td class="wrap">{operation::inline(&one.summary)}</td>
                </tr>
            }
        });
        view! {
            <h3>{part.title.clone()}</h3>
            <div class="scroll"><table class="t st-table op-list"><tbody>{rows.collect_view()}</tbody></table></div>
        }
    });
    let content = view! {
        <div inner_html=html.to_owned()></div>
        <h2 id="api">"API reference"</h2>
        <p>"Made from the description that this server gives of itself at "<a class="link" href="/v1/openapi.json">"/v1/openapi.json"</a>"."</p>
        {lists.collect_view()}
    };
    around(
        chrome,
        contents,
        "/docs",
        "Documentation",
        None,
        content.into_any(),
    )
}

/// A guide, rendered from Markdown by the server.
pub fn guide(chrome: &Chrome, contents: &Contents, here: &str, title: &str, html: String) -> String {
    let content = view! { <div inner_html=html></div> };
    around(chrome, contents, here, title, None, content.into_any())
}

/// One part of the API.
pub fn reference(chrome: &Chrome, contents: &Contents, part: &Part) -> String {
    let title = format!("API: {}", part.title);
    let lead = Some(part.lead.clone());
    let content = part.operations.iter().map(operation).collect_view();
    around(chrome, contents, &part.path, &title, lead, content.into_any())
}

fn around(
    chrome: &Chrome,
    contents: &Contents,
    here: &str,
    title: &str,
    lead: Option<String>,
    content: AnyView,
) -> String {
    let groups = contents.groups.iter().map(|group| {
        let links = group.links.iter().map(|(path, word)| {
            let current = (path == here).then_some("page");
            view! { <li><a href=path.clone() aria-current=current>{word.clone()}</a></li> }
        });
        view! { <h2 class="not-narrow">{group.title}</h2><ul>{links.collect_view()}</ul> }
    });
    let chrome = Chrome {
        place: PageSection::Docs,
        ..chrome.clone()
    };
    let content = view! {
        <div class="settings doc-two">
            <nav class="sections" aria-label="documentation">{groups.collect_view()}</nav>
            <article class="doc">{content}</article>
        </div>
    };
    let page_of = Page {
        title: title.to_owned(),
        lead,
        content: content.into_any(),
    };
    page(&chrome, page_of)
}
