//! Backends: how each adapter does, what its account may and may not do, what went wrong and how to mend it.
//!
//! Read-only: what is configured stands in `leasehold.toml`, and no secret of it ever comes here.

pub mod health;
pub mod one;
pub mod tables;

use domain::backend::BackendView;
use domain::overview::backends_title;
use leptos::prelude::*;

use self::one::OneBackend;
use super::overview::setup::Setup;
use crate::api::backends::backends;
use crate::components::changing::changing;
use crate::components::live_bar::LiveBar;
use crate::components::load_boundary::LoadBoundary;
use crate::components::state_badge::BackendBadge;
use crate::components::title::PageTitle;
use crate::live::use_live;

#[component]
pub fn BackendsPage() -> impl IntoView {
    let load = use_live().refreshing(|| (), |()| backends());
    view! {
        <PageTitle text="Backends"/>
        <div class="page">
            <LiveBar/>
            <LoadBoundary load let:data>
                <Body data/>
            </LoadBoundary>
        </div>
    }
}

#[component]
fn Body(data: Signal<Vec<BackendView>>) -> impl IntoView {
    let live = use_live();
    Effect::new(move |_| {
        data.with(|_| ());
        live.note_arrived();
    });
    let is_set_up = Memo::new(move |_| data.with(|data| !data.is_empty()));
    view! {
        <div class="pagehead">
            <h1>{move || data.with(|data| backends_title(data))}</h1>
            <p>"What each adapter sees, how it answers, and what its account may do."</p>
        </div>
        {move || if is_set_up.get() { view! { <All data/> }.into_any() } else { view! { <Setup/> }.into_any() }}
    }
    .into_any()
}

/// In the order of the configuration, so that a backend keeps its place when it falls ill.
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
    let each = move || {
        data.with(|data| {
            data.iter()
                .map(|backend| view! { <OneBackend backend=backend.clone()/> }.into_any())
                .collect_view()
        })
    };
    view! {
        <nav class="jumps" aria-label="backends"><ul>{changing(jumps)}</ul></nav>
        <div class="stack">{changing(each)}</div>
    }
    .into_any()
}
