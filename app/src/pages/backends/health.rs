//! Figures of one backend: age, size, clock, change notifications, scans, latency.

use domain::backend::{BackendView, OUTSIDE_SCOPE, WatchState};
use domain::reported::Reported;
use leptos::prelude::*;

use crate::components::age_bar::AgeBar;
use crate::components::elapsed::Age;
use crate::components::sparkline::{Sparkline, summary};
use crate::components::time::{Time, observed_time};
use crate::format;

#[component]
pub fn Health(backend: BackendView) -> impl IntoView {
    let attention = format::count(backend.needing_attention);
    let rows = [
        (
            "locks",
            limited_to_visible(&backend, format::count(backend.locks)),
        ),
        ("waiters", waiters(&backend)),
        ("need attention", limited_to_visible(&backend, attention)),
        ("coverage", coverage(&backend)),
        ("clock offset", clock(&backend)),
        ("watch", watch(&backend.watch)),
        (
            "scans",
            or_limited(&backend, format::count(backend.passes).into_any()),
        ),
        (
            "resync differences",
            or_limited(&backend, differences(backend.relist_differences)),
        ),
    ];
    let rows = rows
        .into_iter()
        .map(|(name, value)| view! { <div><dt>{name}</dt><dd>{value}</dd></div> }.into_any())
        .collect_view();
    let durations = if backend.is_limited {
        OUTSIDE_SCOPE.to_owned()
    } else {
        summary(&backend.answers_ms)
    };
    view! {
        <div class="health" class:is-stale=backend.status.blinds_rows()>
            <div class="age-of">{age(&backend)}</div>
            <AgeBar backend=backend.clone()/>
            <dl>{rows}</dl>
            <div class="answers">
                <h3>"Scan durations"</h3>
                <Sparkline answers_ms=backend.answers_ms.clone()/>
                <p class="small ink2">{durations}</p>
            </div>
        </div>
    }
    .into_any()
}

fn age(backend: &BackendView) -> AnyView {
    let poll = format::period(backend.poll_interval_ms);
    match (backend.age_ms, backend.observed_at) {
        (Some(ms), Some(at)) => {
            let at = backend
                .status
                .blinds_rows()
                .then(|| view! { ", as of "{observed_time(at, Some(ms))} }.into_any());
            view! { <b><Age ms/></b><span class="ink2 small">"old, polled every "{poll}{at}</span> }
                .into_any()
        }
        _ => view! { <b class="never">"never read"</b><span class="ink2 small">"polled every "{poll}</span> }
            .into_any(),
    }
}

/// A figure that readers with a limited scope may not see.
fn or_limited(backend: &BackendView, figure: AnyView) -> AnyView {
    if backend.is_limited {
        view! { <span class="ink3" title=OUTSIDE_SCOPE>"not shown"</span> }.into_any()
    } else {
        figure
    }
}

/// Without an observation the figure is unknown, whatever the view holds.
fn limited_to_visible(backend: &BackendView, figure: String) -> AnyView {
    match backend.age_ms {
        Some(_) => figure.into_any(),
        None => view! { <span class="ink3">"unknown"</span> }.into_any(),
    }
}

fn waiters(backend: &BackendView) -> AnyView {
    match backend.age_ms {
        Some(_) => known(&backend.waiters, |count| format::count(*count)),
        None => view! { <span class="ink3">"unknown"</span> }.into_any(),
    }
}

fn known<T>(value: &Reported<T>, show: impl FnOnce(&T) -> String) -> AnyView {
    match value {
        Reported::Value(value) => show(value).into_any(),
        Reported::Unknown(why) => {
            view! { <span class="ink3" title=why.to_string()>"unknown"</span> }.into_any()
        }
        Reported::NotApplicable(why) => {
            view! { <span class="ink3" title=why.to_string()>"none"</span> }.into_any()
        }
    }
}

fn coverage(backend: &BackendView) -> AnyView {
    match (
        backend.age_ms,
        backend.coverage.percent(),
        backend.coverage.is_complete(),
    ) {
        (None, ..) => view! { <span class="ink3">"unknown"</span> }.into_any(),
        (_, _, true) => "complete".into_any(),
        (_, Some(percent), _) => {
            view! { <span class="st warning">{format!("{percent} %")}</span> }.into_any()
        }
        (_, None, _) => view! { <span class="st warning">"partial"</span> }.into_any(),
    }
}

fn clock(backend: &BackendView) -> AnyView {
    let error = backend.clock_error_ms;
    known(&backend.clock_offset_ms, |ms| {
        format!("{}\u{a0}\u{b1}\u{a0}{error}\u{a0}ms", format::offset(*ms))
    })
}

fn watch(watch: &WatchState) -> AnyView {
    match watch {
        WatchState::Live => "live".into_any(),
        WatchState::Reconnecting { since, why } => {
            let why = format::prose(why);
            view! { <span class="st warning" title=why>"reconnecting since "<Time at=*since with_date=true/></span> }
                .into_any()
        }
        WatchState::Off { why } => {
            let why = format::prose(why);
            view! { <span class="ink2">"off: "<bdi>{why}</bdi></span> }.into_any()
        }
    }
}

/// Should stay 0: each difference is a change without a notification.
fn differences(count: u64) -> AnyView {
    match count {
        0 => view! { <span class="ink3">"0"</span> }.into_any(),
        _ => view! { <span class="st warning" title="changes that the watch missed and a resync found">{format::count(count)}</span> }.into_any(),
    }
}
