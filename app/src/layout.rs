//! Layout of every page: header, notices, content, phone tabs, keyboard shortcuts.

use domain::alerts::OVERDUE;
use leptos::prelude::*;
use leptos_router::hooks::use_location;

use crate::components::bottom_nav::Tabs;
use crate::components::nav::{Brand, Nav, ThemeSwitch};
use crate::components::reactive::changing;
use crate::components::toast::ToastMessage;
use crate::keyboard_shortcuts::Keys;
use crate::links;
use crate::navigation::current_section;
use crate::pages::SETTINGS;
use crate::session::use_session;

#[component]
pub fn Layout(children: Children) -> impl IntoView {
    let is_signed_in = use_session().with_untracked(|session| session.is_signed_in());
    let (header, tabs) = if is_signed_in {
        (view! { <Nav/> }.into_any(), view! { <Tabs/><Keys/> }.into_any())
    } else {
        // Without a session the header has only the product name and the theme switch.
        let bar = view! { <header class="bar"><Brand/><div class="end"><ThemeSwitch/></div></header> };
        (bar.into_any(), ().into_any())
    };
    view! {
        <a class="skip" href="#main" rel="external">"Skip to content"</a>
        {header}
        <main id="main" tabindex="-1">
            <Notices/>
            <ToastMessage/>
            {children()}
        </main>
        {tabs}
    }
    .into_any()
}

/// Notices on every page: alert rules that are not evaluated, and read-only mode.
#[component]
fn Notices() -> impl IntoView {
    let session = use_session();
    let overdue = Memo::new(move |_| session.with(|session| session.is_alerts_overdue));
    let read_only = Memo::new(move |_| session.with(|session| session.is_read_only));
    let overdue = changing(move || {
        overdue.get().then(|| {
            view! { <p class="notice critical alerts-overdue" role="alert">{OVERDUE}</p> }.into_any()
        })
    });
    let read_only = changing(move || {
        let text =
            "The console is read-only: locks cannot be released until an admin turns read-only mode off.";
        read_only
            .get()
            .then(|| view! { <p class="notice warning" role="status">{text}</p> }.into_any())
    });
    view! { {overdue}{read_only} }.into_any()
}

/// Layout of the settings: its sections, and the notice that changes need authentication.
#[component]
pub fn SettingsLayout(children: Children) -> impl IntoView {
    let path = use_location().pathname;
    let current_section = Memo::new(move |_| path.with(|path| current_section(path)));
    let session = use_session();
    let links = SETTINGS.iter().filter(move |entry| {
        let may = |permission| session.with_untracked(|session| session.may(permission));
        entry.permission.is_none_or(may)
    });
    let links = links.map(|entry| {
        let current = move || (current_section.get() == Some(entry)).then_some("page");
        view! { <li><a href=entry.path aria-current=current>{entry.label}</a></li> }.into_any()
    });
    let stale = changing(move || {
        let section = current_section.get().filter(|section| section.needs_fresh)?;
        session.with(|session| session.needs_authentication).then(|| {
            let href = links::with_query("/prove", [("next", section.path)]);
            view! {
                <p class="notice" role="status"><span>"Changes here need authentication within the last 15 minutes. "<a class="link" href=href>"Authenticate again"</a></span></p>
            }
            .into_any()
        })
    });
    view! {
        <div class="settings">
            <nav class="sections" aria-label="settings"><ul>{links.collect_view()}<li><a href="/docs">"Documentation"</a></li></ul></nav>
            <div class="stack">{stale}{children()}</div>
        </div>
    }
    .into_any()
}
