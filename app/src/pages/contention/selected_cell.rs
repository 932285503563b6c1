//! The selected cell: its figures, its locks, and links to its neighbours.

use chrono::DateTime;
use domain::contention::{CellDetail, CellSums, ContentionPage, ContentionQuery, MapRow, Selection, rounded};
use domain::escape::visible;
use domain::time_format::dated;
use leptos::prelude::*;

use super::cell_links::steps;
use super::heatmap::{cell_url, span_label};
use super::locks;
use crate::components::reactive::changing;
use crate::format::{self, unbroken};
use crate::links::PageUrl;

#[component]
pub fn SelectedCell(data: Signal<ContentionPage>, url: Signal<PageUrl>) -> impl IntoView {
    changing(move || data.with(|data| selected(data, &url.get())))
}

fn selected(data: &ContentionPage, url: &PageUrl) -> Option<AnyView> {
    match &data.selected {
        Selection::Nothing => None,
        Selection::Cell(cell) => cell_summary(data, url, cell),
        Selection::NotShown { prefix, at } => Some(not_shown(url, prefix, *at)),
    }
}

fn not_shown(url: &PageUrl, prefix: &str, at: Option<i64>) -> AnyView {
    let name = visible(prefix).into_owned();
    let at = at.and_then(DateTime::from_timestamp_millis);
    let (time, sentence) = match at {
        Some(at) => (
            unbroken(&format!(", {}", dated(at))).into_owned(),
            "not in this range",
        ),
        None => (String::new(), "not among the prefixes of this range"),
    };
    let longest = url.without(&ContentionQuery::SELECTION).href();
    view! {
        <div class="cell small" id="cell">
            <p>
                <b><bdi class="mono">{name}</bdi>{time}</b>
                <span class="ink2">{sentence}</span>
                " "<a class="link" href=longest data-noscroll="">"longest wait"</a>
            </p>
        </div>
    }
    .into_any()
}

fn cell_summary(data: &ContentionPage, url: &PageUrl, cell: &CellDetail) -> Option<AnyView> {
    let row = data.map.get(cell.row)?;
    let sentence = cell
        .sums
        .as_ref()
        .map_or_else(|| "no data".to_owned(), describe_sums);
    let locks = locks(row.backend.as_str(), &row.prefix)
        .map(|href| view! { " "<a class="link" href=href>"locks"</a> }.into_any());
    let rows: Vec<Vec<bool>> = data.map.iter().map(waited).collect();
    let next = steps(&rows, (cell.row, cell.cell));
    let name = visible(&row.prefix).into_owned();
    let step = |to, text| step(data, url, to, text);
    let view = view! {
        <div class="cell small" id="cell">
            <p>
                <b><bdi class="mono">{name}</bdi>{format!(", {}", span_label(&data.span, cell.cell))}</b>
                <span class="ink2">{sentence}</span>
                {locks}
            </p>
            <nav class="steps" aria-label="neighbouring cells">
                {step(next.earlier, "Earlier")}" "{step(next.later, "Later")}" "
                {step(next.above, "Row above")}" "{step(next.below, "Row below")}
            </nav>
        </div>
    };
    Some(view.into_any())
}

/// Link to a neighbour; the tab order continues from there.
fn step(data: &ContentionPage, url: &PageUrl, to: Option<(usize, usize)>, text: &'static str) -> AnyView {
    let Some((row, cell)) = to.and_then(|(row, cell)| Some((data.map.get(row)?, cell))) else {
        return view! { <span class="ink3" aria-hidden="true">{text}</span> }.into_any();
    };
    let label = format!(
        "{text}: {}, {}",
        visible(&row.prefix),
        span_label(&data.span, cell)
    );
    let href = format!("{}#cell", cell_url(url, row, &data.span, cell).href());
    view! { <a class="link" href=href aria-label=label data-noscroll="">{text}</a> }.into_any()
}

/// Cells with a wait.
fn waited(row: &MapRow) -> Vec<bool> {
    row.cells
        .iter()
        .map(|cell| cell.is_some_and(|ms| ms > 0))
        .collect()
}

fn describe_sums(sums: &CellSums) -> String {
    let mut parts = vec![format!("{} waited", format::period(rounded(sums.waited_ms)))];
    if sums.waits > 0 {
        parts.push(format!("{} ended", format::counted(sums.waits, "wait", "waits")));
    }
    parts.extend(sums.p95_ms.map(|ms| format!("p95 {}", format::latency(ms))));
    parts.extend(
        sums.longest_ms
            .map(|ms| format!("longest {}", format::latency(ms))),
    );
    parts.extend(
        sums.refused
            .map(|count| format!("{} refused", format::count(count))),
    );
    parts.join(", ")
}
