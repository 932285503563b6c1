//! Overview: a stub until the page is built.

use leptos::prelude::*;
use leptos_meta::Title;

use crate::api::overview::overview;
use crate::components::live_bar::LiveBar;
use crate::components::load_boundary::LoadBoundary;
use crate::live::use_live;

#[component]
pub fn OverviewPage() -> impl IntoView {
    let load = use_live().refreshing(|| (), |()| overview());
    view! {
        <Title text="Overview"/>
        <div class="pagehead"><div><h1>"Overview"</h1></div><LiveBar/></div>
        <LoadBoundary load let:_data>
            <p></p>
        </LoadBoundary>
    }
}
