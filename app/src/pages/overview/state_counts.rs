//! Number of locks per state, as links into the list, and the number of waiters.

use domain::backend::BackendView;
use domain::format;
use domain::overview::Overview;
use domain::reported::Reported;
use domain::state::StateCounts;
use leptos::prelude::*;

use crate::components::reactive::changing;
use crate::components::state_badge::StateBadge;
use crate::links;

#[component]
pub fn States(data: Signal<Overview>) -> impl IntoView {
    let is_seen = |data: &Overview| data.backends.iter().any(|backend| backend.age_ms.is_some());
    let counts = Memo::new(move |_| data.with(|data| is_seen(data).then_some(data.states)));
    view! {
        <section class="sec" aria-labelledby="states-head">
            <header>
                <h2 id="states-head">"By state"</h2>
                <span class="note">"each lock once, by worst state"</span>
            </header>
            <ul class="counts">{move || rows(counts.get())}</ul>
        </section>
    }
    .into_any()
}

/// `None`: no backend was ever observed, so zero is not known either.
fn rows(counts: Option<StateCounts>) -> AnyView {
    let Some(counts) = counts else {
        return view! { <li class="none ink3">"No data: no backend has been read."</li> }.into_any();
    };
    if counts.total() == 0 {
        return view! { <li class="none ink3">"No visible lock is held."</li> }.into_any();
    }
    counts
        .iter()
        .map(|(state, count)| {
            view! {
                <li>
                    <a href=links::with_query("/locks", [("state", state.as_str())])>
                        <StateBadge state/>
                        <span class="num">{format::count(count)}</span>
                    </a>
                </li>
            }
            .into_any()
        })
        .collect_view()
        .into_any()
}

#[component]
pub fn Waiting(data: Signal<Overview>) -> impl IntoView {
    let total = Memo::new(move |_| data.with(|data| data.waiters_total));
    let backends = Memo::new(move |_| {
        let pick = |data: &Overview| {
            data.backends
                .iter()
                .map(|backend| (backend.name.to_string(), waiters(backend)))
                .collect::<Vec<_>>()
        };
        data.with(pick)
    });
    // The note says whether the sum covers all backends: one that reports no waiters does not count as zero.
    let note = move || {
        let total = format::count(total.get());
        backends.with(|backends| {
            let known_count = backends.iter().filter(|(_, waiters)| waiters.is_known()).count();
            match known_count {
                0 => None,
                all if all == backends.len() => Some(format!("{total} in all")),
                _ => Some(format!("{total} visible")),
            }
        })
    };
    let rows = move || {
        backends
            .get()
            .into_iter()
            .map(|(name, waiters)| view! { <WaitingOn name waiters/> }.into_any())
            .collect_view()
    };
    view! {
        <section class="sec" aria-labelledby="waiting-head">
            <header>
                <h2 id="waiting-head">"Waiting"</h2>
                <span class="note">{changing(note)}</span>
                <a class="end link" href="/locks?sort=-waiters">"Longest queues"</a>
            </header>
            <ul class="counts">{changing(rows)}</ul>
        </section>
    }
    .into_any()
}

/// Without an observation of the backend even zero is unknown.
fn waiters(backend: &BackendView) -> Reported<u64> {
    if backend.age_ms.is_some() {
        backend.waiters.clone()
    } else {
        Reported::unknown("no data yet")
    }
}

#[component]
fn WaitingOn(name: String, waiters: Reported<u64>) -> impl IntoView {
    let href = links::with_query("/locks", [("backend", name.as_str()), ("sort", "-waiters")]);
    let count = match waiters {
        Reported::Value(0) => view! { <span class="num ink3">"0"</span> }.into_any(),
        Reported::Value(count) => {
            view! { <span class="num waiting wn">{format::count(count)}</span> }.into_any()
        }
        Reported::Unknown(why) => {
            view! { <span class="num ink3" title=why.to_string()>"unknown"</span> }.into_any()
        }
        Reported::NotApplicable(why) => {
            view! { <span class="num ink3" title=why.to_string()>"none"</span> }.into_any()
        }
    };
    view! { <li><a href=href><span class="name">{name}</span>{count}</a></li> }
}
