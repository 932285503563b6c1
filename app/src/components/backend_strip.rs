//! Health of every backend, side by side: age, size, coverage, latency.
//!
//! A backend that is stale or down is hatched and keeps its last numbers with "as of".

use domain::backend::{BackendStatus, BackendView, OUTSIDE_SCOPE};
use domain::reported::Reported;
use leptos::prelude::*;

use super::age_bar::AgeBar;
use super::elapsed::Age as AgeText;
use super::sparkline::Sparkline;
use super::state_badge::BackendBadge;
use super::time::observed_time;
use crate::components::reactive::changing;
use crate::format;

#[component]
pub fn BackendStrip(#[prop(into)] backends: Signal<Vec<BackendView>>) -> impl IntoView {
    let cells = move || {
        backends.with(|backends| {
            backends
                .iter()
                .map(|backend| view! { <Cell backend=backend.clone()/> }.into_any())
                .collect_view()
        })
    };
    view! { <ul class="strip">{changing(cells)}</ul> }
}

#[component]
fn Cell(backend: BackendView) -> impl IntoView {
    let class = if backend.status.blinds_rows() {
        "is-stale"
    } else {
        ""
    };
    let why = cause(&backend)
        .map(|why| view! { <p class="why" title=why.clone()><bdi>{why.clone()}</bdi></p> }.into_any());
    view! {
        <li class=class>
            <div class="head">
                <h3><a class="link" href=format!("/backends#{}", backend.name)>{backend.name.to_string()}</a></h3>
                <span class="kind ink3 small">{backend.kind.as_str()}</span>
                <BackendBadge status=backend.status/>
            </div>
            <Age backend=backend.clone()/>
            <AgeBar backend=backend.clone()/>
            <dl>
                <div><dt>"locks"</dt><dd>{locks(&backend)}</dd></div>
                <div><dt>"waiters"</dt><dd>{waiters(&backend)}</dd></div>
                <div><dt>"clock"</dt><dd>{clock(&backend)}</dd></div>
                <div><dt>"coverage"</dt><dd>{coverage(&backend)}</dd></div>
            </dl>
            <div class="lag">
                <span class="ink3 small">"answers in"</span>
                <span class="small">{last_answer(&backend)}</span>
                <Sparkline answers_ms=backend.answers_ms.clone()/>
            </div>
            {why}
        </li>
    }
    .into_any()
}

#[component]
fn Age(backend: BackendView) -> impl IntoView {
    let poll = format::period(backend.poll_interval_ms);
    let note = match backend.age_ms {
        Some(_) => format!("old, polled every {poll}"),
        None => format!("polled every {poll}"),
    };
    let figure = match backend.age_ms {
        Some(ms) => view! { <b><AgeText ms/></b> }.into_any(),
        None => view! { <b class="never">"never read"</b> }.into_any(),
    };
    view! { <div class="age-of">{figure}<span class="ink2 small">{note}</span></div> }
}

fn locks(backend: &BackendView) -> AnyView {
    if backend.age_ms.is_none() {
        return view! { <span class="ink3">"unknown"</span> }.into_any();
    }
    let as_of = backend.observed_at.filter(|_| backend.status.blinds_rows());
    let as_of =
        as_of.map(|at| view! { <small>" as of "{observed_time(at, backend.age_ms)}</small> }.into_any());
    view! { {format::count(backend.locks)}{as_of} }.into_any()
}

fn waiters(backend: &BackendView) -> AnyView {
    if backend.age_ms.is_none() {
        return view! { <span class="ink3">"unknown"</span> }.into_any();
    }
    match &backend.waiters {
        Reported::Value(0) => view! { <span class="ink3">"0"</span> }.into_any(),
        Reported::Value(count) => {
            view! { <span class="waiting wn">{format::count(*count)}</span> }.into_any()
        }
        Reported::Unknown(why) => {
            view! { <span class="ink3" title=why.to_string()>"unknown"</span> }.into_any()
        }
        Reported::NotApplicable(why) => {
            view! { <span class="ink3" title=why.to_string()>"none"</span> }.into_any()
        }
    }
}

/// Offset of the backend's clock; the error is half of the round trip.
fn clock(backend: &BackendView) -> AnyView {
    match &backend.clock_offset_ms {
        Reported::Value(ms) => {
            let title = format!(
                "the backend's clock minus the console's, to within {}",
                format::latency(backend.clock_error_ms)
            );
            view! { <span title=title>{format::offset(*ms)}</span> }.into_any()
        }
        Reported::Unknown(why) | Reported::NotApplicable(why) => {
            view! { <span class="ink3" title=why.to_string()>"unknown"</span> }.into_any()
        }
    }
}

fn coverage(backend: &BackendView) -> AnyView {
    match (backend.age_ms, backend.coverage.percent()) {
        (None, _) => view! { <span class="ink3">"unknown"</span> }.into_any(),
        (_, Some(percent)) if backend.coverage.is_complete() => format!("{percent} %").into_any(),
        (_, Some(percent)) => view! { <span class="warning st">{format!("{percent} %")}</span> }.into_any(),
        (_, None) => view! { <span class="warning st">"partial"</span> }.into_any(),
    }
}

fn last_answer(backend: &BackendView) -> AnyView {
    match backend.answers_ms.last() {
        None if backend.is_limited => {
            view! { <span class="ink3" title=OUTSIDE_SCOPE>"not shown"</span> }.into_any()
        }
        Some(Some(ms)) => format::latency(i64::from(*ms)).into_any(),
        Some(None) => view! { <span class="ink3">"no answer"</span> }.into_any(),
        None => view! { <span class="ink3">"unknown"</span> }.into_any(),
    }
}

/// Why it is not live, in one line.
fn cause(backend: &BackendView) -> Option<String> {
    use domain::observation::Coverage;
    if backend.status == BackendStatus::Live {
        return None;
    }
    let fault = backend.fault.as_ref().map(|fault| format::prose(&fault.message));
    fault.or_else(|| match &backend.coverage {
        Coverage::Partial { why, .. } => Some(format::prose(why)),
        Coverage::Complete => None,
    })
}
