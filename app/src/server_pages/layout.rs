//! Layout of server pages for signed-in users: the navigation bar, and the sections of the
//! settings. Without the parts that need hydration: live status, keyboard shortcuts.

use domain::alerts::OVERDUE;
use leptos::prelude::*;

use super::html_document::document_with;
use crate::components::nav::ThemeSwitch;

/// The current section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageSection {
    Locks,
    Contention,
    Fencing,
    Alerts,
    Audit,
    Settings(Section),
    Docs,
    /// No link leads here: a page that the user may not open.
    Elsewhere,
}

/// One page of the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    You,
    Users,
    Tokens,
    Sessions,
    Roles,
    ProtectedPrefixes,
    Receivers,
}

impl Section {
    const ALL: [Self; 7] = [
        Self::You,
        Self::Users,
        Self::Tokens,
        Self::Sessions,
        Self::ProtectedPrefixes,
        Self::Receivers,
        Self::Roles,
    ];

    pub const fn path(self) -> &'static str {
        match self {
            Self::You => "/settings",
            Self::Users => "/settings/users",
            Self::Tokens => "/settings/tokens",
            Self::Sessions => "/settings/sessions",
            Self::Roles => "/settings/roles",
            Self::ProtectedPrefixes => "/settings/protected-prefixes",
            Self::Receivers => "/alerts/receivers",
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::You => "You",
            Self::Users => "Users",
            Self::Tokens => "Tokens",
            Self::Sessions => "Sessions",
            Self::Roles => "Roles",
            Self::ProtectedPrefixes => "Protected prefixes",
            Self::Receivers => "Receivers",
        }
    }

    /// Changes require a recent sign-in.
    pub const fn asks_for_fresh(self) -> bool {
        matches!(
            self,
            Self::Users | Self::Tokens | Self::ProtectedPrefixes | Self::Receivers
        )
    }

    /// For administrators only.
    const fn is_guarded(self) -> bool {
        !matches!(self, Self::You | Self::Roles)
    }
}

/// User and current location.
#[derive(Debug, Clone)]
pub struct Chrome {
    pub name: String,
    pub is_admin: bool,
    /// May read at least some audit entries.
    pub may_audit: bool,
    pub place: PageSection,
    /// The console is read-only.
    pub is_read_only: bool,
    /// No server evaluates the alert rules.
    pub is_alerts_overdue: bool,
    /// URL for signing in again, on pages whose changes would otherwise be refused now.
    pub prove: Option<String>,
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
    page_under(chrome, &title, head.into_any(), content)
}

/// A page with a custom header.
pub(super) fn page_under(chrome: &Chrome, title: &str, head: AnyView, content: AnyView) -> String {
    let read_only = chrome.is_read_only.then(|| {
        view! {
            <p class="notice warning" role="status">"The console is read-only: locks cannot be released until an admin turns this off."</p>
        }
    });
    let overdue = chrome
        .is_alerts_overdue
        .then(|| view! { <p class="notice critical" role="alert">{OVERDUE}</p> });
    let stale = chrome.prove.clone().map(|href| {
        view! {
            <p class="notice" role="status">"Changes here need authentication within the last 15 minutes. "<a class="link" href=href>"Authenticate again"</a></p>
        }
    });
    let body = match chrome.place {
        PageSection::Locks
        | PageSection::Contention
        | PageSection::Fencing
        | PageSection::Alerts
        | PageSection::Audit
        | PageSection::Docs
        | PageSection::Elsewhere => content,
        PageSection::Settings(here) => view! {
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

/// URL path, label and section, in the order of the bar.
const PAGES: [(&str, &str, Option<PageSection>); 7] = [
    ("/", "Overview", None),
    ("/locks", "Locks", Some(PageSection::Locks)),
    ("/contention", "Contention", Some(PageSection::Contention)),
    ("/fencing", "Fencing", Some(PageSection::Fencing)),
    ("/backends", "Backends", None),
    ("/alerts", "Alerts", Some(PageSection::Alerts)),
    ("/audit", "Audit", Some(PageSection::Audit)),
];
/// Bottom navigation of a phone; the others are behind `More`.
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
    let here = matches!(chrome.place, PageSection::Settings(_)).then_some("page");
    let reads = (chrome.place == PageSection::Docs).then_some("page");
    view! {
        <a href="/settings" aria-current=here>"Settings"</a>
        <a href="/docs" aria-current=reads>"Docs"</a>
    }
    .into_any()
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
