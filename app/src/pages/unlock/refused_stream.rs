//! Says that the session has ended on a page that no event refetches, because of its input.

use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::api::ApiError;
use crate::components::load_boundary::NotRefreshed;
use crate::components::reactive::changing;
use crate::live::use_live;
use crate::pages::locks::data::prefixes;

/// Changes nothing else of the page.
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
            // Any request: its refusal has the reason that the stream does not have.
            failure.try_set(prefixes(String::new()).await.err());
        });
    });
    changing(move || {
        let error = failure.get().filter(|error| *error == ApiError::SignedOut)?;
        Some(view! { <NotRefreshed error/> }.into_any())
    })
}
