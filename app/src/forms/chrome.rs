//! What stands around a form of somebody who is signed in: the same bar as on every page, and the sections of the
//! settings. Deliberately without what needs the browser half: the live figure, the keys.

use domain::alerts::OVERDUE;
use leptos::prelude::*;

use super::document::document_with;
use crate::components::nav::ThemeSwitch;

/// Where one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Locks,
    Contention,
    Fencing,
    Alerts,
    Audit,
    Settings(Section),
    Docs,
    /// Where none of the links leads: a page that who looks may not open.
    Elsewhere,
}

/// One page of the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    You,
    People,
    Tokens,
    Sessions,
    Roles,
    Tiers,
    Receivers,
}

impl Section {
    const ALL: [Self; 7] = [
        Self::You,
        Self::People,
        Self::Tokens,
        Self::Sessions,
        Self::Tiers,
        Self::Receivers,
        Self::Roles,
    ];

    pub const fn path(self) -> &'static str {
        match self {
            Self::You => "/settings",
            Self::People => "/settings/people",
            Self::Tokens => "/settings/tokens",
            Self::Sessions => "/settings/sessions",
            Self::Roles => "/settings/roles",
            Self::Tiers => "/settings/tiers",
            Self::Receivers => "/alerts/receivers",
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::You => "You",
            Self::People => "People",
            Self::Tokens => "Tokens",
            Self::Sessions => "Sessions",
            Self::Roles => "Roles",
            Self::Tiers => "Tiers",
            Self::Receivers => "Receivers",
        }
    }

    /// Changes there need fresh authentication.
    pub const fn asks_for_fresh(self) -> bool {
        matches!(self, Self::People | Self::Tokens | Self::Tiers | Self::Receivers)
    }

    /// Only for those who administer.
    const fn is_guarded(self) -> bool {
        !matches!(self, Self::You | Self::Roles)
    }
}

/// Who looks, and where.
#[derive(Debug, Clone)]
pub struct Chrome {
    pub name: String,
    pub is_admin: bool,
    /// Some of the audit record at least.
    pub may_audit: bool,
    pub place: Place,
    /// Nobody may change anything for now.
    pub is_read_only: bool,
    /// No server evaluates the alert rules.
    pub is_alerts_overdue: bool,
    /// Where to authenticate again, on pages whose changes ask for it and would be refused now.
    pub prove: Option<String>,
}

/// A whole page with its heading, which is a finding and not a label.
pub struct Page {
    pub title: String,
    pub lead: Option<String>,
    pub content: AnyView,
}

/// Made on the server only.
pub fn page(chrome: &Chrome, page: Page) -> String {
    let Page { title, lead, content } = page;
    let lead = lead.map(|lead| view! { <p>{lead}</p> });
    let head = view! { <div class="pagehead"><div><h1>{title.clone()}</h1>{lead}</div></div> };
    page_under(chrome, &title, head.into_any(), content)
}

/// A whole page under a head of its own.
pub(super) fn page_under(chrome: &Chrome, title: &str, head: AnyView, content: AnyView) -> String {
    let read_only = chrome.is_read_only.then(|| {
        view! {
            <p class="notice warning" role="status">"The console is read-only: nobody can release a lock until an admin says otherwise."</p>
        }
    });
    let overdue = chrome
        .is_alerts_overdue
        .then(|| view! { <p class="notice critical" role="alert">{OVERDUE}</p> });
    let stale = chrome.prove.clone().map(|href| {
        view! {
            <p class="notice" role="status">"Changes here need authentication within the last 15 minutes. "<a class="link" href=href>"Prove who you are"</a></p>
        }
    });
    let body = match chrome.place {
        Place::Locks
        | Place::Contention
        | Place::Fencing
        | Place::Alerts
        | Place::Audit
        | Place::Docs
        | Place::Elsewhere => content,
        Place::Settings(here) => view! {
            <div class="settings">
                {sections(chrome, here)}
                <div class="stack">{content}</div>
            </div>
        }
        .into_any(),
    };
    let main = view! {
        {bar(chrome)}
        <main id="main">
            {head}
            {overdue}
            {read_only}
            {stale}
            {body}
        </main>
        {tabs(chrome)}
    };
    document_with(title, main.into_any())
}

/// Path, word, and where one is there. In the bar in this order.
const PAGES: [(&str, &str, Option<Place>); 7] = [
    ("/", "Overview", None),
    ("/locks", "Locks", Some(Place::Locks)),
    ("/contention", "Contention", Some(Place::Contention)),
    ("/fencing", "Fencing", Some(Place::Fencing)),
    ("/backends", "Backends", None),
    ("/alerts", "Alerts", Some(Place::Alerts)),
    ("/audit", "Audit", Some(Place::Audit)),
];
/// What a phone has under the thumb; the others are behind `More`.
const TABS: [&str; 4] = ["/", "/locks", "/backends", "/alerts"];

fn links(chrome: &Chrome, is_shown: impl Fn(&str) -> bool) -> AnyView {
    let may_see = |path: &str| path != "/audit" || chrome.may_audit;
    let pages = PAGES
        .into_iter()
        .filter(|(path, ..)| may_see(path) && is_shown(path));
    let pages = pages.map(|(path, word, place)| {
        let here = (place == Some(chrome.place)).then_some("page");
        view! { <a href=path aria-current=here>{word}</a> }
    });
    pages.collect_view().into_any()
}

fn settings(chrome: &Chrome) -> AnyView {
    let here = matches!(chrome.place, Place::Settings(_)).then_some("page");
    let reads = (chrome.place == Place::Docs).then_some("page");
    view! {
        <a href="/settings" aria-current=here>"Settings"</a>
        <a href="/docs" aria-current=reads>"Docs"</a>
    }
    .into_any()
}

/// As on the pages with the browser half.
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
        <a class="skip" href="#main">"Skip to the page"</a>
        <header class="bar">
            <a class="brand" href="/">
                <svg viewBox="0 0 16 16" aria-hidden="true"><path d="M1 3h14v3H1zM1 8.5h9v1.5H1zM1 12h5v1.5H1z" fill="currentColor"></path></svg>
                "Leasehold"
            </a>
            <nav aria-label="pages">{links(chrome, |_| true)}{settings(chrome)}</nav>
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
            <div popover id="more">{links(chrome, |path| !is_tab(path))}{settings(chrome)}</div>
        </nav>
    }
    .into_any()
}

fn sections(chrome: &Chrome, here: Section) -> AnyView {
    let shown = Section::ALL
        .into_iter()
        .filter(|section| chrome.is_admin || !section.is_guarded());
    let links = shown.map(|section| {
        let current = (section == here).then_some("page");
        view! { <li><a href=section.path() aria-current=current>{section.word()}</a></li> }
    });
    view! { <nav class="sections" aria-label="settings"><ul>{links.collect_view()}<li><a href="/docs">"Documentation"</a></li></ul></nav> }.into_any()
}
