//! Shell of every page: document, head and shared parts.

use leptos::prelude::*;
use leptos_meta::{MetaTags, provide_meta_context};
use leptos_router::components::Router;
use leptos_router::hooks::use_location;

use crate::api::codec::Payload;
use crate::components::reactive::changing;
use crate::components::title::TitleFormat;
use crate::components::toast::Toast;
use crate::forms::console_form::FirstReply;
use crate::forms::reply::FormReply;
use crate::hydration::Hydration;
use crate::keyboard_shortcuts::KeysDialog;
use crate::layout::Layout;
use crate::live::Live;
use crate::pages::routes;
use crate::refusal_pages::Refused;
use crate::session::{CurrentSession, FirstRender, Refusal};

/// Script of every page, with and without hydration.
///
/// - Sets the theme before the first paint, and switches it on a click on `.turn`. Without storage the choice lasts until
///   the page is left.
/// - Puts the page's own path into the address bar after a form was answered under the path of the form.
/// - Reloads the tabs of the previous user after another user has signed in: their requests have the new user's session.
pub const THEME: &str = "{const r=document.documentElement,k='theme',p=r.dataset.path,u=r.dataset.user;let t=null;\
    if(p)history.replaceState(null,'',p);\
    if(u){const c=new BroadcastChannel('user');c.postMessage(u);\
    c.onmessage=e=>{if(e.data!=u)location.replace(location.pathname+location.search)}}\
    try{t=localStorage.getItem(k)}catch{}if(t)r.dataset.theme=t;\
    addEventListener('click',e=>{if(!e.target.closest('.turn'))return;\
    t=r.dataset.theme||(matchMedia('(prefers-color-scheme: dark)').matches?'dark':'light');\
    r.dataset.theme=t=t=='dark'?'light':'dark';try{localStorage.setItem(k,t)}catch{}})}";

/// Shapes and hatches, once per document, outside the hydrated tree.
pub(crate) const SPRITE: &str = include_str!("components/sprite.svg");

/// The document around the app. Rendered on the server only.
pub fn shell(options: LeptosOptions) -> impl IntoView {
    // The answer to a refused form has the URL of the form, not of the page.
    let first = use_context::<FirstRender>().unwrap_or_default();
    let path = (first.reply.is_some() || first.refusal.is_some())
        .then(|| use_context::<PagePath>().map(|PagePath(path)| path))
        .flatten();
    view! {
        <!DOCTYPE html>
        <html lang="en" data-path=path data-user=first.session.user>
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

/// The routes. A refusal replaces the first page until the user opens another one.
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
