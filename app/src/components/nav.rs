//! Header: pages from the navigation table, search, theme switch, account.

use domain::format;
use leptos::prelude::*;
use leptos_router::hooks::use_location;

use super::search_box::SearchBox;
use super::state_badge::Shape;
use crate::components::reactive::changing;
use crate::keyboard_shortcuts::KeysOpen;
use crate::live::use_live;
use crate::navigation::{NavCount, NavEntry, current_page};
use crate::pages::PAGES;
use crate::session::use_session;

/// The page of the navigation that is open.
#[derive(Clone, Copy)]
pub struct CurrentPage(Memo<Option<&'static NavEntry>>);

impl CurrentPage {
    pub fn now() -> Self {
        let path = use_location().pathname;
        Self(Memo::new(move |_| path.with(|path| current_page(path))))
    }
}

/// One link of the navigation; nothing without its permission.
pub fn nav_link(entry: &'static NavEntry, here: CurrentPage, is_shortcut_target: bool) -> AnyView {
    let may = |permission| use_session().with_untracked(|session| session.may(permission));
    if !entry.permission.is_none_or(may) {
        return ().into_any();
    }
    let current = move || (here.0.get() == Some(entry)).then_some("page");
    let key = is_shortcut_target.then(|| entry.shortcut.to_string());
    view! { <a href=entry.path data-g=key aria-current=current>{entry.label}{count(entry)}</a> }.into_any()
}

fn count(entry: &'static NavEntry) -> Option<AnyView> {
    let (live, session) = (use_live(), use_session());
    let kind = entry.count?;
    let shown = move || match kind {
        NavCount::Locks => live.held_total(),
        NavCount::FiringGroups => Some(u64::from(session.firing_groups())).filter(|groups| *groups > 0),
    };
    let meaning = match kind {
        NavCount::Locks => "held",
        NavCount::FiringGroups => "firing groups",
    };
    let view = changing(move || {
        let total = format::count(shown()?);
        Some(view! { " "<span title=meaning>{total}</span> }.into_any())
    });
    Some(view.into_any())
}

#[component]
pub fn Brand() -> impl IntoView {
    view! {
        <a class="brand" href="/">
            <svg viewBox="0 0 16 16" aria-hidden="true"><path d="M1 3h14v3H1zM1 8.5h9v1.5H1zM1 12h5v1.5H1z" fill="currentColor"></path></svg>
            "Leasehold"
        </a>
    }
}

#[component]
pub fn Nav() -> impl IntoView {
    let current_page = CurrentPage::now();
    let pages = PAGES
        .iter()
        .map(|entry| nav_link(entry, current_page, true))
        .collect_view();
    view! {
        <header class="bar">
            <Brand/>
            <nav aria-label="pages">{pages}</nav>
            <div class="end">
                <SearchBox/>
                <KeysOpen/>
                <ThemeSwitch/>
                <Account/>
            </div>
        </header>
    }
    .into_any()
}

/// The account menu. Opens without a script.
#[component]
fn Account() -> impl IntoView {
    let session = use_session();
    let user = session.with_untracked(|session| session.user.clone());
    user.map(|name| {
        view! {
            <button class="icon account" type="button" popovertarget="account" aria-label="Your account" title="Your account">
                <Shape name="user"/>
            </button>
            <div popover id="account" role="dialog" aria-label="Your account">
                <p>"Signed in as "<b>{name}</b></p>
                <a class="link" href="/settings">"Your settings"</a>
                <form method="post" action="/sign-out"><button class="btn s" r#type="submit">"Sign out"</button></form>
            </div>
        }
        .into_any()
    })
}

/// Its script is in the head of every page: see [`crate::app::THEME`].
#[component]
pub(crate) fn ThemeSwitch() -> impl IntoView {
    view! {
        <button class="icon turn" type="button" aria-label="Switch between light and dark" title="Light or dark">
            <Shape name="theme"/>
        </button>
    }
}
