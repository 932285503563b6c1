//! Top bar: current page, navigation, search, theme switch.

use domain::format;
use leptos::prelude::*;
use leptos_router::hooks::use_location;

use super::search_box::SearchBox;
use super::state_badge::Shape;
use crate::components::reactive::changing;
use crate::keyboard_shortcuts::KeysOpen;
use crate::live::use_live;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NavItem {
    Overview,
    Locks,
    Backends,
}

/// The open page, for `aria-current`.
#[derive(Clone, Copy)]
pub struct Here(Memo<String>);

impl Here {
    pub fn now() -> Self {
        Self(use_location().pathname)
    }

    pub fn is(self, place: NavItem) -> impl Fn() -> Option<&'static str> + Clone {
        move || {
            let path = self.0.get();
            let found = match place {
                NavItem::Overview => path == "/",
                NavItem::Locks => path == "/locks" || path.starts_with("/locks/"),
                NavItem::Backends => path == "/backends",
            };
            found.then_some("page")
        }
    }
}

/// Server pages. Constant texts, which are much smaller than the code of components; `data-g`
/// is for keyboard shortcuts.
const PATTERNS: &str = "<a href=\"/contention\" rel=\"external\" data-g=\"c\">Contention</a>\
    <a href=\"/fencing\" rel=\"external\" data-g=\"f\">Fencing</a>";
/// The audit link is shown to users who may read entries.
const ACTS: &str = "<a href=\"/alerts\" rel=\"external\" data-g=\"a\">Alerts</a>\
    <a href=\"/audit\" rel=\"external\" class=\"may-audit\">Audit</a>\
    <a href=\"/settings\" rel=\"external\" data-g=\"s\">Settings</a>\
    <a href=\"/docs\" rel=\"external\">Docs</a>";

#[component]
pub fn Nav() -> impl IntoView {
    let here = Here::now();
    let live = use_live();
    let held = move || {
        live.held_total()
            .map(|total| view! { <span>{format::count(total)}</span> }.into_any())
    };
    view! {
        <header class="bar">
            <a class="brand" href="/">
                <svg viewBox="0 0 16 16" aria-hidden="true"><path d="M1 3h14v3H1zM1 8.5h9v1.5H1zM1 12h5v1.5H1z" fill="currentColor"></path></svg>
                "Leasehold"
            </a>
            <nav aria-label="pages">
                <a href="/" data-g="o" aria-current=here.is(NavItem::Overview)>"Overview"</a>
                <a href="/locks" data-g="l" aria-current=here.is(NavItem::Locks)>"Locks "{changing(held)}</a>
                <div inner_html=PATTERNS></div>
                <a href="/backends" data-g="b" aria-current=here.is(NavItem::Backends)>"Backends"</a>
                <div inner_html=ACTS></div>
            </nav>
            <div class="end">
                <SearchBox/>
                <KeysOpen/>
                <ThemeSwitch/>
                // The account menu is outside the app: the browser's code does not need the
                // user.
                <button class="icon account" type="button" popovertarget="account" aria-label="Your account" title="Your account">
                    <Shape name="user"/>
                </button>
            </div>
        </header>
    }
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
