//! The only reader of resources: loading, error and data are designed states.
//!
//! The children are created once and get a signal, so that a refetch changes values in place:
//! no flicker, no lost focus, no scroll jump. A failed refetch leaves the data on screen and
//! shows an error above it.

use std::sync::Arc;

use domain::query::QueryError;
use leptos::prelude::*;
use serde::de::DeserializeOwned;

use super::empty_state::Empty;
use super::state_badge::Shape;
use crate::api::ApiError;
use crate::api::error::set_status;
use crate::components::reactive::changing;
use crate::components::title::PageTitle;
use crate::console::ConsoleError;
use crate::focus::{HEADINGS, pass_on_focus};
use crate::live::resource::Load;
use crate::live::topics::Topics;
use crate::live::use_live;
use crate::refusal_pages::Forbidden;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Phase {
    Loading,
    Failed(ApiError),
    Ready,
}

#[component]
pub fn LoadBoundary<T, F, V>(
    load: Load<T>,
    /// Kinds of this data, if it has no revision of its own: the page's age is then that of the last response.
    #[prop(optional)]
    shows: Topics,
    /// A part of a page that has its own heading.
    #[prop(optional)]
    part: bool,
    /// Creates the view of the data, once.
    children: F,
) -> impl IntoView
where
    T: Clone + PartialEq + DeserializeOwned + Send + Sync + 'static,
    F: Fn(Signal<T>) -> V + Clone + Send + Sync + 'static,
    V: IntoView + 'static,
{
    let watch = move || {
        // The last successful response: stays on screen when a later one fails.
        let data = Memo::new(move |before: Option<&Option<T>>| match load.get() {
            Some(Ok(data)) => Some(data),
            Some(Err(error)) if !error.is_passing() => None,
            Some(Err(_)) | None => before.cloned().flatten(),
        });
        let children = children.clone();
        Watched {
            has_data: Signal::derive(move || data.with(Option::is_some)),
            failure: Memo::new(move |_| load.failure()),
            has_answered: Signal::derive(move || load.has_answered()),
            retry: Callback::new(move |()| load.refetch()),
            ready: Box::new(move || ready(data, &children)),
        }
    };
    boundary(Arc::new(watch), part, shows)
}

/// A resource with its data type erased.
struct Watched {
    has_data: Signal<bool>,
    failure: Memo<Option<ApiError>>,
    /// Notifies at every response, also if its data equals the last.
    has_answered: Signal<bool>,
    retry: Callback<()>,
    /// Creates the view of the data; `None` once it was disposed of.
    ready: Box<dyn Fn() -> Option<AnyView> + Send + Sync>,
}

/// Independent of the data type: compiled once into the wasm, not once per page.
fn boundary(watch: Arc<dyn Fn() -> Watched + Send + Sync>, is_part: bool, shows: Topics) -> AnyView {
    let live = use_live();
    view! {
        <Transition fallback=|| view! { <Loading/> }.into_any()>
            {
                let watch = watch.clone();
                let client_state = Arc::new(Shown::from_watched(watch()));
                let has_answered = client_state.watched.has_answered;
                Effect::new(move |_| {
                    if has_answered.get() && !shows.is_none() {
                        live.set_arrived(shows);
                    }
                });
                changing(move || {
                    // On the server the response arrives on another thread, possibly before a
                    // memo has run. So nothing is memoized there.
                    if cfg!(feature = "ssr") { Shown::from_watched(watch()).view(is_part) } else { client_state.view(is_part) }
                })
            }
        </Transition>
    }
    .into_any()
}

/// Display state of a resource.
struct Shown {
    phase: Memo<Phase>,
    watched: Watched,
}

impl Shown {
    fn from_watched(watched: Watched) -> Self {
        let (has_data, failure) = (watched.has_data, watched.failure);
        let phase = Memo::new(move |_| match (has_data.get(), failure.get()) {
            (true, _) => Phase::Ready,
            (false, Some(error)) => Phase::Failed(error),
            (false, None) => Phase::Loading,
        });
        Self { phase, watched }
    }

    fn view(&self, is_part: bool) -> AnyView {
        let Watched { failure, retry, .. } = self.watched;
        match self.phase.get() {
            Phase::Loading => view! { <Loading/> }.into_any(),
            Phase::Failed(error) => {
                set_status(error.status());
                view! { <Failed error retry whole=!is_part/> }.into_any()
            }
            Phase::Ready => {
                let notice = move || {
                    failure
                        .get()
                        .map(|error| view! { <NotRefreshed error/> }.into_any())
                };
                let data = (self.watched.ready)();
                data.map(|data| view! { {changing(notice)} {data} }.into_any())
                    .into_any()
            }
        }
    }
}

fn ready<T, F, V>(data: Memo<Option<T>>, children: &F) -> Option<AnyView>
where
    T: Clone + PartialEq + Send + Sync + 'static,
    F: Fn(Signal<T>) -> V,
    V: IntoView + 'static,
{
    let first = data.get_untracked()?;
    // The last data is used while the boundary is being replaced.
    let data = Memo::new(move |before: Option<&T>| {
        data.get()
            .or_else(|| before.cloned())
            .unwrap_or_else(|| first.clone())
    });
    Some(children(data.into()).into_any())
}

/// Skeleton of a list. Without animation, and invisible for the first moment.
#[component]
pub fn Loading() -> impl IntoView {
    view! {
        <div class="waiting-rows" role="status">
            <span class="sr">"Loading"</span>
            {(0..12).map(|_| view! { <div class="wait"></div> }.into_any()).collect_view()}
        </div>
    }
}

#[component]
pub fn NotRefreshed(error: ApiError) -> impl IntoView {
    Effect::new({
        let error = error.clone();
        move |_| {
            if error == ApiError::OtherBuild {
                reload_once();
            }
        }
    });
    view! {
        <p class="notice critical" role="status">
            <Shape name="x"/>
            <span>"Refresh failed: "{error.to_string()}". "{remedy(&error)}</span>
        </p>
    }
}

#[component]
pub fn Failed(error: ApiError, retry: Callback<()>, whole: bool) -> impl IntoView {
    if error == ApiError::OtherBuild {
        Effect::new(|_| reload_once());
    }
    let title = match &error {
        ApiError::Console(ConsoleError::BadQuery(QueryError { field, .. })) => {
            format!("Invalid filter {field:?}")
        }
        ApiError::Console(ConsoleError::NotFound { .. }) => "Not found".to_owned(),
        ApiError::Console(ConsoleError::Ambiguous { .. }) => "Several locks have this name".to_owned(),
        ApiError::Console(ConsoleError::Busy { .. }) => "Too many searches at once".to_owned(),
        ApiError::Console(ConsoleError::Forbidden { permission }) => return forbidden(permission),
        ApiError::Console(ConsoleError::Unavailable { .. }) => "No data".to_owned(),
        ApiError::Console(ConsoleError::Unread { .. }) => "Free or held: unknown".to_owned(),
        ApiError::Unreachable(_) => "The console did not answer".to_owned(),
        ApiError::SignedOut => "You are signed out".to_owned(),
        ApiError::OtherBuild => "The console has a new version".to_owned(),
    };
    let why = crate::format::prose(&error.to_string());
    let retry = error.is_passing().then(|| {
        pass_on_focus(".empty:has(button:focus)", HEADINGS);
        view! { <button class="btn" type="button" on:click=move |_| retry.run(())>"Try again"</button> }
            .into_any()
    });
    view! {
        // A failed part leaves the page its title.
        {whole.then(|| view! { <PageTitle text=title.clone()/> })}
        <Empty title whole>
            <p role="alert">{why}</p>
            <div class="do">{remedy(&error)}{retry}<a class="btn" href="/locks">"All locks"</a></div>
        </Empty>
    }
    .into_any()
}

fn forbidden(permission: &str) -> AnyView {
    let title = "Your role does not have the permission for this page";
    view! {
        <PageTitle text=title/>
        <div class="pagehead"><h1>{title}</h1></div>
        <Forbidden permission=permission.to_owned()/>
    }
    .into_any()
}

/// Link that removes the cause of the error, where a retry does not.
fn remedy(error: &ApiError) -> AnyView {
    match error {
        // In another tab: nothing on this page is lost.
        ApiError::SignedOut => view! {
            <a class="btn solid" href="/sign-in" target="_blank" rel="noopener external">"Sign in, in a new tab"</a>
        }
        .into_any(),
        ApiError::OtherBuild => view! { <a class="btn solid" href="" rel="external">"Reload"</a> }.into_any(),
        ApiError::Console(_) | ApiError::Unreachable(_) => ().into_any(),
    }
}

/// Reloads a page of the previous version, once. A page with unsaved input is not reloaded: it shows a link.
fn reload_once() {
    const KEY: &str = "reloaded";
    if has_unsaved_input() {
        return;
    }
    let (Ok(Some(storage)), location) = (window().session_storage(), window().location()) else {
        return;
    };
    let stamp = crate::api::codec::build();
    if storage.get_item(KEY).ok().flatten().as_deref() != Some(&stamp)
        && storage.set_item(KEY, &stamp).is_ok()
    {
        let _ = location.reload();
    }
}

/// Whether the page has input of a form that is not sent yet, or a secret that is shown once. A browser that does not know
/// `:user-valid` counts as having input: an unknown selector fails in `:not`, while `:is` would ignore it.
fn has_unsaved_input() -> bool {
    const UNSAVED: &str = ".once, main form[method=post] :is(input, textarea, select)\
        :not(:not(:focus, :user-valid, :user-invalid))";
    !matches!(document().query_selector(UNSAVED), Ok(None))
}
