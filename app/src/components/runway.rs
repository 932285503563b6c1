//! The lease runway of one row: a stand-in until it is drawn.

use domain::human;
use domain::lock::Lock;
use leptos::prelude::*;

#[component]
pub fn Runway(lock: Lock) -> impl IntoView {
    let left = lock
        .remaining_ms
        .known()
        .map_or("unknown".to_owned(), |ms| human::duration(*ms));
    view! { <span class="rw"><svg aria-hidden="true"></svg><b>{left}</b></span> }
}
