//! Layout of server pages for signed-in users: the navigation bar. Without the parts that need
//! hydration: live status, keyboard shortcuts.

use domain::alerts::OVERDUE;
use leptos::prelude::*;

use super::html_document::document_with;
use crate::components::nav::ThemeSwitch;

/// Facts about the user and the console.
#[derive(Debug, Clone)]
pub struct Chrome {
    pub name: String,
    /// May read at least some audit entries.
    pub may_audit: bool,
    /// The console is read-only.
    pub is_read_only: bool,
    /// No server evaluates the alert rules.
    pub is_alerts_overdue: bool,
}

/// A page with its heading.
pub struct Page {
    pub title: String,
    pub lead: Option<String>,
    pub content: AnyView,
}

/// Rendered on the server only.
pub fn page(chrome: &Chrome, page: Page) -> String {
    let Page { title, lead, content } = page;
    let lead = lead.map(|lead| view! { <p>{lead}</p> });
    let head = view! { <div class="pagehead"><div><h1>{title.clone()}</h1>{lead}</div></div> };
    let read_only = chrome.is_read_only.then(|| {
        view! {
            <p class="notice warning" role="status">"The console is read-only: locks cannot be released until an admin turns this off."</p>
        }
    });
    let overdue = chrome
        .is_alerts_overdue
        .then(|| view! { <p class="notice critical" role="alert">{OVERDUE}</p> });
    let main = view! {
        {bar(chrome)}
        <main id="main">
            {head}
            {overdue}
            {read_only}
            {content}
        </main>
        {tabs(chrome)}
    };
    document_with(&title, main.into_any())
}

/// URL path and label, in the order of the bar.
const PAGES: [(&str, &str); 7] = [
    ("/", "Overview"),
    ("/locks", "Locks"),
    ("/contention", "Contention"),
    ("/fencing", "Fencing"),
    ("/backends", "Backends"),
    ("/alerts", "Alerts"),
    ("/audit", "Audit"),
];
/// Bottom navigation of a phone; the others are behind `More`.
const TABS: [&str; 4] = ["/", "/locks", "/backends", "/alerts"];

fn links(chrome: &Chrome, is_shown: impl Fn(&str) -> bool) -> AnyView {
    let may_see = |path: &str| path != "/audit" || chrome.may_audit;
    let pages = PAGES
        .into_iter()
        .filter(|(path, _)| may_see(path) && is_shown(path));
    let pages = pages.map(|(path, word)| view! { <a href=path>{word}</a> }.into_any());
    pages.collect_view().into_any()
}

fn settings() -> AnyView {
    view! { <a href="/settings">"Settings"</a><a href="/docs">"Docs"</a> }.into_any()
}

/// As on hydrated pages.
fn search() -> AnyView {
    view! {
        <div role="search" aria-label="everything">
            <form method="get" action="/locks">
                <label class="find">
                    <span class="sr">"Find a lock or owner"</span>
                    <input type="search" name="q" placeholder="Find a lock or owner" autocomplete="off" spellcheck="false"/>
                </label>
            </form>
        </div>
    }
    .into_any()
}

fn bar(chrome: &Chrome) -> AnyView {
    view! {
        <a class="skip" href="#main">"Skip to content"</a>
        <header class="bar">
            <a class="brand" href="/">
                <svg viewBox="0 0 16 16" aria-hidden="true"><path d="M1 3h14v3H1zM1 8.5h9v1.5H1zM1 12h5v1.5H1z" fill="currentColor"></path></svg>
                "Leasehold"
            </a>
            <nav aria-label="pages">{links(chrome, |_| true)}{settings()}</nav>
            <div class="end">
                {search()}
                <ThemeSwitch/>
                <a class="who" href="/settings">{chrome.name.clone()}</a>
                <form method="post" action="/sign-out"><button class="btn plain s" r#type="submit">"Sign out"</button></form>
            </div>
        </header>
    }
    .into_any()
}

fn tabs(chrome: &Chrome) -> AnyView {
    let is_tab = |path: &str| TABS.contains(&path);
    view! {
        <nav class="tabs" aria-label="pages, below">
            {links(chrome, is_tab)}
            <button type="button" popovertarget="more">"More"</button>
            <div popover id="more">{links(chrome, |path| !is_tab(path))}{settings()}</div>
        </nav>
    }
    .into_any()
}
