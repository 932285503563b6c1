//! Charts of a lock's page. A section without data is replaced with a message.

use domain::charts::durations::DurationChart;
use domain::lock_detail::{LockDetail, LockHistory};
use leptos::prelude::*;
use leptos_router::hooks::use_location;

use crate::charts::chart_frame::Unread;
use crate::charts::durations::{Durations, Measure};
use crate::charts::ownership_timeline::{MarkLinks, Ownership};
use crate::components::reactive::changing;
use crate::links::{self, PageUrl, filter_value, with_query};

#[component]
pub fn OwnershipSection(detail: Signal<LockDetail>) -> impl IntoView {
    let search = use_location().search;
    let timeline = history(detail, |history| history.ownership.clone());
    let range = Memo::new(move |before: Option<&Option<_>>| {
        let now = detail.with(|detail| detail.charts.as_ref().map(|charts| charts.range.clone()));
        now.or_else(|| before.cloned().flatten())
    });
    let links = Memo::new(move |_| detail.with(mark_links));
    let url = Memo::new(move |_| {
        let path = detail.with(|detail| links::lock(&detail.lock));
        PageUrl::new(path.split('?').next().unwrap_or_default(), &search.get())
    });
    section(timeline, "ownership", "Ownership", move |timeline| {
        range.get_untracked().map(|first| {
            let range = Signal::derive(move || range.get().unwrap_or_else(|| first.clone()));
            view! { <Ownership timeline range links url/> }.into_any()
        })
    })
}

fn mark_links(detail: &LockDetail) -> MarkLinks {
    MarkLinks {
        may_audit: detail.charts.as_ref().is_some_and(|charts| charts.may_audit),
        fencing: with_query(
            "/fencing",
            [("prefix", filter_value(&detail.lock.id.resource.text()))],
        ),
    }
}

#[component]
pub fn HoldTimes(detail: Signal<LockDetail>) -> impl IntoView {
    let hold_times = history(detail, |history| history.hold_times.clone());
    let alert = Signal::derive(move || detail.with(alert));
    section(hold_times, "hold-time", "Hold time", move |chart| {
        Some(view! { <Durations measure=Measure::Hold chart alert/> }.into_any())
    })
}

/// Wait times of this lock; nothing if no wait is known.
#[component]
pub fn WaitTimes(detail: Signal<LockDetail>) -> impl IntoView {
    let waits = history(detail, |history| history.wait_times.clone());
    let distribution = Memo::new(move |_| {
        waits
            .get()
            .filter(|chart: &DurationChart| chart.distribution.is_some())
    });
    let has_waits = Memo::new(move |_| distribution.with(Option::is_some));
    changing(move || {
        has_waits.get().then(|| {
            let distribution = distribution.get_untracked();
            distribution.map(|first| {
                let chart = Signal::derive(move || waits.get().unwrap_or_else(|| first.clone()));
                view! { <Durations measure=Measure::Wait chart/> }.into_any()
            })
        })
    })
}

/// Form of a rule on long holds of this lock.
fn alert(detail: &LockDetail) -> Option<String> {
    let history = detail.charts.as_ref()?.history.as_ref()?;
    let p95 = history.hold_times.distribution.as_ref()?.p95;
    let lock = &detail.lock;
    let pairs = [
        ("condition", "long_held".to_owned()),
        ("backends", lock.id.backend.to_string()),
        ("prefix", lock.id.resource.text()),
        ("with.longer_than", format!("{}s", (p95 / 1_000).max(1))),
    ];
    Some(with_query("/alerts/rules/new", pairs))
}

/// A part of the history; `None` if it could not be read.
fn history<T>(detail: Signal<LockDetail>, part: fn(&LockHistory) -> T) -> Memo<Option<T>>
where
    T: Clone + PartialEq + Send + Sync + 'static,
{
    Memo::new(move |_| detail.with(|detail| detail.charts.as_ref()?.history.as_ref().map(part)))
}

/// The view is created once; a history that cannot be read replaces it.
fn section<T>(
    part: Memo<Option<T>>,
    id: &'static str,
    title: &'static str,
    view: impl Fn(Signal<T>) -> Option<AnyView> + Send + Sync + 'static,
) -> impl IntoView
where
    T: Clone + PartialEq + Send + Sync + 'static,
{
    let is_read = Memo::new(move |_| part.with(Option::is_some));
    changing(move || {
        let is_read = is_read.get();
        match part.get_untracked().filter(|_| is_read) {
            Some(first) => {
                // The last data is used while this view is being replaced.
                view(Signal::derive(move || {
                    part.get().unwrap_or_else(|| first.clone())
                }))
            }
            None => Some(view! { <Unread id title/> }.into_any()),
        }
    })
}
