//! Lock page: owner, hold time, renewals, time left, waiters, next steps.
//!
//! Shows the age of its data and what the backend does not report. Read-only: unlocking has its
//! own page.

pub mod charts;
pub mod copy_commands;
pub mod data;
pub mod facts;
pub mod header;
mod lookup_result;
pub mod nodes;
pub mod not_found;
pub mod notices;
pub mod past_facts;
pub mod raw_record;
pub mod recent_events;
pub mod sections;

use domain::lock_detail::LockDetail;
use domain::reported::Reported;
use leptos::prelude::*;
use leptos_router::hooks::{use_location, use_params_map, use_query_map};

use self::charts::{HoldTimes, OwnershipSection, WaitTimes};
use self::facts::LockFacts;
use self::header::Head;
use self::lookup_result::{LookupResult, find};
use self::nodes::Nodes;
use self::not_found::{BadAddress, Choose, Missing};
use self::notices::Notices;
use self::past_facts::PastFacts;
use self::raw_record::{Holders, Record};
use self::recent_events::RecentEvents;
use self::sections::{Blockers, NextSteps, RelatedLocks, Waiters};
use crate::charts::simulated_mark::provide_simulated;
use crate::components::expiry_bar_large::ExpiryBarLarge;
use crate::components::live_bar::LiveBar;
use crate::components::load_boundary::LoadBoundary;
use crate::components::reactive::changing;
use crate::components::title::PageTitle;
use crate::links;
use crate::live::topics::Topics;
use crate::live::use_live;

#[component]
pub fn LockPage() -> impl IntoView {
    let (params, query, location) = (use_params_map(), use_query_map(), use_location());
    let (path, search) = (location.pathname, location.search);
    let url_parts = move || {
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
            // During navigation the page outlives its URL for a moment.
            Some(before) if !path.with(|path| path.starts_with("/locks/")) => before.clone(),
            _ => url_parts(),
        },
    );
    let load = use_live().refreshing(
        Topics::INVENTORY,
        move || names.get(),
        |(backend, source, resource, search)| find(backend, source, resource, search),
    );
    view! {
        <div class="page">
            <LiveBar/>
            <LoadBoundary load shows=Topics::INVENTORY let:answer>
                <Found answer/>
            </LoadBoundary>
        </div>
    }
}

#[component]
fn Found(answer: Signal<LookupResult>) -> impl IntoView {
    let detail = Memo::new(move |before: Option<&Option<LockDetail>>| {
        followed(before.and_then(Option::as_ref), answer.get())
    });
    let is_lock = Memo::new(move |_| detail.with(Option::is_some));
    changing(move || {
        // Within a lock its parts update by themselves; only another kind of result creates a
        // new view.
        if is_lock.get() {
            view! { <Followed detail/> }.into_any()
        } else {
            lookup_view(answer.get())
        }
    })
}

/// The detail to show after a response. A lock that is released while displayed stays, marked as
/// gone.
fn followed(before: Option<&LockDetail>, answer: LookupResult) -> Option<LockDetail> {
    match answer {
        LookupResult::Lock(detail) => Some(*detail),
        LookupResult::Missing {
            backend,
            resource,
            what,
        } => {
            let id = |last: &&LockDetail| {
                last.lock.id.backend.as_str() == backend && last.lock.id.resource.text() == resource
            };
            before.filter(id).map(|last| LockDetail {
                fresh: Reported::NotApplicable(what.into()),
                ..last.clone()
            })
        }
        LookupResult::Choose { .. } | LookupResult::BadAddress { .. } => None,
    }
}

#[component]
fn Followed(detail: Memo<Option<LockDetail>>) -> impl IntoView {
    detail.get_untracked().map(|first| {
        // The last detail is used while this view is being replaced.
        let detail = Memo::new(move |_| detail.get().unwrap_or_else(|| first.clone()));
        view! { <Body detail=detail.into()/> }.into_any()
    })
}

fn lookup_view(answer: LookupResult) -> AnyView {
    match answer {
        LookupResult::Lock(_) => ().into_any(),
        LookupResult::Choose {
            backend,
            resource,
            sources,
        } => view! { <Choose backend resource sources/> }.into_any(),
        LookupResult::Missing {
            backend,
            resource,
            what,
        } => view! { <Missing backend resource what/> }.into_any(),
        LookupResult::BadAddress { what } => view! { <BadAddress what/> }.into_any(),
    }
}

#[component]
fn Body(detail: Signal<LockDetail>) -> impl IntoView {
    let title = move || detail.with(header::document_title);
    provide_simulated(move || {
        detail.with(|detail| {
            detail
                .charts
                .as_ref()
                .and_then(|charts| charts.range.simulated_mark())
        })
    });
    let is_past = Memo::new(move |_| detail.with(|detail| detail.past.is_some()));
    // The lock was acquired or released while displayed: another view.
    let body = move || {
        if is_past.get() {
            past_section(detail)
        } else {
            held_section(detail)
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

fn held_section(detail: Signal<LockDetail>) -> AnyView {
    let is_gone = move || detail.with(LockDetail::is_gone);
    view! {
        <div class="lock" class:is-gone=is_gone>
            <LockFacts detail/>
            {move || (!is_gone()).then(|| view! { <TimeLeftSection detail/> }.into_any())}
            <Nodes detail/>
            <OwnershipSection detail/>
            // Next steps come first in the page; a wide window has them at the right.
            <div class="lock-cols">
                <div class="stack"><NextSteps detail/><RelatedLocks detail/></div>
                <div class="stack">
                    <div class="lock-pair">
                        <Waiters detail/>
                        <HoldTimes detail/>
                    </div>
                    <Blockers detail/>
                    <Holders detail/>
                    <Record detail/>
                    <WaitTimes detail/>
                    <RecentEvents detail/>
                </div>
            </div>
        </div>
    }
    .into_any()
}

/// A lock without a known holder: its past.
fn past_section(detail: Signal<LockDetail>) -> AnyView {
    view! {
        <div class="lock">
            <PastFacts detail/>
            <Nodes detail/>
            <OwnershipSection detail/>
            <div class="lock-pair"><HoldTimes detail/><RecentEvents detail/></div>
            <WaitTimes detail/>
        </div>
    }
    .into_any()
}

#[component]
fn TimeLeftSection(detail: Signal<LockDetail>) -> impl IntoView {
    let lock = Memo::new(move |_| detail.with(|detail| detail.lock.clone()));
    let note = move || lock.with(header::time_left_note);
    view! {
        <section class="sec" aria-labelledby="time-left">
            <header><h2 id="time-left">"Time left"</h2><span class="note">{changing(note)}</span></header>
            {move || view! { <ExpiryBarLarge lock=lock.get()/> }.into_any()}
        </section>
    }
    .into_any()
}
