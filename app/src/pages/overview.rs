//! Overview: locks that need attention, coverage, backend health.

pub mod charts;
pub mod deadlocks;
pub mod firing_alerts;
pub mod getting_started;
pub mod recent_incidents;
pub mod state_counts;
pub mod tour;
pub mod unreachable_backends;

use domain::backend::{BackendStatus, BackendView};
use domain::overview::{Overview, finding};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;

use self::charts::{Alerts, Incidents};
use self::deadlocks::Deadlocks;
use self::getting_started::Setup;
use self::state_counts::{States, Waiting};
use self::tour::Tour;
use self::unreachable_backends::BlindBackends;
use crate::api::codec::EncodedResponse;
use crate::api::error::ApiError;
use crate::components::backend_strip::BackendStrip;
use crate::components::live_bar::LiveBar;
use crate::components::load_boundary::LoadBoundary;
use crate::components::reactive::changing;
use crate::components::state_badge::Shape;
use crate::components::title::PageTitle;
use crate::components::worklist::Worklist;
use crate::format;
use crate::live::topics::Topics;
use crate::live::use_live;
use crate::navigation::use_search_of;

/// `search` is the page's query string: the time range of its charts.
#[server(name = GetOverview, prefix = "/api", endpoint = "overview", input = GetUrl, output = EncodedResponse)]
pub async fn overview(search: String) -> Result<Overview, ApiError> {
    let context = crate::api::error::from_context()?;
    let mut found = context.console.overview().await;
    if let Ok(overview) = &mut found {
        overview.charts = context.console.overview_charts(overview, &search).await;
    }
    context.set_status(found)
}

#[component]
pub fn OverviewPage() -> impl IntoView {
    let live = use_live();
    let search = use_search_of("/");
    let load = live.refreshing(Topics::ALL, move || search.get(), overview);
    view! {
        <PageTitle text="Overview"/>
        <div class="page">
            <LiveBar/>
            <LoadBoundary load let:data>
                <Body data/>
            </LoadBoundary>
        </div>
    }
}

#[component]
fn Body(data: Signal<Overview>) -> impl IntoView {
    let live = use_live();
    Effect::new(move |_| live.set_shown(data.with(|data| data.revision)));
    let is_set_up = Memo::new(move |_| data.with(|data| !data.backends.is_empty()));
    view! {
        <Head data/>
        <Tour/>
        {move || if is_set_up.get() { view! { <Sections data/> }.into_any() } else { view! { <Setup/> }.into_any() }}
    }
}

/// The headline, with running ages.
#[component]
fn Head(data: Signal<Overview>) -> impl IntoView {
    let since = move || {
        data.with(|_| ());
        use_live().elapsed()
    };
    let since = Memo::new(move |_| since());
    let finding = Memo::new(move |_| {
        let elapsed = since.get().get();
        data.with(|data| finding(data, elapsed))
    });
    view! {
        <div class="pagehead">
            <h1>{move || finding.with(|finding| format::unbroken(&finding.title).into_owned())}</h1>
            <p>{move || finding.with(|finding| format::unbroken(&finding.detail).into_owned())}</p>
        </div>
    }
    .into_any()
}

#[component]
fn Sections(data: Signal<Overview>) -> impl IntoView {
    let backends = Memo::new(move |_| data.with(|data| data.backends.clone()));
    let charts = Memo::new(move |_| data.with(|data| data.charts.clone()));
    view! {
        <Deadlocks data/>
        <div class="overview-top">
            <NeedsAttention data/>
            <div class="stack">
                <Alerts charts/>
                <States data/>
                <Waiting data/>
            </div>
        </div>
        <section class="sec" aria-labelledby="backends-head">
            <header>
                <h2 id="backends-head">"Backends"</h2>
                <span class="note">"age of the last observation; the tick marks two poll intervals, the stale limit"</span>
                <a class="end link" href="/backends">"Adapters and errors"</a>
            </header>
            <BackendStrip backends/>
        </section>
        <Incidents charts/>
    }
    .into_any()
}

#[component]
fn NeedsAttention(data: Signal<Overview>) -> impl IntoView {
    let attention = Memo::new(move |_| data.with(|data| data.attention.clone()));
    let note = move || {
        data.with(|data| match (data.attention.len() as u64, data.attention_total) {
            (_, 0) => None,
            (shown, total) if shown < total => Some(format!("worst {shown} of {}", format::count(total))),
            _ => Some("worst first".to_owned()),
        })
    };
    let all = move || {
        data.with(|data| match data.held_total {
            0 => "All locks".to_owned(),
            total => format!("All {}", format::counted(total, "lock", "locks")),
        })
    };
    view! {
        <section class="sec" aria-labelledby="attention-head">
            <header>
                <h2 id="attention-head">"Needs attention"</h2>
                <span class="note">{changing(note)}</span>
                <a class="end link" href="/locks">{changing(all)}</a>
            </header>
            <Worklist locks=attention empty=move || view! { <Calm data/> }.into_any()/>
            <BlindBackends data/>
        </section>
    }
    .into_any()
}

/// Empty worklist: names what would appear here. Claims health only for observed backends.
#[component]
fn Calm(data: Signal<Overview>) -> impl IntoView {
    let seen = Memo::new(move |_| data.with(|data| Seen::from_backends(&data.backends)));
    changing(move || match seen.get() {
        Seen::All => nothing_to_do("No lock is"),
        Seen::Some => nothing_to_do("No visible lock is"),
        Seen::Nothing => view! { <p class="calm">"No data: no backend has been read."</p> }.into_any(),
    })
}

fn nothing_to_do(none: &'static str) -> AnyView {
    view! {
        <p class="calm healthy">
            <Shape name="ok"/>
            <span>{none}" contended, expired, not renewed or without a TTL. Such locks are listed here, worst first, with the reason."</span>
        </p>
    }
    .into_any()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    All,
    Some,
    Nothing,
}

impl Seen {
    fn from_backends(backends: &[BackendView]) -> Self {
        let of = |status| backends.iter().filter(|backend| backend.status == status).count();
        match (of(BackendStatus::Live), of(BackendStatus::Partial)) {
            (live, _) if live == backends.len() => Self::All,
            (0, 0) => Self::Nothing,
            _ => Self::Some,
        }
    }
}
