//! What the list cannot show, said above it; and what an empty list means.
//!
//! A backend that is down, stale, partial or not read yet never reads as "no locks".

use domain::backend::{BackendStatus, BackendView};
use domain::human;
use domain::observation::Coverage;
use domain::query::InventoryPage;
use leptos::prelude::*;

use super::Loaded;
use super::address::Address;
use crate::components::changing::changing;
use crate::components::empty::Empty;
use crate::components::state_badge::{Shape, backend_look};

/// Lines shown; further backends are only named.
const LINES_MAX: usize = 3;

/// What is said of one backend that is not seen whole.
#[derive(Debug, Clone, PartialEq)]
struct Line {
    status: BackendStatus,
    name: String,
    what: String,
}

/// One line per backend that is not seen whole, the worst first.
#[component]
pub fn Blindness(loaded: Signal<Loaded>, address: Memo<Address>) -> impl IntoView {
    let lines = Memo::new(move |_| {
        let address = address.get();
        let mut lines = loaded.with(|loaded| {
            asked(&loaded.page, &address)
                .filter_map(blindness)
                .collect::<Vec<_>>()
        });
        lines.sort_by_key(|line| std::cmp::Reverse(line.status));
        lines
    });
    changing(move || {
        let mut lines = lines.get();
        let rest = lines.split_off(lines.len().min(LINES_MAX));
        let rest = rest
            .iter()
            .map(|line| line.name.clone())
            .collect::<Vec<_>>()
            .join(", ");
        let rest = (!rest.is_empty()).then(|| {
            view! { <li><span>"Not seen whole either: "{rest}"."</span><a class="link" href="/backends">"Why"</a></li> }.into_any()
        });
        (!lines.is_empty()).then(|| {
            view! {
                <ul class="blindness" aria-label="backends not seen whole">
                    {lines.into_iter().map(|line| view! { <BlindLine line/> }.into_any()).collect_view()}
                    {rest}
                </ul>
            }
            .into_any()
        })
    })
}

#[component]
fn BlindLine(line: Line) -> impl IntoView {
    let (shape, hue, word) = backend_look(line.status);
    view! {
        <li class=hue>
            <Shape name=shape/>
            <span><b>{line.name}</b>" "{word}". "<span class="what">{line.what}</span></span>
            <a class="link" href="/backends" aria-label="Why, on the page of backends">"Why"</a>
        </li>
    }
}

/// The backends that the list is about.
fn asked<'a>(page: &'a InventoryPage, address: &'a Address) -> impl Iterator<Item = &'a BackendView> {
    let all = address.first("backend").is_empty();
    page.backends
        .iter()
        .filter(move |backend| all || address.has("backend", backend.name.as_str()))
}

fn blindness(backend: &BackendView) -> Option<Line> {
    let why = backend
        .fault
        .as_ref()
        .map(|fault| format!(": {}", fault.message))
        .unwrap_or_default();
    let locks = human::counted(backend.locks, "lock", "locks");
    let what = match (backend.status, &backend.coverage) {
        (BackendStatus::Starting, _) => {
            "It is being read for the first time; its locks are not listed yet.".to_owned()
        }
        (BackendStatus::Down, _) if backend.age_ms.is_none() => {
            format!("Never seen since this console started{why}. What it holds is not known.")
        }
        (BackendStatus::Down | BackendStatus::Stale, _) => {
            format!("Its {locks} are listed as they were last seen{why}.")
        }
        (BackendStatus::Live | BackendStatus::Partial, Coverage::Partial { .. }) if backend.is_limited => {
            "Seen in part.".to_owned()
        }
        (BackendStatus::Live | BackendStatus::Partial, Coverage::Partial { seen, of, why }) => match of {
            Some(of) => format!("Seen {} of {}: {why}.", human::count(*seen), human::count(*of)),
            None => format!("Seen {} and there is more: {why}.", human::count(*seen)),
        },
        (BackendStatus::Partial, Coverage::Complete) => format!("Seen in part{why}."),
        (BackendStatus::Live, Coverage::Complete) => return None,
    };
    Some(Line {
        status: backend.status,
        name: backend.name.to_string(),
        what,
    })
}

/// Stands in for the table when no row matches.
#[component]
pub fn NoRows(loaded: Signal<Loaded>, address: Memo<Address>) -> impl IntoView {
    changing(move || {
        let address = address.get();
        let filtered = address.is_filtered();
        let words = loaded.with(|loaded| words(&loaded.page, &address));
        let clear = filtered.then(|| {
            view! {
                <div class="do"><a class="btn" href=address.cleared().href()>"Clear filters"</a></div>
            }
            .into_any()
        });
        view! { <Empty title=words.0><p>{words.1}</p>{clear}</Empty> }.into_any()
    })
}

fn words(page: &InventoryPage, address: &Address) -> (&'static str, String) {
    let filtered = address.is_filtered();
    let asked: Vec<&BackendView> = asked(page, address).collect();
    let all = asked.len();
    let blind = asked
        .iter()
        .filter(|backend| blindness(backend).is_some())
        .count();
    let starting = asked
        .iter()
        .all(|backend| backend.status == BackendStatus::Starting);
    let unseen = format!("{blind} of {all} backends are not seen whole, as said above.");
    match (filtered, blind) {
        (_, _) if all == 0 && !filtered => (
            "No backend is configured",
            "Name the systems that hold your locks in the configuration; each becomes a backend here."
                .to_owned(),
        ),
        (false, _) if starting => (
            "Reading the backends",
            "Nothing has been seen yet. The list fills by itself.".to_owned(),
        ),
        (false, 0) => (
            "Nobody holds a lock",
            format!("All {all} backends answer, and none of them holds a lock."),
        ),
        (false, _) => (
            "No lock is known",
            format!("That is not to say that there is none: {unseen}"),
        ),
        (true, 0) => (
            "No lock matches",
            format!("{} are held.", human::counted(page.held_total, "lock", "locks")),
        ),
        (true, _) => (
            "No known lock matches",
            format!(
                "{} are known; {unseen}",
                human::counted(page.held_total, "lock", "locks")
            ),
        ),
    }
}
