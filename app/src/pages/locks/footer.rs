//! Table footer: visible rows, total, order, keys, link to the next page, a page that could not be fetched.

use domain::format;
use domain::query::{Sort, SortKey};
use leptos::prelude::*;

use super::Loaded;
use super::paging::LockPaging;
use super::row_buffer::Listing;
use super::url_state::Address;
use crate::components::legend::ExpiryBarLegend;
use crate::components::reactive::changing;
use crate::components::state_badge::Shape;
use crate::focus::pass_on_focus;
use crate::live::use_live;

#[component]
pub fn Foot(paging: LockPaging, loaded: Signal<Loaded>, address: Memo<Address>) -> impl IntoView {
    let LockPaging { listing, scroll, .. } = paging;
    let total = Memo::new(move |_| loaded.with(|loaded| loaded.page.total));
    let range = Memo::new(move |_| {
        let (seen, from) = (scroll.seen(), address.with(Address::from));
        let at = |row: usize| format::count(from + u64::try_from(row).unwrap_or(0));
        let unseen = if loaded.with(|loaded| loaded.page.complete) {
            ""
        } else {
            " known"
        };
        let order = order(address.with(Address::sort));
        format!(
            "Rows {} to {} of {}{unseen}, {order}",
            at(seen.start + 1),
            at(seen.end),
            format::count(total.get())
        )
    });
    view! {
        <footer class="foot small">
            <FailedPages paging/>
            <div class="fo">
                <span class="ink2" aria-live="off">{range}</span>
                <span class="ink3 not-narrow"><kbd>"j"</kbd>" "<kbd>"k"</kbd>" move"</span>
                <span class="ink3 not-narrow"><kbd>"↵"</kbd>" open"</span>
                <span class="ink3 not-narrow"><kbd>"?"</kbd>" all keys"</span>
                <Pages listing loaded address/>
            </div>
            <ExpiryBarLegend/>
        </footer>
    }
}

/// Notice that some rows could not be fetched. Without it the list would look complete.
#[component]
fn FailedPages(paging: LockPaging) -> impl IntoView {
    let failure = Memo::new(move |_| paging.failure());
    changing(move || {
        let error = failure.get()?;
        pass_on_focus(".foot .notice:has(button:focus)", ".fo span");
        Some(
            view! {
                <p class="notice critical" role="alert">
                    <Shape name="x"/>
                    <span>"Some rows could not be fetched: "{error.to_string()}"."</span>
                    <button class="btn s" r#type="button" on:click=move |_| paging.retry()>"Try again"</button>
                </p>
            }
            .into_any(),
        )
    })
}

/// Paging links without script; with it, scrolling fetches.
#[component]
fn Pages(listing: RwSignal<Listing>, loaded: Signal<Loaded>, address: Memo<Address>) -> impl IntoView {
    let live = use_live();
    let rows = move || loaded.with(|loaded| u64::try_from(loaded.page.locks.len()).unwrap_or(0));
    let before = Memo::new(move |_| {
        address.with(|address| {
            address
                .previous(u64::from(address.limit()))
                .map(|before| before.href())
        })
    });
    // A memo: on leaving the page the focus event reaches the listing last, and a plain closure
    // would run after its signals were disposed of.
    let next = Memo::new(move |_| {
        let cursor = loaded.with(|loaded| loaded.page.next_cursor.clone());
        // With a script, scrolling fetches more rows: no link is needed once the list is complete.
        let shown = !live.is_awake() || listing.with(|listing| listing.next_cursor().is_some());
        cursor.filter(|_| shown).map(|cursor| {
            address.with(|address| {
                (
                    address.next(&cursor, rows()).href(),
                    format!("Next {}", address.limit()),
                )
            })
        })
    });
    view! {
        <span class="nx">
            {move || before.get().map(|href| view! { <a class="btn s" rel="prev" href=href>"Previous"</a> }.into_any())}
            {move || next.get().map(|(href, label)| view! { <a class="btn s" rel="next" href=href>{label}</a> }.into_any())}
        </span>
    }
}

fn order(sort: Sort) -> &'static str {
    match (sort.key, sort.descending) {
        (SortKey::State, true) => "worst first",
        (SortKey::State, false) => "best first",
        (SortKey::Resource, false) => "by name",
        (SortKey::Resource, true) => "by name, backwards",
        (SortKey::Held, true) => "longest held first",
        (SortKey::Held, false) => "latest first",
        (SortKey::Remaining, false) => "least time left first",
        (SortKey::Remaining, true) => "most time left first",
        (SortKey::Waiters, true) => "most waiters first",
        (SortKey::Waiters, false) => "fewest waiters first",
    }
}
