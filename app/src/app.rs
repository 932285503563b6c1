//! Shell of every page: document, head, routes and shared parts.

use leptos::prelude::*;
use leptos_meta::{MetaTags, provide_meta_context};
use leptos_router::components::{FlatRoutes, Route, Router};
use leptos_router::hooks::use_location;
use leptos_router::{SsrMode, path};

use crate::api::codec::Payload;
use crate::api::error::set_status;
use crate::components::empty_state::Empty;
use crate::components::reactive::changing;
use crate::components::title::{PageTitle, TitleFormat};
use crate::components::toast::Toast;
use crate::forms::console_form::FirstReply;
use crate::forms::reply::FormReply;
use crate::hydration::Hydration;
use crate::keyboard_shortcuts::KeysDialog;
use crate::layout::Layout;
use crate::live::Live;
use crate::pages::alerts::AlertsPage;
use crate::pages::audit::AuditPage;
use crate::pages::audit::entry::AuditEntryPage;
use crate::pages::backends::BackendsPage;
use crate::pages::contention::ContentionPage;
use crate::pages::docs::DocsPage;
use crate::pages::fencing::FencingPage;
use crate::pages::lock::LockPage;
use crate::pages::locks::LocksPage;
use crate::pages::overview::OverviewPage;
use crate::pages::receivers::ReceiversPage;
use crate::pages::receivers::edit::ReceiverPage;
use crate::pages::rule_editor::RuleEditorPage;
use crate::pages::settings::account::AccountPage;
use crate::pages::settings::protected_prefixes::ProtectedPrefixesPage;
use crate::pages::settings::roles::RolesPage;
use crate::pages::settings::sessions::SessionsPage;
use crate::pages::settings::tokens::TokensPage;
use crate::pages::settings::user::UserPage;
use crate::pages::settings::users::UsersPage;
use crate::pages::silence::SilencePage;
use crate::pages::unlock::bulk::confirm::BulkConfirmPage;
use crate::pages::unlock::bulk::select::BulkSelectPage;
use crate::pages::unlock::review::UnlockReviewPage;
use crate::pages::unlock::step::UnlockStepPage;
use crate::pages::waits::WaitsPage;
use crate::refusal_pages::Refused;
use crate::session::{CurrentSession, FirstRender, Refusal};

/// Sets the theme before the first paint, and handles `.turn` with and without hydration. If
/// storage is refused, the choice lasts for the page. A page that answers a form gets its own
/// path.
pub const THEME: &str = "{const r=document.documentElement,k='theme',p=r.dataset.path;let t=null;\
    if(p)history.replaceState(null,'',p);\
    try{t=localStorage.getItem(k)}catch{}if(t)r.dataset.theme=t;\
    addEventListener('click',e=>{if(!e.target.closest('.turn'))return;\
    t=r.dataset.theme||(matchMedia('(prefers-color-scheme: dark)').matches?'dark':'light');\
    r.dataset.theme=t=t=='dark'?'light':'dark';try{localStorage.setItem(k,t)}catch{}})}";

/// Shapes and hatches, once per document, outside the hydrated tree.
pub(crate) const SPRITE: &str = include_str!("components/sprite.svg");

/// The document around the app. Rendered on the server only.
pub fn shell(options: LeptosOptions) -> impl IntoView {
    // A form that was refused was sent to a path of its own: the page has another one.
    let path = use_context::<FirstRender>()
        .is_some_and(|first| first.reply.is_some() || first.refusal.is_some())
        .then(|| use_context::<PagePath>().map(|PagePath(path)| path))
        .flatten();
    view! {
        <!DOCTYPE html>
        <html lang="en" data-path=path>
            <head>
                <meta charset="utf-8"/>
                <meta name="viewport" content="width=device-width, initial-scale=1"/>
                <meta name="color-scheme" content="light dark"/>
                <script nonce=leptos::nonce::use_nonce() inner_html=THEME></script>
                <link rel="preload" href="/fonts/inter-latin.woff2" r#as="font" r#type="font/woff2" crossorigin=""/>
                <link rel="stylesheet" href=format!("/{}/leasehold.css", options.site_pkg_dir)/>
                <link rel="icon" href="/favicon.svg" r#type="image/svg+xml"/>
                <Hydration options/>
                <MetaTags/>
            </head>
            <body>
                <App/>
                <KeysDialog/>
                <svg class="sprite" aria-hidden="true" inner_html=SPRITE></svg>
            </body>
        </html>
    }
}

/// Server context: path and query of the rendered page.
#[derive(Debug, Clone)]
pub struct PagePath(pub String);

#[component]
pub fn App() -> impl IntoView {
    provide_meta_context();
    // The server's facts, which the browser reads from the first HTML.
    let first = || use_context::<FirstRender>().unwrap_or_else(FirstRender::open);
    let first = SharedValue::<FirstRender, Payload>::new_with_encoding(first).into_inner();
    let session = CurrentSession::new(first.session);
    provide_context(session);
    let reply = FirstReply::new(first.reply.clone());
    provide_context(reply);
    provide_context(Toast::new());
    provide_context(Live::start(session));
    let refusal = first.refusal.zip(Some(first.reply.unwrap_or_default()));
    view! {
        <TitleFormat/>
        <Router>
            <Layout>
                <Content refusal reply/>
            </Layout>
        </Router>
    }
}

/// The routes; in place of the first page its refusal, until the reader opens another page.
#[component]
fn Content(refusal: Option<(Refusal, FormReply)>, reply: FirstReply) -> impl IntoView {
    reply.forget_on_leave();
    let Some((refusal, reply)) = refusal else {
        return routes();
    };
    let path = use_location().pathname;
    let first = path.get_untracked();
    let is_first = Memo::new(move |_| path.with(|path| *path == first));
    changing(move || {
        if is_first.get() {
            view! { <Refused refusal=refusal.clone() reply=reply.clone()/> }.into_any()
        } else {
            routes()
        }
    })
    .into_any()
}

fn routes() -> AnyView {
    view! {
        // Flat: the old page leaves the document before its state is disposed of.
        <FlatRoutes fallback=|| view! { <NotFound/> }.into_any()>
            <Route path=path!("/") view=OverviewPage ssr=SsrMode::Async/>
            <Route path=path!("/locks") view=LocksPage ssr=SsrMode::Async/>
            <Route path=path!("/locks/:backend/*resource") view=LockPage ssr=SsrMode::Async/>
            <Route path=path!("/contention") view=ContentionPage ssr=SsrMode::Async/>
            <Route path=path!("/waits") view=WaitsPage ssr=SsrMode::Async/>
            <Route path=path!("/fencing") view=FencingPage ssr=SsrMode::Async/>
            <Route path=path!("/backends") view=BackendsPage ssr=SsrMode::Async/>
            <Route path=path!("/alerts") view=AlertsPage ssr=SsrMode::Async/>
            <Route path=path!("/alerts/silences/new") view=SilencePage ssr=SsrMode::Async/>
            <Route path=path!("/alerts/rules/new") view=RuleEditorPage ssr=SsrMode::Async/>
            <Route path=path!("/alerts/rules/:id") view=RuleEditorPage ssr=SsrMode::Async/>
            <Route path=path!("/unlock/:backend/*resource") view=UnlockReviewPage ssr=SsrMode::Async/>
            <Route path=path!("/unlocks") view=BulkSelectPage ssr=SsrMode::Async/>
            <Route path=path!("/unlocks/several") view=BulkConfirmPage ssr=SsrMode::Async/>
            <Route path=path!("/unlocks/:unlock_id") view=UnlockStepPage ssr=SsrMode::Async/>
            <Route path=path!("/alerts/receivers") view=ReceiversPage ssr=SsrMode::Async/>
            <Route path=path!("/alerts/receivers/:name") view=ReceiverPage ssr=SsrMode::Async/>
            <Route path=path!("/audit") view=AuditPage ssr=SsrMode::Async/>
            <Route path=path!("/audit/:id") view=AuditEntryPage ssr=SsrMode::Async/>
            <Route path=path!("/docs") view=DocsPage ssr=SsrMode::Async/>
            <Route path=path!("/docs/:page") view=DocsPage ssr=SsrMode::Async/>
            <Route path=path!("/docs/api/:part") view=DocsPage ssr=SsrMode::Async/>
            <Route path=path!("/settings") view=AccountPage ssr=SsrMode::Async/>
            <Route path=path!("/settings/users") view=UsersPage ssr=SsrMode::Async/>
            <Route path=path!("/settings/users/:id") view=UserPage ssr=SsrMode::Async/>
            <Route path=path!("/settings/tokens") view=TokensPage ssr=SsrMode::Async/>
            <Route path=path!("/settings/sessions") view=SessionsPage ssr=SsrMode::Async/>
            <Route path=path!("/settings/protected-prefixes") view=ProtectedPrefixesPage ssr=SsrMode::Async/>
            <Route path=path!("/settings/roles") view=RolesPage ssr=SsrMode::Async/>
        </FlatRoutes>
    }
    .into_any()
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
