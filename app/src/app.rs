//! The shell of every page: document, head, routes, and what all pages share.

use domain::alerts::OVERDUE;
use leptos::prelude::*;
use leptos_meta::{MetaTags, provide_meta_context};
use leptos_router::components::{FlatRoutes, Route, Router};
use leptos_router::{SsrMode, path};

use crate::api::error::set_status;
use crate::components::empty::Empty;
use crate::components::nav::Nav;
use crate::components::tabs::Tabs;
use crate::components::title::{PageTitle, TitleFormat};
use crate::keys::{Keys, KeysDialog};
use crate::live::Live;
use crate::pages::backends::BackendsPage;
use crate::pages::lock::LockPage;
use crate::pages::locks::LocksPage;
use crate::pages::overview::OverviewPage;

/// Before the first paint, so that no page flashes in the wrong colours; and what `.turn` does, on pages with the browser half
/// and without. Where storage is refused the choice lasts for the page. The only script of our own; pages without the browser
/// half allow it by its hash.
pub const THEME: &str = "{const r=document.documentElement,k='theme';let t=null;\
    try{t=localStorage.getItem(k)}catch{}if(t)r.dataset.theme=t;\
    addEventListener('click',e=>{if(!e.target.closest('.turn'))return;\
    t=r.dataset.theme||(matchMedia('(prefers-color-scheme: dark)').matches?'dark':'light');\
    r.dataset.theme=t=t=='dark'?'light':'dark';try{localStorage.setItem(k,t)}catch{}})}";

/// Shapes and hatches, once per document, outside what the browser hydrates.
pub(crate) const SPRITE: &str = include_str!("components/sprite.svg");

/// In the server's context: who looks may read some of the audit record, so its link is shown.
#[derive(Debug, Clone, Copy)]
pub struct MayAudit;

/// In the server's context: no server evaluates the alert rules.
#[derive(Debug, Clone, Copy)]
pub struct AlertsOverdue;

/// In the server's context: who looks, as the sheet of the account says it.
#[derive(Debug, Clone)]
pub struct WhoLooks(pub String);

/// Opened by the button in the bar, by the browser itself.
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

/// The document around the app. Made on the server only.
pub fn shell(options: LeptosOptions) -> impl IntoView {
    // On the document, which the browser does not hydrate: its half need not know who looks.
    let may = use_context::<MayAudit>().map(|_| "audit");
    // The browser half sets and removes it as the stream of events says.
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
                // Behind the app: the browser hydrates the body from its first child on. The style sheet shows it on top.
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
            <a class="skip" href="#main" rel="external">"Skip to the page"</a>
            <Nav/>
            <main id="main" tabindex="-1">
                // Flat: the old page leaves the document before its state is disposed of, not after.
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
        <PageTitle text="No such page"/>
        <Empty title="There is no such page" whole=true>
            <p><a class="link" href="/">"Overview"</a>", or "<a class="link" href="/locks">"all locks"</a>"."</p>
        </Empty>
    }
}
