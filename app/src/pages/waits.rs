//! Waits page: deadlocks with their cycles, suggested releases, all waits, blocker trees, sources.

pub mod deadlock;
pub mod tables;

use domain::waits::page::{Cut, DeadlockView, WaitsPage as Page};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;

use self::deadlock::deadlock_sections;
use self::tables::{WaitList, WaitSources, nothing_read};
use crate::api::codec::EncodedResponse;
use crate::api::error::ApiError;
use crate::components::blocker_tree::BlockerTree;
use crate::components::live_bar::LiveBar;
use crate::components::load_boundary::LoadBoundary;
use crate::components::reactive::changing;
use crate::components::title::PageTitle;
use crate::format;
use crate::live::topics::Topics;
use crate::live::use_live;

#[server(name = GetWaits, prefix = "/api", endpoint = "waits", input = GetUrl, output = EncodedResponse)]
pub async fn waits() -> Result<Page, ApiError> {
    let context = crate::api::error::from_context()?;
    context.set_status(context.console.waits().await)
}

#[component]
pub fn WaitsPage() -> impl IntoView {
    let load = use_live().refreshing(Topics::INVENTORY, || (), |()| waits());
    view! {
        <PageTitle text="Waits"/>
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
    view! {
        <div class="pagehead">
            <nav class="crumbs" aria-label="path"><ol><li><a class="link" href="/contention">"Contention"</a></li></ol></nav>
            <h1>{move || data.with(|data| format::unbroken(&data.title).into_owned())}</h1>
            <p>{move || data.with(|data| format::unbroken(&data.lead).into_owned())}</p>
        </div>
        {changing(move || data.with(notices))}
        <div class="waits two">
            <div class="stack">
                <Deadlocks data/>
                <WaitList data/>
            </div>
            <div class="stack">
                <Trees data/>
                <WaitSources data/>
            </div>
        </div>
    }
    .into_any()
}

/// Why the graph may be incomplete.
fn notices(data: &Page) -> AnyView {
    let help = data.rules.is_empty().then(|| {
        view! {
            <p class="notice" role="status">
                "No identity rule is configured: owners of different backends are never joined, so a deadlock across systems \
                cannot be seen. "<a class="link" href="/docs/waits">"Identity rules"</a>
            </p>
        }
        .into_any()
    });
    let mut texts: Vec<String> = Vec::new();
    if data.is_limited {
        texts.push("Locks outside your scope are shown without their names.".to_owned());
    }
    match data.cut {
        Some(Cut::Waits(waits)) => texts.push(format!(
            "{} left out, because the graph has reached its limits.",
            format::counted(waits, "wait is", "waits are")
        )),
        Some(Cut::Some) => {
            texts.push("Some waits are left out, because the graph has reached its limits.".to_owned())
        }
        None => {}
    }
    let texts: Vec<AnyView> = texts
        .into_iter()
        .map(|text| view! { <p class="notice" role="status">{text}</p> }.into_any())
        .collect();
    view! { {help}{texts} }.into_any()
}

/// Created again only when a deadlock changes, not when only its times change, so that a control in it keeps the focus.
#[component]
fn Deadlocks(data: Signal<Page>) -> impl IntoView {
    let steady = Memo::new(move |_| {
        data.with(|data| {
            let deadlocks = data.deadlocks.iter().map(DeadlockView::without_times);
            (
                deadlocks.collect::<Vec<_>>(),
                data.deadlocks_total,
                data.title.clone(),
            )
        })
    });
    changing(move || {
        steady.with(|(deadlocks, total, title)| match deadlocks.is_empty() {
            true => no_deadlock(title.clone()),
            false => deadlock_list(data, deadlocks, *total),
        })
    })
}

fn no_deadlock(title: String) -> AnyView {
    let text = "A deadlock would be drawn here, with the release that frees most owners.";
    view! { <section class="sec"><div class="empty"><h2>{title}</h2><p>{text}</p></div></section> }.into_any()
}

fn deadlock_list(data: Signal<Page>, deadlocks: &[DeadlockView], total: usize) -> AnyView {
    let all: Vec<AnyView> = deadlocks
        .iter()
        .enumerate()
        .map(|(at, deadlock)| deadlock_sections(at, deadlock, data, total > 1))
        .collect();
    let shown = deadlocks.len();
    let more = (shown < total).then(|| {
        view! { <p class="small ink2">{format!("{shown} of {total} deadlocks, certain ones first.")}</p> }
            .into_any()
    });
    view! { {all}{more} }.into_any()
}

#[component]
fn Trees(data: Signal<Page>) -> impl IntoView {
    let note = move || {
        data.with(|data| match (data.trees.len(), data.trees_total) {
            (shown, total) if shown < total => format!("largest {shown} of {total}"),
            _ => "largest first".to_owned(),
        })
    };
    let trees = move || {
        data.with(|data| match (data.trees.is_empty(), data.is_unread()) {
            (true, true) => nothing_read("Waiters: unknown"),
            (true, false) => {
                view! { <div class="empty"><h3>"No waiters now"</h3><p>"As of the last scans."</p></div> }
                    .into_any()
            }
            (false, _) => view! { <BlockerTree blockers=data.trees.clone()/> }.into_any(),
        })
    };
    view! {
        <section class="sec" aria-labelledby="trees">
            <header><h2 id="trees">"Blocker trees"</h2><span class="note">{changing(note)}</span></header>
            {changing(trees)}
        </section>
    }
    .into_any()
}
