//! Shell of every page: document, head, routes and shared parts.

use domain::alerts::OVERDUE;
use leptos::prelude::*;
use leptos_meta::{MetaTags, provide_meta_context};
use leptos_router::components::{FlatRoutes, Route, Router};
use leptos_router::{SsrMode, path};

use crate::api::error::set_status;
use crate::components::bottom_nav::Tabs;
use crate::components::empty_state::Empty;
use crate::components::nav::Nav;
use crate::components::title::{PageTitle, TitleFormat};
use crate::keyboard_shortcuts::{Keys, KeysDialog};
use crate::live::Live;
use crate::pages::backends::BackendsPage;
use crate::pages::lock::LockPage;
use crate::pages::locks::LocksPage;
use crate::pages::overview::OverviewPage;

/// Sets the theme before the first paint, and handles `.turn` with and without hydration. If
/// storage is refused, the choice lasts for the page. The only inline script; the content
/// security policy allows it by its hash.
pub const THEME: &str = "{const r=document.documentElement,k='theme';let t=null;\
    try{t=localStorage.getItem(k)}catch{}if(t)r.dataset.theme=t;\
    addEventListener('click',e=>{if(!e.target.closest('.turn'))return;\
    t=r.dataset.theme||(matchMedia('(prefers-color-scheme: dark)').matches?'dark':'light');\
    r.dataset.theme=t=t=='dark'?'light':'dark';try{localStorage.setItem(k,t)}catch{}})}";

/// Shapes and hatches, once per document, outside the hydrated tree.
pub(crate) const SPRITE: &str = include_str!("components/sprite.svg");

/// Server context: the user may read audit entries, so the link is shown.
#[derive(Debug, Clone, Copy)]
pub struct MayAudit;

/// Server context: no server evaluates the alert rules.
#[derive(Debug, Clone, Copy)]
pub struct AlertsOverdue;

/// Server context: the signed-in user's name, for the account menu.
#[derive(Debug, Clone)]
pub struct WhoLooks(pub String);

/// Opened by the button in the bar, without script.
fn account(WhoLooks(name): WhoLooks) -> AnyView {
    view! {
        <div popover id="account" role="dialog" aria-label="Your account">
            <p>"Signed in as "<b>{name}</b></p>
            <a class="link" href="/settings">"Your settings"</a>
            <form method="post" action="/sign-out"><button class="btn s" r#type="submit">"Sign out"</button></form>
        </div>
    }
    .into_any()
}

/// The document around the app. Rendered on the server only.
pub fn shell(options: LeptosOptions) -> impl IntoView {
    // Set on the document, outside the hydrated tree: the browser's code does not need the
    // user.
    let may = use_context::<MayAudit>().map(|_| "audit");
    // The browser updates it from the event stream.
    let alerts = use_context::<AlertsOverdue>().map(|_| "overdue");
    let account = use_context::<WhoLooks>().map(account);
    view! {
        <!DOCTYPE html>
        <html lang="en" data-may=may data-alerts=alerts>
            <head>
                <meta charset="utf-8"/>
                <meta name="viewport" content="width=device-width, initial-scale=1"/>
                <meta name="color-scheme" content="light dark"/>
                <script nonce=leptos::nonce::use_nonce() inner_html=THEME></script>
                <link rel="preload" href="/fonts/inter-latin.woff2" r#as="font" r#type="font/woff2" crossorigin=""/>
                <link rel="stylesheet" href="/pkg/leasehold.css"/>
                <link rel="icon" href="/favicon.svg" r#type="image/svg+xml"/>
                <HydrationScripts options/>
                <MetaTags/>
            </head>
            <body>
                <App/>
                <KeysDialog/>
                {account}
                // After the app, because the browser hydrates the body from its first child on.
                // CSS shows it on top.
                <p class="notice critical alerts-overdue" role="alert">{OVERDUE}</p>
                <svg class="sprite" aria-hidden="true" inner_html=SPRITE></svg>
            </body>
        </html>
    }
}

#[component]
pub fn App() -> impl IntoView {
    provide_meta_context();
    provide_context(Live::start());
    view! {
        <TitleFormat/>
        <Router>
            <a class="skip" href="#main" rel="external">"Skip to content"</a>
            <Nav/>
            <main id="main" tabindex="-1">
                // Flat: the old page leaves the document before its state is disposed of.
                <FlatRoutes fallback=|| view! { <NotFound/> }.into_any()>
                    <Route path=path!("/") view=OverviewPage ssr=SsrMode::Async/>
                    <Route path=path!("/locks") view=LocksPage ssr=SsrMode::Async/>
                    <Route path=path!("/locks/:backend/*resource") view=LockPage ssr=SsrMode::Async/>
                    <Route path=path!("/backends") view=BackendsPage ssr=SsrMode::Async/>
                </FlatRoutes>
            </main>
            <Tabs/>
            <Keys/>
        </Router>
    }
}

#[component]
fn NotFound() -> impl IntoView {
    set_status(404);
    view! {
        <PageTitle text="Page not found"/>
        <Empty title="There is no such page" whole=true>
            <p><a class="link" href="/">"Overview"</a>", or "<a class="link" href="/locks">"all locks"</a>"."</p>
        </Empty>
    }
}
