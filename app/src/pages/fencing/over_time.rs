//! Rejections over time; each bar links to its interval.

use std::sync::Arc;

use domain::charts::range::TimeRange;
use domain::charts::shown_range::ShownRange;
use domain::charts::ticks::{self, moment};
use domain::fencing_rejections::FencingPage;
use leptos::prelude::*;

use crate::charts::bars::{Bar, BarChart};
use crate::charts::chart_frame::{ChartFrame, data_table};
use crate::charts::crosshair::{Plot, SpanUrl};
use crate::components::reactive::changing;
use crate::format;
use crate::links::{PageUrl, with_query};

#[component]
pub fn OverTime(data: Signal<FencingPage>, url: Signal<PageUrl>) -> impl IntoView {
    let chart = Memo::new(move |_| data.with(|data| chart(data, &url.get())));
    let title = Signal::derive(move || chart.with(busiest));
    let note = Signal::derive(move || format!("{}, UTC", data.with(|data| data.range.label())));
    let end = changing(move || {
        let href = rule_url(&url.get());
        view! { <a class="link" href=href>"Add an alert rule"</a> }.into_any()
    });
    let readings = Arc::new(move || vec![chart.with(BarChart::readings)]);
    let span: SpanUrl = Arc::new(move |from, until| {
        let scale = data.with_untracked(|data| data.range.scale);
        narrowed(&url.get_untracked(), scale.moment(from), scale.moment(until))
    });
    let table = move || {
        chart.with(|chart| data_table(chart.table("Rejections over time, as drawn above", "when, UTC")))
    };
    view! {
        <ChartFrame id="over-time" title note end=end.into_any()>
            <Plot class=BarChart::class(true) label="rejections over time".to_owned() readings span>
                {changing(move || chart.with(BarChart::view))}
            </Plot>
            {changing(table)}
        </ChartFrame>
    }
    .into_any()
}

fn chart(data: &FencingPage, url: &PageUrl) -> BarChart {
    let ShownRange { scale, .. } = data.range;
    let parts = data.counts.len();
    let width = 100.0 / parts.max(1) as f64;
    let bars = data.counts.iter().enumerate().map(|(part, value)| {
        let (from, until) = (scale.part_begins(part, parts), scale.part_begins(part + 1, parts));
        Bar {
            at: part as f64 * width,
            width: (width - 0.3).max(0.3),
            value: *value,
            hue: "critical",
            title: format!("{} to {}", moment(from, scale), moment(until, scale)),
            href: (*value > 0).then(|| narrowed(url, from, until)),
        }
    });
    BarChart {
        title: format!(
            "{} over time",
            format::counted(data.total, "rejection", "rejections")
        ),
        unit: "rejections",
        bars: bars.collect(),
        rules: Vec::new(),
        ticks: ticks::times(scale, 6),
        has_scale: true,
    }
}

fn rule_url(url: &PageUrl) -> String {
    let prefix = url.value("prefix");
    let pairs = [
        ("condition", "fencing_rejections"),
        ("with.count", "1"),
        ("prefix", prefix),
    ];
    with_query(
        "/alerts/rules/new",
        pairs.into_iter().filter(|(_, value)| !value.is_empty()),
    )
}

fn busiest(chart: &BarChart) -> String {
    let total: u64 = chart.bars.iter().map(|bar| bar.value).sum();
    let most = chart.bars.iter().max_by_key(|bar| bar.value);
    match most.filter(|bar| bar.value > 0) {
        Some(bar) if bar.value == total => format!("All rejected from {}", bar.title),
        Some(bar) => format!(
            "{} of {} rejected from {}",
            format::count(bar.value),
            format::count(total),
            bar.title
        ),
        None => "No rejections".to_owned(),
    }
}

/// The same query for a part of the range.
fn narrowed(url: &PageUrl, from: i64, until: i64) -> String {
    let range = TimeRange::at_least_a_minute(from, until);
    url.without(&["before"]).with_range(range).href()
}
