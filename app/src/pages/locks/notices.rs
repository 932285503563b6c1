//! Coverage notices above the list, and the empty states.
//!
//! A backend that is down, stale, partial or not read yet never reads as "no locks".

use domain::backend::{BackendStatus, BackendView};
use domain::observation::Coverage;
use domain::query::InventoryPage;
use leptos::prelude::*;

use super::Loaded;
use super::url_state::Address;
use crate::components::empty_state::Empty;
use crate::components::reactive::changing;
use crate::components::state_badge::{Shape, status_badge};
use crate::format;

/// Notices shown; further backends are only named.
const LINES_MAX: usize = 3;

/// Notice of one backend with incomplete coverage.
#[derive(Debug, Clone, PartialEq)]
struct Line {
    status: BackendStatus,
    name: String,
    what: String,
}

/// One notice per backend with incomplete coverage, the worst first.
#[component]
pub fn CoverageNotices(loaded: Signal<Loaded>, address: Memo<Address>) -> impl IntoView {
    let lines = Memo::new(move |_| {
        let address = address.get();
        let mut lines = loaded.with(|loaded| {
            queried_backends(&loaded.page, &address)
                .filter_map(coverage_line)
                .collect::<Vec<_>>()
        });
        lines.sort_by_key(|line| std::cmp::Reverse(line.status));
        lines
    });
    changing(move || {
        let mut lines = lines.get();
        let omitted = lines.split_off(lines.len().min(LINES_MAX));
        let omitted = omitted
            .iter()
            .map(|line| line.name.clone())
            .collect::<Vec<_>>()
            .join(", ");
        let omitted = (!omitted.is_empty()).then(|| {
            view! { <li><span>"Also incomplete: "{omitted}"."</span><a class="link" href="/backends">"Reason"</a></li> }.into_any()
        });
        (!lines.is_empty()).then(|| {
            view! {
                <ul class="coverage-notices" aria-label="backends with incomplete coverage">
                    {lines.into_iter().map(|line| view! { <CoverageLine line/> }.into_any()).collect_view()}
                    {omitted}
                </ul>
            }
            .into_any()
        })
    })
}

#[component]
fn CoverageLine(line: Line) -> impl IntoView {
    let (shape, hue, label) = status_badge(line.status);
    let href = format!("/backends#{}", line.name);
    let reason = format!("Reason: {}", line.name);
    let what = format::prose(&line.what);
    view! {
        <li class=hue>
            <Shape name=shape/>
            <span><b>{line.name}</b>" "{label}". "<bdi class="what">{what}</bdi></span>
            <a class="link" href=href aria-label=reason>"Reason"</a>
        </li>
    }
}

/// Backends selected by the query.
fn queried_backends<'a>(
    page: &'a InventoryPage,
    address: &'a Address,
) -> impl Iterator<Item = &'a BackendView> {
    let all = address.first("backend").is_empty();
    page.backends
        .iter()
        .filter(move |backend| all || address.has("backend", backend.name.as_str()))
}

fn coverage_line(backend: &BackendView) -> Option<Line> {
    let why = backend
        .fault
        .as_ref()
        .map(|fault| format!(": {}", fault.message))
        .unwrap_or_default();
    let locks_are = domain::format::counted(backend.locks, "lock is", "locks are");
    let what = match (backend.status, &backend.coverage) {
        (BackendStatus::Starting, _) => "First scan in progress; its locks are not listed yet.".to_owned(),
        (BackendStatus::Down, _) if backend.age_ms.is_none() => {
            format!("No data since this console started{why}. Its locks are unknown.")
        }
        (BackendStatus::Down | BackendStatus::Stale, _) => {
            format!("Its {locks_are} listed as last observed{why}.")
        }
        (BackendStatus::Live | BackendStatus::Partial, Coverage::Partial { .. }) if backend.is_limited => {
            "Partial coverage.".to_owned()
        }
        (BackendStatus::Live | BackendStatus::Partial, Coverage::Partial { seen, of, why }) => match of {
            Some(of) => format!("{} of {} read: {why}.", format::count(*seen), format::count(*of)),
            None => format!("{} read, more exist: {why}.", format::count(*seen)),
        },
        (BackendStatus::Partial, Coverage::Complete) => format!("Partial coverage{why}."),
        (BackendStatus::Live, Coverage::Complete) => return None,
    };
    Some(Line {
        status: backend.status,
        name: backend.name.to_string(),
        what,
    })
}

/// Replaces the table when no row matches.
#[component]
pub fn NoRows(loaded: Signal<Loaded>, address: Memo<Address>) -> impl IntoView {
    changing(move || {
        let address = address.get();
        let filtered = address.is_filtered();
        let (title, explanation) = loaded.with(|loaded| empty_text(&loaded.page, &address));
        let clear = filtered.then(|| {
            view! {
                <div class="do"><a class="btn" href=address.cleared().href()>"Clear filters"</a></div>
            }
            .into_any()
        });
        view! { <Empty title><p>{explanation}</p>{clear}</Empty> }.into_any()
    })
}

fn empty_text(page: &InventoryPage, address: &Address) -> (&'static str, String) {
    let filtered = address.is_filtered();
    let queried: Vec<&BackendView> = queried_backends(page, address).collect();
    let all = queried.len();
    let blind = queried
        .iter()
        .filter(|backend| coverage_line(backend).is_some())
        .count();
    let starting = queried
        .iter()
        .all(|backend| backend.status == BackendStatus::Starting);
    let unseen = format!("{blind} of {all} backends have incomplete coverage: see above.");
    match (filtered, blind) {
        (_, _) if all == 0 && !filtered => (
            "No backend is configured",
            "Add your lock systems to the configuration; each becomes a backend.".to_owned(),
        ),
        (false, _) if starting => (
            "Reading the backends",
            "First scan in progress. The list updates by itself.".to_owned(),
        ),
        (false, 0) if all == 1 => (
            "No held locks",
            "The backend answers, and holds no lock.".to_owned(),
        ),
        (false, 0) => (
            "No held locks",
            format!("All {all} backends answer, and none of them holds a lock."),
        ),
        (false, _) => ("No known locks", format!("Coverage is incomplete: {unseen}")),
        (true, 0) => (
            "No matching locks",
            format!(
                "{} held.",
                format::counted(page.held_total, "lock is", "locks are")
            ),
        ),
        (true, _) => (
            "No matching known locks",
            format!(
                "{} known; {unseen}",
                format::counted(page.held_total, "lock is", "locks are")
            ),
        ),
    }
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_of_a_failure_are_written_out() {
        let line = Line {
            status: BackendStatus::Down,
            name: "pg".to_owned(),
            what: "a\u{202e}b".to_owned(),
        };
        let html = Owner::new_root(None).with(|| view! { <CoverageLine line/> }.into_any().to_html());
        assert!(html.contains("a\\u{202e}b"), "{html}");
    }
}
