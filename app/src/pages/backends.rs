//! Backends: a stub until the page is built.

use leptos::prelude::*;
use leptos_meta::Title;

use crate::api::backends::backends;
use crate::components::live_bar::LiveBar;
use crate::components::load_boundary::LoadBoundary;
use crate::live::use_live;

#[component]
pub fn BackendsPage() -> impl IntoView {
    let load = use_live().refreshing(|| (), |()| backends());
    view! {
        <Title text="Backends"/>
        <div class="pagehead"><div><h1>"Backends"</h1></div><LiveBar/></div>
        <LoadBoundary load let:_data>
            <p></p>
        </LoadBoundary>
    }
}
