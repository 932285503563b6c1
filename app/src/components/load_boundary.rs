//! The only reader of resources: loading, error and data are designed states.
//!
//! The children are made once and get a signal, so that a refetch changes values in place: no flicker, no
//! lost focus, no scroll jump. A refetch that fails leaves the data on screen and says so above it.

use domain::query::QueryError;
use leptos::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::empty::Empty;
use super::state_badge::Shape;
use crate::api::ApiError;
use crate::api::error::set_status;
use crate::api::payload::Payload;
use crate::components::changing::changing;
use crate::console::ConsoleError;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Phase {
    Loading,
    Failed(ApiError),
    Ready,
}

#[component]
pub fn LoadBoundary<T, F, V>(
    load: Resource<Result<T, ApiError>, Payload>,
    /// Makes the view of the data, once.
    children: F,
) -> impl IntoView
where
    T: Clone + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static,
    F: Fn(Signal<T>) -> V + Clone + Send + Sync + 'static,
    V: IntoView + 'static,
{
    view! {
        <Transition fallback=|| view! { <Loading/> }.into_any()>
            {
                let children = children.clone();
                // The last answer that had data: what stays on screen when a later one fails.
                let data = Memo::new(move |before: Option<&Option<T>>| match load.get() {
                    Some(Ok(data)) => Some(data),
                    Some(Err(ApiError::Console(_))) => None,
                    Some(Err(ApiError::Unreachable(_))) | None => before.cloned().flatten(),
                });
                let failure = Memo::new(move |_| load.get().and_then(Result::err));
                let phase = Memo::new(move |_| match (data.with(Option::is_some), failure.get()) {
                    (true, _) => Phase::Ready,
                    (false, Some(error)) => Phase::Failed(error),
                    (false, None) => Phase::Loading,
                });
                move || match phase.get() {
                    Phase::Loading => view! { <Loading/> }.into_any(),
                    Phase::Failed(error) => {
                        set_status(error.status());
                        view! { <Failed error retry=move || load.refetch()/> }.into_any()
                    }
                    Phase::Ready => ready(data, failure, children.clone()).into_any(),
                }
            }
        </Transition>
    }
}

fn ready<T, F, V>(data: Memo<Option<T>>, failure: Memo<Option<ApiError>>, children: F) -> impl IntoView
where
    T: Clone + PartialEq + Send + Sync + 'static,
    F: Fn(Signal<T>) -> V,
    V: IntoView + 'static,
{
    let first = data.get_untracked();
    first.map(|first| {
        // The last data stands in for the moment in which the boundary turns away from it.
        let data = Memo::new(move |before: Option<&T>| {
            data.get()
                .or_else(|| before.cloned())
                .unwrap_or_else(|| first.clone())
        });
        let notice = move || {
            failure
                .get()
                .map(|error| view! { <NotRefreshed error/> }.into_any())
        };
        view! { {changing(notice)} {children(data.into()).into_any()} }.into_any()
    })
}

/// The bones of a list. Nothing moves, and nothing shows for the first moment.
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
fn NotRefreshed(error: ApiError) -> impl IntoView {
    view! {
        <p class="notice critical" role="status">
            <Shape name="x"/>
            <span>"What you see could not be refreshed: "{error.to_string()}"."</span>
        </p>
    }
}

#[component]
pub fn Failed<R: Fn() + 'static>(error: ApiError, retry: R) -> impl IntoView {
    let title = match &error {
        ApiError::Console(ConsoleError::BadQuery(QueryError { field, .. })) => {
            format!("The filter {field:?} does not fit")
        }
        ApiError::Console(ConsoleError::NotFound { .. }) => "Not found".to_owned(),
        ApiError::Console(ConsoleError::Ambiguous { .. }) => "This name is held more than once".to_owned(),
        ApiError::Unreachable(_) => "The console did not answer".to_owned(),
    };
    let why = domain::escape::visible(&error.to_string()).into_owned();
    let retry = error.is_passing().then(|| {
        view! { <button class="btn" type="button" on:click=move |_| retry()>"Try again"</button> }.into_any()
    });
    view! {
        <Empty title>
            <p role="alert">{why}</p>
            <div class="do">{retry}<a class="btn" href="/locks">"All locks"</a></div>
        </Empty>
    }
}
