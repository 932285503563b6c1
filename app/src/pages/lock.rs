//! One lock: a stub until the page is built.

use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::{use_params_map, use_query_map};

use crate::api;
use crate::components::live_bar::LiveBar;
use crate::components::load_boundary::LoadBoundary;
use crate::components::resource_name::ResourceName;
use crate::live::use_live;

#[component]
pub fn LockPage() -> impl IntoView {
    let (params, query) = (use_params_map(), use_query_map());
    let names = move || {
        let get = |name: &str| params.read().get(name).unwrap_or_default();
        (
            get("backend"),
            query.read().get("source").unwrap_or_default(),
            get("resource"),
        )
    };
    let load = use_live().refreshing(names, |(backend, source, resource)| {
        api::lock::lock(backend, source, resource)
    });
    view! {
        <Title text="Lock"/>
        <div class="pagehead"><div><h1>"Lock"</h1></div><LiveBar/></div>
        <LoadBoundary load let:detail>
            {move || view! { <ResourceName name=detail.with(|detail| detail.lock.id.resource.text())/> }}
        </LoadBoundary>
    }
}
