//! Heatmap with its legend and the selected cell.

use std::sync::Arc;

use chrono::DateTime;
use domain::charts::range::TimeRange;
use domain::charts::scale::TimeScale;
use domain::charts::ticks::{self, moment};
use domain::contention::{ContentionPage, ContentionQuery, MapRow, Others, Selection, heat, rounded};
use domain::format;
use domain::history::series::HistorySpan;
use domain::time_format::iso;
use leptos::prelude::*;

use super::selected_cell::SelectedCell;
use crate::charts::chart_frame::{ChartFrame, data_table};
use crate::charts::crosshair::{Plot, SpanUrl};
use crate::charts::heatmap::{Cell, HeatMap, HeatmapRow};
use crate::charts::range_links::RangeLinks;
use crate::components::reactive::changing;
use crate::links::PageUrl;

/// Time labels below the map.
const TICKS: usize = 6;

#[component]
pub fn MapSection(data: Signal<ContentionPage>, url: Signal<PageUrl>) -> impl IntoView {
    let range = Memo::new(move |_| data.with(|data| data.range.clone()));
    let note = Signal::derive(move || {
        let cell = data.with(|data| format::period(data.span.cell_ms));
        format!(
            "{}; {cell} per cell, UTC; time spent waiting in the cell",
            range.get().label()
        )
    });
    // The selected cell belongs to its range.
    let ranges = Signal::derive(move || url.get().without(&ContentionQuery::SELECTION));
    let end = view! { <RangeLinks range url=ranges/> }.into_any();
    let has_rows = Memo::new(move |_| data.with(|data| !data.map.is_empty()));
    view! {
        <ChartFrame id="map" title="Wait time by prefix".to_owned() note end>
            {changing(move || {
                if has_rows.get() {
                    view! { <Map data url/> }.into_any()
                } else {
                    view! {
                        <div class="empty"><h3>"No data in this range"</h3><p>"Waits are recorded only while a Leasehold server runs."</p></div>
                    }
                    .into_any()
                }
            })}
        </ChartFrame>
    }
    .into_any()
}

#[component]
fn Map(data: Signal<ContentionPage>, url: Signal<PageUrl>) -> impl IntoView {
    let map = Memo::new(move |_| data.with(|data| map(data, &url.get())));
    let readings = Arc::new(move || map.with(HeatMap::readings));
    let span: SpanUrl = Arc::new(move |from, until| {
        let scale = data.with_untracked(|data| scale(&data.span));
        let range = TimeRange::at_least_a_minute(scale.moment(from), scale.moment(until));
        let url = url.get_untracked().without(&ContentionQuery::SELECTION);
        url.with_range(range).href()
    });
    view! {
        <div class="hmap">
            {HeatMap::head()}
            <Plot class="hmap-rows" label="wait time by prefix and time".to_owned() readings span>
                {changing(move || map.with(HeatMap::rows))}
            </Plot>
            {changing(move || map.with(HeatMap::axis))}
        </div>
        {changing(move || data_table(map.with(HeatMap::table)))}
        <div class="below">
            {changing(move || data.with(legend))}
            <SelectedCell data url/>
        </div>
    }
    .into_any()
}

fn scale(span: &HistorySpan) -> TimeScale {
    TimeScale::new(span.from, span.to())
}

pub(super) fn span_label(span: &HistorySpan, cell: usize) -> String {
    let scale = scale(span);
    let short = |ms: i64| {
        let text = moment(ms, scale);
        // Cells are whole minutes.
        text.strip_suffix(":00")
            .filter(|it| it.contains(':'))
            .map_or(text.clone(), str::to_owned)
    };
    format!("{} to {}", short(span.start(cell)), short(span.start(cell + 1)))
}

fn wait_text(waiting_ms: Option<u64>) -> String {
    match waiting_ms {
        None => "unknown".to_owned(),
        Some(ms) => format::period(rounded(ms)),
    }
}

/// URL that selects a cell.
pub(super) fn cell_url(url: &PageUrl, row: &MapRow, span: &HistorySpan, cell: usize) -> PageUrl {
    let at = DateTime::from_timestamp_millis(span.start(cell)).map_or_else(String::new, iso);
    url.with(&[
        ("backend", row.backend.as_str()),
        ("prefix", &row.prefix),
        ("at", &at),
    ])
}

fn map(data: &ContentionPage, url: &PageUrl) -> HeatMap {
    let span = &data.span;
    let rows = data.map.iter().enumerate();
    let mut rows: Vec<HeatmapRow> = rows.map(|(place, row)| map_row(data, url, place, row)).collect();
    rows.extend(data.others.as_ref().map(|others| other_row(others, span)));
    let ticks = ticks::times(scale(span), TICKS)
        .into_iter()
        .map(|tick| (tick.at, tick.label));
    HeatMap {
        title: "Time spent waiting, by prefix and time".to_owned(),
        spans: (0..span.cells).map(|cell| span_label(span, cell)).collect(),
        ticks: ticks.collect(),
        rows,
    }
}

fn map_row(data: &ContentionPage, url: &PageUrl, place: usize, row: &MapRow) -> HeatmapRow {
    let span = &data.span;
    let selected = match &data.selected {
        Selection::Cell(it) if it.row == place => Some(it.cell),
        _ => None,
    };
    let cells = row.cells.iter().enumerate().map(|(cell, waited)| Cell {
        heat: waited.map(|ms| heat(ms, span.cell_ms)),
        text: wait_text(*waited),
        href: waited
            .filter(|ms| *ms > 0)
            .map(|_| cell_url(url, row, span, cell).href()),
        is_selected: selected == Some(cell),
    });
    let backend = row.backend.as_str();
    HeatmapRow {
        name: row.prefix.clone(),
        of: backend.to_owned(),
        // Hold and wait times of the prefix, and its own worst cell.
        href: Some(
            url.with(&[("backend", backend), ("prefix", &row.prefix), ("at", "")])
                .href(),
        ),
        cells: cells.collect(),
        total: if row.is_known {
            wait_text(Some(row.waited_ms))
        } else {
            "unknown".to_owned()
        },
        is_known: row.is_known,
    }
}

fn other_row(others: &Others, span: &HistorySpan) -> HeatmapRow {
    let cells = others.cells.iter().map(|waited| Cell {
        heat: waited.map(|ms| heat(ms, span.cell_ms)),
        text: wait_text(*waited),
        href: None,
        is_selected: false,
    });
    HeatmapRow {
        name: format!(
            "other, {}",
            format::counted(others.prefixes as u64, "prefix", "prefixes")
        ),
        of: String::new(),
        href: None,
        cells: cells.collect(),
        total: wait_text(Some(others.waited_ms)),
        is_known: true,
    }
}

fn legend(data: &ContentionPage) -> AnyView {
    let swatch = |class: &'static str| {
        view! { <svg viewBox="0 0 16 12" aria-hidden="true"><rect class=class width="16" height="12"></rect></svg> }
            .into_any()
    };
    let ramp: Vec<AnyView> = ["h0", "h1", "h2", "h3", "h4", "h5"].map(swatch).into();
    let has_unknown = data.map.iter().any(|row| row.cells.iter().any(Option::is_none));
    let unknown = has_unknown.then(|| {
        view! { <span>{swatch("hx")}" no data, or the backend does not report waiters"</span> }.into_any()
    });
    let full = format!(" {} or more", format::period(data.span.cell_ms));
    view! { <p class="legend"><span class="ramp">"none "{ramp}{full}</span>{unknown}</p> }.into_any()
}
