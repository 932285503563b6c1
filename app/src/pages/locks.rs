//! Lock list by prefix: name tree, filters, facets, virtual table.

pub mod data;
pub mod facets;
pub mod filters;
pub mod footer;
pub mod notices;
pub mod paging;
pub mod row;
pub mod row_buffer;
pub mod scroll;
pub mod table;
pub mod tree;
pub mod url_state;
pub mod virtual_window;

use domain::query::InventoryPage;
use leptos::prelude::*;
use leptos_router::hooks::use_location;
use serde::{Deserialize, Serialize};

use self::data::{inventory, prefixes};
use crate::components::live_bar::LiveBar;
use crate::components::load_boundary::LoadBoundary;
use crate::components::title::PageTitle;
use crate::live::topics::Topics;
use crate::live::use_live;
use facets::Facets;
use filters::Filters;
use footer::Foot;
use notices::{CoverageNotices, NoRows};
use paging::LockPaging;
use row_buffer::Listing;
use table::Table;
use tree::Tree;
use url_state::Address;

/// A page of the list with the query that it answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Loaded {
    pub query: String,
    pub page: InventoryPage,
}

#[component]
pub fn LocksPage() -> impl IntoView {
    let location = use_location();
    let address = Memo::new(move |before: Option<&Address>| match before {
        // During navigation the URL is already that of another page.
        Some(before)
            if location
                .pathname
                .with(|path| path.trim_end_matches('/') != "/locks") =>
        {
            before.clone()
        }
        _ => location.search.with(|search| Address::parse(search)),
    });
    let live = use_live();
    let rows = live.refreshing(
        Topics::INVENTORY,
        move || address.with(Address::query),
        |query| async move { inventory(query.clone()).await.map(|page| Loaded { query, page }) },
    );
    let tree = live.refreshing(
        Topics::INVENTORY,
        move || address.with(|address| address.first("prefix").to_owned()),
        prefixes,
    );
    view! {
        <PageTitle text="Locks"/>
        <div class="pagehead"><h1>"Locks"</h1><LiveBar/></div>
        <div class="lk">
            <LoadBoundary load=tree part=true let:nodes><Tree nodes address/></LoadBoundary>
            <section aria-label="list of locks">
                <LoadBoundary load=rows part=true let:loaded><List loaded address/></LoadBoundary>
            </section>
        </div>
    }
}

#[component]
fn List(loaded: Signal<Loaded>, address: Memo<Address>) -> impl IntoView {
    let paging = LockPaging::new(loaded, address, use_live());
    let LockPaging { listing, scroll, .. } = paging;
    let names = Memo::new(move |_| {
        loaded.with(|loaded| {
            loaded
                .page
                .backends
                .iter()
                .map(|view| view.name.clone())
                .collect()
        })
    });
    let states = Memo::new(move |_| loaded.with(|loaded| loaded.page.states));
    let total = Memo::new(move |_| loaded.with(|loaded| loaded.page.total));
    let empty = Memo::new(move |_| listing.with(Listing::is_empty));
    view! {
        <Filters backends=names.into() address/>
        <Facets states=states.into() address/>
        <CoverageNotices loaded address/>
        {move || if empty.get() {
            view! { <NoRows loaded address/> }.into_any()
        } else {
            view! { <Table listing scroll total=total.into() address/> <Foot paging loaded address/> }.into_any()
        }}
    }
}
