//! Contention page: heatmap of prefixes, worst prefixes with recommendations, hold and wait
//! times, current wait trees.

mod cell_links;
pub mod heatmap;
pub mod selected_cell;
pub mod top_prefixes;
pub mod wait_trees;

use domain::contention::ContentionPage as Page;
use domain::history::template;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;

use self::heatmap::MapSection;
use self::top_prefixes::TopPrefixes;
use self::wait_trees::WaitTrees;
use crate::api::codec::EncodedResponse;
use crate::api::error::ApiError;
use crate::charts::durations::{Durations, Measure};
use crate::charts::simulated_mark::provide_simulated;
use crate::components::live_bar::LiveBar;
use crate::components::load_boundary::LoadBoundary;
use crate::components::reactive::changing;
use crate::components::title::PageTitle;
use crate::format;
use crate::links::{PageUrl, with_query};
use crate::live::topics::Topics;
use crate::live::use_live;
use crate::navigation::use_search_of;

const PATH: &str = "/contention";

/// `search` is the page's query string.
#[server(name = GetContention, prefix = "/api", endpoint = "contention", input = GetUrl, output = EncodedResponse)]
pub async fn contention(search: String) -> Result<Page, ApiError> {
    let context = crate::api::error::from_context()?;
    context.set_status(context.console.contention(search).await)
}

#[component]
pub fn ContentionPage() -> impl IntoView {
    let search = use_search_of(PATH);
    let load = use_live().refreshing(Topics::INVENTORY, move || search.get(), contention);
    view! {
        <PageTitle text="Contention"/>
        <div class="page">
            <LiveBar/>
            <LoadBoundary load shows=Topics::INVENTORY let:data>
                <Body data/>
            </LoadBoundary>
        </div>
    }
}

#[component]
fn Body(data: Signal<Page>) -> impl IntoView {
    let search = use_search_of(PATH);
    let url = Signal::derive(move || PageUrl::new(PATH, &search.get()));
    let hold_times = Memo::new(move |_| data.with(|data| data.hold_times.clone()));
    let wait_times = Memo::new(move |_| data.with(|data| data.wait_times.clone()));
    provide_simulated(move || data.with(|data| data.range.simulated_mark()));
    let cut_notice = move || {
        data.with(|data| data.is_cut).then(|| {
            let text = "Prefixes that may cover names outside your scope are omitted.";
            view! { <p class="notice" role="status">{text}</p> }.into_any()
        })
    };
    view! {
        <div class="pagehead">
            <h1>{move || data.with(|data| format::unbroken(&data.title).into_owned())}</h1>
            <p>{move || data.with(|data| format::unbroken(&data.lead).into_owned())}</p>
            <p><a class="link" href="/waits">"Waits and deadlocks over all backends"</a></p>
        </div>
        <div class="stack contention">
            {changing(cut_notice)}
            <MapSection data url/>
            <div class="two">
                <TopPrefixes data url/>
                <div class="stack">
                    <WaitTrees data url/>
                    <Durations measure=Measure::Wait chart=wait_times/>
                    <Durations measure=Measure::Hold chart=hold_times/>
                </div>
            </div>
        </div>
    }
    .into_any()
}

/// Link to the locks of a template; `None` if no prefix matches them.
fn locks(backend: &str, prefix: &str) -> Option<String> {
    let literal = template::literal(prefix)?;
    Some(with_query("/locks", [("prefix", literal), ("backend", backend)]))
}
