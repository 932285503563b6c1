//! How many locks are in which state, each a way into the list; and where the waiting is.

use domain::backend::BackendView;
use domain::human;
use domain::known::Known;
use domain::overview::Overview;
use domain::state::StateCounts;
use leptos::prelude::*;

use crate::components::changing::changing;
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
                <span class="note">"each lock once, by its worst"</span>
            </header>
            <ul class="counts">{move || rows(counts.get())}</ul>
        </section>
    }
    .into_any()
}

/// None: nothing was ever seen, so even "none" would be a claim.
fn rows(counts: Option<StateCounts>) -> AnyView {
    let Some(counts) = counts else {
        return view! { <li class="none ink3">"Not known: no backend has been read."</li> }.into_any();
    };
    if counts.total() == 0 {
        return view! { <li class="none ink3">"No lock is held, as far as can be seen."</li> }.into_any();
    }
    counts
        .iter()
        .map(|(state, count)| {
            view! {
                <li>
                    <a href=links::with_query("/locks", [("state", state.wire())])>
                        <StateBadge state/>
                        <span class="num">{human::count(count)}</span>
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
    // A sum says of how much it is the sum: backends that do not tell are not counted as zero.
    let note = move || {
        let total = human::count(total.get());
        backends.with(|backends| {
            let told = backends.iter().filter(|(_, waiters)| waiters.is_known()).count();
            match told {
                0 => None,
                all if all == backends.len() => Some(format!("{total} in all")),
                _ => Some(format!("{total} that can be seen")),
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

/// Of a backend that was never seen, even a count of zero is unknown.
fn waiters(backend: &BackendView) -> Known<u64> {
    if backend.age_ms.is_some() {
        backend.waiters.clone()
    } else {
        Known::unknown("it was never seen")
    }
}

#[component]
fn WaitingOn(name: String, waiters: Known<u64>) -> impl IntoView {
    let href = links::with_query("/locks", [("backend", name.as_str()), ("sort", "-waiters")]);
    let count = match waiters {
        Known::Known(0) => view! { <span class="num ink3">"0"</span> }.into_any(),
        Known::Known(count) => view! { <span class="num waiting wn">{human::count(count)}</span> }.into_any(),
        Known::Unknown(why) => {
            view! { <span class="num ink3" title=why.to_string()>"unknown"</span> }.into_any()
        }
        Known::Absent(why) => view! { <span class="num ink3" title=why.to_string()>"none"</span> }.into_any(),
    };
    view! { <li><a href=href><span class="name">{name}</span>{count}</a></li> }
}
