//! Backends page: health, account permissions, failures and remedies of each adapter.
//!
//! Read-only: `leasehold.toml` has the configuration, and none of its secrets reach the page.

pub mod backend_panel;
pub mod cluster;
pub mod health;
pub mod tables;

use domain::backend::BackendView;
use domain::overview::backends_title;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;

use self::backend_panel::OneBackend;
use super::overview::getting_started::Setup;
use crate::api::codec::EncodedResponse;
use crate::api::error::ApiError;
use crate::components::live_bar::LiveBar;
use crate::components::load_boundary::LoadBoundary;
use crate::components::reactive::{changing, keyed};
use crate::components::state_badge::BackendBadge;
use crate::components::title::PageTitle;
use crate::live::topics::Topics;
use crate::live::use_live;

#[server(name = GetBackends, prefix = "/api", endpoint = "backends", input = GetUrl, output = EncodedResponse)]
pub async fn backends() -> Result<Vec<BackendView>, ApiError> {
    let context = crate::api::error::from_context()?;
    context.set_status(context.console.backends().await)
}

#[component]
pub fn BackendsPage() -> impl IntoView {
    let load = use_live().refreshing(Topics::INVENTORY, || (), |()| backends());
    view! {
        <PageTitle text="Backends"/>
        <div class="page">
            <LiveBar/>
            <LoadBoundary load shows=Topics::INVENTORY let:data>
                <Body data/>
            </LoadBoundary>
        </div>
    }
}

#[component]
fn Body(data: Signal<Vec<BackendView>>) -> impl IntoView {
    let is_set_up = Memo::new(move |_| data.with(|data| !data.is_empty()));
    view! {
        <div class="pagehead">
            <h1>{move || data.with(|data| backends_title(data))}</h1>
            <p>"Coverage, latency and account permissions of each backend."</p>
        </div>
        {move || if is_set_up.get() { view! { <All data/> }.into_any() } else { view! { <Setup/> }.into_any() }}
    }
    .into_any()
}

/// In the order of the configuration, so that a failing backend keeps its place.
#[component]
fn All(data: Signal<Vec<BackendView>>) -> impl IntoView {
    let jumps = move || {
        data.with(|data| {
            data.iter()
                .map(|backend| {
                    view! {
                        <li>
                            <a href=format!("#{}", backend.name)>
                                <span>{backend.name.to_string()}</span>
                                <BackendBadge status=backend.status/>
                            </a>
                        </li>
                    }
                    .into_any()
                })
                .collect_view()
        })
    };
    let names = Memo::new(move |_| {
        data.with(|data| {
            let names = data.iter().map(|backend| backend.name.to_string());
            names.collect::<Vec<String>>()
        })
    });
    // Kept while only its figures change: a control in it keeps the focus.
    let one = move |name: String| {
        let found = move || {
            data.with(|data| {
                let mut all = data.iter();
                all.find(|backend| backend.name.as_str() == name).cloned()
            })
        };
        let Some(first) = found() else {
            return ().into_any();
        };
        let backend = Memo::new(move |before: Option<&BackendView>| {
            found()
                .or_else(|| before.cloned())
                .unwrap_or_else(|| first.clone())
        });
        view! { <OneBackend backend/> }.into_any()
    };
    view! {
        <nav class="jumps" aria-label="backends"><ul>{changing(jumps)}</ul></nav>
        <div class="stack">
            {keyed(names, one)}
        </div>
    }
    .into_any()
}
