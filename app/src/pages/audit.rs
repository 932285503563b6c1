//! Audit log page: filters, entries grouped by unlock, one entry with its changes, verification
//! status.

pub mod data;
pub mod entry;
mod integrity;
pub mod outcome_badge;
pub mod pending_reviews;
pub mod search;
pub mod table;

use leptos::prelude::*;

use self::data::{AuditData, AuditFilters, AuditSearchResult, AuditTableRow, audit};
use self::integrity::{chain_facts, chain_title};
use self::pending_reviews::PendingReviews;
use self::search::Search;
use self::table::LiveTable;
use crate::api::error::set_status;
use crate::components::live_bar::LiveBar;
use crate::components::load_boundary::LoadBoundary;
use crate::components::reactive::changing;
use crate::components::title::PageTitle;
use crate::links;
use crate::live::topics::Topics;
use crate::live::use_live;
use crate::navigation::use_search_of;

const PATH: &str = "/audit";
const TOPICS: Topics = Topics::ACTIVITY;
const LEAD: &str = "Append-only record of actions with user, reason and outcome. Each entry holds the hash of the previous one.";

#[component]
pub fn AuditPage() -> impl IntoView {
    let search = use_search_of(PATH);
    let load = use_live().refreshing(TOPICS, move || search.get(), audit);
    view! {
        <PageTitle text="Audit log"/>
        <div class="page">
            <LiveBar/>
            <LoadBoundary load shows=TOPICS let:data>
                <Body data/>
            </LoadBoundary>
        </div>
    }
}

#[component]
fn Body(data: Signal<AuditData>) -> impl IntoView {
    data.with_untracked(|data| match data.found {
        AuditSearchResult::Entries { .. } => {}
        AuditSearchResult::InvalidFilter => set_status(400),
        AuditSearchResult::Unavailable => set_status(503),
    });
    let rows = Memo::new(move |_| data.with(|data| rows(&data.found)));
    let has_rows = Memo::new(move |_| rows.with(|rows| !rows.is_empty()));
    let exports = move || data.with(|data| exports(&data.found, &data.filters));
    view! {
        <div class="pagehead">
            <h1>{move || data.with(|data| chain_title(&data.chain, data.found == AuditSearchResult::Unavailable))}</h1>
            <p>{LEAD}</p>
        </div>
        <div class="stack audit">
            {changing(move || data.with(|data| chain_facts(&data.chain, data.now)))}
            <PendingReviews data/>
            <section class="sec" aria-labelledby="rows">
                <header><h2 id="rows">"Entries"</h2><span class="note">"newest first, grouped by forced unlock"</span>{changing(exports)}</header>
                <Search data/>
                {changing(move || has_rows.get().then(|| view! { <LiveTable rows/> }.into_any()))}
                {changing(move || data.with(below_rows))}
            </section>
        </div>
    }
    .into_any()
}

fn exports(found: &AuditSearchResult, filters: &AuditFilters) -> AnyView {
    if !matches!(found, AuditSearchResult::Entries { .. }) {
        return ().into_any();
    }
    let link = |format: &'static str| {
        let pairs = std::iter::once(("format", format)).chain(filters.pairs());
        links::with_query("/v1/audit/export", pairs)
    };
    view! {
        <span class="end">
            "Export as "<a class="link" href=link("csv") download="" rel="external">"CSV"</a>" or "
            <a class="link" href=link("json") download="" rel="external">"JSON"</a>
        </span>
    }
    .into_any()
}

fn rows(found: &AuditSearchResult) -> Vec<AuditTableRow> {
    match found {
        AuditSearchResult::Entries { rows, .. } => rows.clone(),
        AuditSearchResult::InvalidFilter | AuditSearchResult::Unavailable => Vec::new(),
    }
}

/// Links to other pages of the list, or why it has no rows.
fn below_rows(data: &AuditData) -> AnyView {
    let filters = &data.filters;
    match &data.found {
        AuditSearchResult::InvalidFilter => {
            empty("Search not run", "Invalid filter; see the field above.", None)
        }
        AuditSearchResult::Unavailable => empty(
            "Audit log unavailable",
            "The store does not answer. No action runs without its audit entry.",
            None,
        ),
        AuditSearchResult::Entries {
            rows,
            older: None,
            is_first,
        } if rows.is_empty() => no_entries(filters, *is_first),
        AuditSearchResult::Entries { older, is_first, .. } => {
            let older = older.as_ref().map(|cursor| {
                let pairs = filters.pairs().chain([("cursor", cursor.as_str())]);
                view! { <a class="btn" rel="next" href=links::with_query(PATH, pairs)>"Older entries"</a> }
                    .into_any()
            });
            let newest = (!is_first).then(|| {
                view! { <a class="btn" href=links::with_query(PATH, filters.pairs())>"Newest entries"</a> }.into_any()
            });
            view! { <p class="foot">{newest}{older}</p> }.into_any()
        }
    }
}

fn no_entries(filters: &AuditFilters, is_first: bool) -> AnyView {
    if !is_first {
        let newest = links::with_query(PATH, filters.pairs());
        return empty(
            "No older entries",
            "The previous page was the last one.",
            Some((newest, "Newest entries")),
        );
    }
    if filters.pairs().next().is_none() {
        return empty(
            "No audit entries",
            "No forced unlock of your locks was requested.",
            None,
        );
    }
    empty(
        "No matching entries",
        "Names and prefixes are case-sensitive, times are UTC.",
        Some((PATH.to_owned(), "All entries")),
    )
}

fn empty(title: &'static str, text: &'static str, onward: Option<(String, &'static str)>) -> AnyView {
    let onward = onward
        .map(|(path, label)| view! { <p class="do"><a class="btn" href=path>{label}</a></p> }.into_any());
    view! { <div class="empty"><h3>{title}</h3><p>{text}</p>{onward}</div> }.into_any()
}
