//! Held locks and waiters over time: means per cell, from roll-ups.

use std::sync::Arc;

use domain::charts::held_locks::{ChartEvent, HeldLocksChart};
use domain::charts::range::TimeRange;
use domain::charts::shown_range::ShownRange;
use domain::escape::visible;
use domain::format;
use leptos::prelude::*;

use super::chart_frame::{ChartFrame, LegendEntry, Swatch, data_table, drawn_entries, legend};
use super::crosshair::{Plot, SpanUrl};
use super::range_links::RangeLinks;
use super::series::{Draw, Event, Panel, SeriesChart};
use crate::components::reactive::changing;
use crate::links::{PageUrl, named, with_query};

/// URL parameter that also draws the preceding span of the same length.
pub const COMPARE: &str = "compare";

#[component]
pub fn HeldLocks(
    #[prop(into)] chart: Signal<HeldLocksChart>,
    #[prop(into)] range: Signal<ShownRange>,
    #[prop(into)] url: Signal<PageUrl>,
) -> impl IntoView {
    let title = Signal::derive(move || chart.with(finding));
    let note = Signal::derive(move || {
        let (range_label, each) = (
            range.get().label(),
            chart.with(|chart| format::period(chart.cell_ms)),
        );
        let cut = if chart.with(|chart| chart.now.is_cut) {
            ", in your scope"
        } else {
            ""
        };
        format!("{range_label}, mean of each {each}, UTC{cut}")
    });
    let end = view! { {changing(move || compare_link(&chart.get(), &url.get()))}" "<RangeLinks range url/> };
    let readings = Arc::new(move || vec![chart.with(series).readings(Some(&locks_of))]);
    let span: SpanUrl = Arc::new(move |from, until| {
        let scale = chart.with_untracked(|chart| chart.held.scale);
        let range = TimeRange::at_least_a_minute(scale.moment(from), scale.moment(until));
        url.get_untracked().with_range(range).href()
    });
    view! {
        <ChartFrame id="held" title note end=end.into_any()>
            <Plot class="series" label="held and waiting over time".to_owned() readings span>
                {changing(move || chart.with(series).view(Some(&locks_of)))}
            </Plot>
            {changing(move || {
                let chart = chart.get();
                let table = series(&chart).table("Held and waiting over time, as drawn above");
                view! { {legend(entries(&chart))}{data_table(table)} }.into_any()
            })}
        </ChartFrame>
    }
    .into_any()
}

fn compare_link(chart: &HeldLocksChart, url: &PageUrl) -> AnyView {
    let is_compared = chart.before.is_some();
    let (label, value) = if is_compared {
        ("Stop comparing", "")
    } else {
        ("Compare", "before")
    };
    let title = "draws the preceding time span as a dashed line";
    let href = url.with(&[(COMPARE, value)]).href();
    view! { <a class="link" href=href title=title data-noscroll="">{label}</a> }.into_any()
}

/// URL of the prefixes whose locks were held in a time span.
fn locks_of(from: i64, until: i64) -> String {
    let range = TimeRange::at_least_a_minute(from, until).pairs();
    with_query(
        "/contention",
        range.into_iter().chain([("by", "held".to_owned())]),
    )
}

fn series(chart: &HeldLocksChart) -> SeriesChart {
    let HeldLocksChart {
        held,
        waiting,
        before,
        now,
        events,
        ..
    } = chart;
    let (held_before, waiting_before) = before.clone().unzip();
    let panel = |name, figure, hue, height, drawn: &_, before| Panel {
        name,
        figure: Some(format::count(figure)),
        hue,
        draw: Draw::Line,
        height,
        drawn: Clone::clone(drawn),
        before,
    };
    SeriesChart {
        scale: held.scale,
        panels: vec![
            panel("held", now.held, "healthy", 112, held, held_before),
            panel("waiting", now.waiting, "waiting", 72, waiting, waiting_before),
        ],
        events: Some(events.iter().map(event).collect()),
    }
}

fn event(event: &ChartEvent) -> Event {
    let (shape, hue) = event_style(event);
    let (title, href) = match event {
        ChartEvent::Reclaims { from, until, count } => (
            format::counted(*count, "reclaim", "reclaims"),
            locks_of(*from, *until),
        ),
        ChartEvent::ForcedUnlock { by, id, .. } => (
            format!("forced unlock by {}", visible(by)),
            format!("/unlocks/{id}"),
        ),
        ChartEvent::Rejection { token, resource, .. } => (
            format!("a write with token {token} rejected"),
            named("builtin", resource),
        ),
    };
    Event {
        at: event.at(),
        shape,
        hue,
        title,
        href: Some(href),
    }
}

const fn event_style(event: &ChartEvent) -> (&'static str, &'static str) {
    match event {
        ChartEvent::Reclaims { .. } => ("reclaim", ""),
        ChartEvent::ForcedUnlock { .. } => ("revoke", ""),
        ChartEvent::Rejection { .. } => ("x", "critical"),
    }
}

fn finding(chart: &HeldLocksChart) -> String {
    let most = (!chart.waiting.is_empty()).then_some(chart.waiting.high);
    match most {
        Some(most) if most >= 1.0 && chart.now.waiting as f64 >= most => "Waiting at its peak",
        _ => "Held and waiting",
    }
    .to_owned()
}

fn entries(chart: &HeldLocksChart) -> Vec<LegendEntry> {
    let has = |shape: &str| chart.events.iter().any(|event| event_style(event).0 == shape);
    drawn_entries([
        (
            chart.before.is_some(),
            Swatch::Line("ser before"),
            "preceding time span",
        ),
        (has("reclaim"), Swatch::Shape("reclaim", ""), "reclaim"),
        (has("revoke"), Swatch::Shape("revoke", ""), "forced unlock"),
        (has("x"), Swatch::Shape("x", "critical"), "fencing rejection"),
        (chart.has_gaps(), Swatch::Area("hatch"), "no history"),
    ])
}
