//! Every lock by prefix: a stub until the page is built.

use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::use_location;

use crate::api::inventory::inventory;
use crate::components::live_bar::LiveBar;
use crate::components::load_boundary::LoadBoundary;
use crate::live::use_live;

#[component]
pub fn LocksPage() -> impl IntoView {
    let search = use_location().search;
    let load = use_live().refreshing(move || search.get(), inventory);
    view! {
        <Title text="Locks"/>
        <div class="pagehead"><div><h1>"Locks"</h1></div><LiveBar/></div>
        <LoadBoundary load let:page>
            <p>{move || page.with(|page| page.total)}</p>
        </LoadBoundary>
    }
}
