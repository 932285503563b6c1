//! One lock: who, since when, still renewing, how long is left, who waits, and what to do next.
//!
//! It says how old each thing is and where the backend cannot tell. It changes nothing: unlocking is elsewhere.

mod answer;
pub mod copies;
pub mod facts;
pub mod head;
pub mod missing;
pub mod notices;
pub mod parts;
pub mod record;

use domain::detail::LockDetail;
use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::{use_params_map, use_query_map};

use self::answer::{Answer, find};
use self::facts::LockFacts;
use self::head::Head;
use self::missing::{BadAddress, Choose, Missing};
use self::notices::Notices;
use self::parts::{Blockers, Fate, NextSteps, Seen, Waiters};
use self::record::{Holders, Record};
use crate::components::live_bar::LiveBar;
use crate::components::load_boundary::LoadBoundary;
use crate::components::runway_large::RunwayLarge;
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
        find(backend, source, resource)
    });
    view! {
        <div class="page">
            <LiveBar/>
            <LoadBoundary load let:answer>
                <Found answer/>
            </LoadBoundary>
        </div>
    }
}

#[component]
fn Found(answer: Signal<Answer>) -> impl IntoView {
    let live = use_live();
    Effect::new(move |_| {
        answer.track();
        live.note_arrived();
    });
    let detail = Memo::new(move |_| match answer.get() {
        Answer::Lock(detail) => Some(*detail),
        Answer::Choose { .. } | Answer::Missing { .. } | Answer::BadAddress { .. } => None,
    });
    let kind = Memo::new(move |_| answer.with(std::mem::discriminant));
    move || {
        kind.track();
        match answer.get_untracked() {
            Answer::Lock(first) => {
                // The last detail stands in for the moment in which this view is on its way out.
                let detail = Memo::new(move |_| detail.get().unwrap_or_else(|| (*first).clone()));
                view! { <Body detail=detail.into()/> }.into_any()
            }
            Answer::Choose {
                backend,
                resource,
                sources,
            } => view! { <Choose backend resource sources/> }.into_any(),
            Answer::Missing {
                backend,
                resource,
                what,
            } => view! { <Missing backend resource what/> }.into_any(),
            Answer::BadAddress { what } => view! { <BadAddress what/> }.into_any(),
        }
    }
}

#[component]
fn Body(detail: Signal<LockDetail>) -> impl IntoView {
    let title = move || detail.with(head::document_title);
    let gone = move || detail.with(LockDetail::is_gone);
    view! {
        <Title text=title/>
        <Head detail/>
        <Notices detail/>
        <div class="lock" class:is-gone=gone>
            <LockFacts detail/>
            {move || (!gone()).then(|| view! { <RunwaySection detail/> })}
            // What to do comes first in the page; a wide window has it at the right.
            <div class="lock-cols">
                <div class="stack"><NextSteps detail/><Fate detail/></div>
                <div class="stack">
                    <div class="lock-pair"><Waiters detail/><Seen detail/></div>
                    <Blockers detail/>
                    <Holders detail/>
                    <Record detail/>
                </div>
            </div>
        </div>
    }
    .into_any()
}

#[component]
fn RunwaySection(detail: Signal<LockDetail>) -> impl IntoView {
    let lock = Memo::new(move |_| detail.with(|detail| detail.lock.clone()));
    let note = move || lock.with(head::runway_note);
    view! {
        <section class="sec" aria-labelledby="runway-head">
            <header><h2 id="runway-head">"Lease runway"</h2><span class="note">{note}</span></header>
            {move || view! { <RunwayLarge lock=lock.get()/> }}
        </section>
    }
    .into_any()
}
