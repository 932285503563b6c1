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

use domain::detail::{LockCharts, LockDetail};
use domain::known::Known;
use leptos::prelude::*;
use leptos_router::hooks::{use_location, use_params_map, use_query_map};

use self::answer::{Answer, find};
use self::facts::LockFacts;
use self::head::Head;
use self::missing::{BadAddress, Choose, Missing};
use self::notices::Notices;
use self::parts::{Blockers, Fate, NextSteps, Waiters};
use self::record::{Holders, Record};
use crate::components::changing::changing;
use crate::components::live_bar::LiveBar;
use crate::components::load_boundary::LoadBoundary;
use crate::components::made::Made;
use crate::components::runway_large::RunwayLarge;
use crate::components::title::PageTitle;
use crate::links;
use crate::live::use_live;

#[component]
pub fn LockPage() -> impl IntoView {
    let (params, query, location) = (use_params_map(), use_query_map(), use_location());
    let (path, search) = (location.pathname, location.search);
    let here = move || {
        let get = |name: &str| params.read().get(name).unwrap_or_default();
        (
            get("backend"),
            query.read().get("source").unwrap_or_default(),
            links::resource(get("resource"), query.read().get("name")),
            search.get(),
        )
    };
    let names = Memo::new(
        move |before: Option<&(String, String, String, String)>| match before {
            // The page outlives its address for a moment on the way to another; that one is not of a lock.
            Some(before) if !path.with(|path| path.starts_with("/locks/")) => before.clone(),
            _ => here(),
        },
    );
    let load = use_live().refreshing(
        move || names.get(),
        |(backend, source, resource, search)| find(backend, source, resource, search),
    );
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
        answer.with(|_| ());
        live.note_arrived();
    });
    let detail = Memo::new(move |before: Option<&Option<LockDetail>>| {
        followed(before.and_then(Option::as_ref), answer.get())
    });
    let is_lock = Memo::new(move |_| detail.with(Option::is_some));
    changing(move || {
        // Within a lock its parts follow by themselves; only another kind of answer makes a new view.
        if is_lock.get() {
            view! { <Followed detail/> }.into_any()
        } else {
            other(answer.get())
        }
    })
}

/// What to show of a lock after one more answer. One that vanishes before the eye stays, marked as gone.
fn followed(before: Option<&LockDetail>, answer: Answer) -> Option<LockDetail> {
    match answer {
        Answer::Lock(detail) => Some(*detail),
        Answer::Missing {
            backend,
            resource,
            what,
        } => {
            let id = |last: &&LockDetail| {
                last.lock.id.backend.as_str() == backend && last.lock.id.resource.text() == resource
            };
            before.filter(id).map(|last| LockDetail {
                fresh: Known::Absent(what.into()),
                ..last.clone()
            })
        }
        Answer::Choose { .. } | Answer::BadAddress { .. } => None,
    }
}

#[component]
fn Followed(detail: Memo<Option<LockDetail>>) -> impl IntoView {
    detail.get_untracked().map(|first| {
        // The last detail stands in for the moment in which this view is on its way out.
        let detail = Memo::new(move |_| detail.get().unwrap_or_else(|| first.clone()));
        view! { <Body detail=detail.into()/> }.into_any()
    })
}

fn other(answer: Answer) -> AnyView {
    match answer {
        Answer::Lock(_) => ().into_any(),
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

#[component]
fn Body(detail: Signal<LockDetail>) -> impl IntoView {
    let title = move || detail.with(head::document_title);
    let is_past = Memo::new(move |_| detail.with(|detail| detail.is_past));
    // Somebody takes it, or gives it back, before the eye: another view.
    let body = move || {
        if is_past.get() {
            made(detail, |charts| &charts.past)
        } else {
            held(detail)
        }
    };
    view! {
        <PageTitle text=title/>
        <Head detail/>
        <Notices detail/>
        {changing(body)}
    }
    .into_any()
}

fn held(detail: Signal<LockDetail>) -> AnyView {
    let gone = move || detail.with(LockDetail::is_gone);
    view! {
        <div class="lock" class:is-gone=gone>
            <LockFacts detail/>
            {move || (!gone()).then(|| view! { <RunwaySection detail/> }.into_any())}
            {made(detail, |charts| &charts.ownership)}
            // What to do comes first in the page; a wide window has it at the right.
            <div class="lock-cols">
                <div class="stack"><NextSteps detail/><Fate detail/></div>
                <div class="stack">
                    <div class="lock-pair">
                        <Waiters detail/>
                        {made(detail, |charts| &charts.hold_time)}
                    </div>
                    <Blockers detail/>
                    <Holders detail/>
                    <Record detail/>
                    {made(detail, |charts| &charts.seen)}
                </div>
            </div>
        </div>
    }
    .into_any()
}

/// One of the parts that the server made.
fn made(detail: Signal<LockDetail>, part: fn(&LockCharts) -> &String) -> AnyView {
    view! { <Made html=move || detail.with(|detail| part(&detail.charts).clone())/> }.into_any()
}

#[component]
fn RunwaySection(detail: Signal<LockDetail>) -> impl IntoView {
    let lock = Memo::new(move |_| detail.with(|detail| detail.lock.clone()));
    let note = move || lock.with(head::runway_note);
    view! {
        <section class="sec" aria-labelledby="runway-head">
            <header><h2 id="runway-head">"Lease runway"</h2><span class="note">{changing(note)}</span></header>
            {move || view! { <RunwayLarge lock=lock.get()/> }.into_any()}
        </section>
    }
    .into_any()
}
