//! Says that the session has ended on a page that no event refetches, because of its input.

use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::api::ApiError;
use crate::components::load_boundary::NotRefreshed;
use crate::components::reactive::changing;
use crate::live::use_live;
use crate::pages::locks::data::prefixes;

/// The notice; the rest of the page keeps its input.
#[component]
pub fn RefusedStream() -> impl IntoView {
    let live = use_live();
    let failure = RwSignal::new(None::<ApiError>);
    Effect::new(move |_| {
        if !live.is_refused() {
            failure.set(None);
            return;
        }
        spawn_local(async move {
            // Any request serves: its response has the reason, which the browser does not report for the stream.
            failure.try_set(prefixes(String::new()).await.err());
        });
    });
    changing(move || {
        let error = failure.get().filter(|error| *error == ApiError::SignedOut)?;
        Some(view! { <NotRefreshed error/> }.into_any())
    })
}
