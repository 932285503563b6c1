//! Heatmap, legend, and the selected cell with links to its neighbours.

use chrono::DateTime;
use domain::charts::scale::TimeScale;
use domain::charts::ticks::{self, moment};
use domain::contention::{Contention, ContentionRow, Others, heat, rounded};
use domain::format;
use domain::history::rollup::Rollup;
use domain::history::series::HistorySpan;
use domain::time_format::iso;
use leptos::prelude::*;

use super::cell_links::steps;
use super::{Shown, address, locks, ranges};
use crate::charts::heatmap::{self as drawing, HeatMap};

/// Time labels below the map.
const TICKS: usize = 6;

pub(super) fn section(shown: &Shown) -> AnyView {
    let found = &shown.found;
    let note = format!(
        "{} per cell, UTC; time spent waiting in the cell",
        format::period(found.span.cell_ms)
    );
    let content = if found.rows.is_empty() {
        view! { <div class="empty"><h3>"No data in this range"</h3><p>"Data starts when the console starts."</p></div> }.into_any()
    } else {
        view! {
            <div class="made" inner_html=map(shown).markup().into_string()></div>
            <div class="below">{legend(found)}{selected(shown)}</div>
        }
        .into_any()
    };
    view! {
        <section class="sec chart" aria-labelledby="map">
            <header><h2 id="map">"Wait time by prefix"</h2><span class="note">{note}</span>{ranges(shown)}</header>
            {content}
        </section>
    }
    .into_any()
}

fn scale(span: &HistorySpan) -> TimeScale {
    TimeScale::new(span.from, span.to())
}

fn span_words(span: &HistorySpan, cell: usize) -> String {
    let scale = scale(span);
    let short = |ms: i64| {
        let told = moment(ms, scale);
        // Cells are whole minutes.
        told.strip_suffix(":00")
            .filter(|it| it.contains(':'))
            .map_or(told.clone(), str::to_owned)
    };
    format!("{} to {}", short(span.start(cell)), short(span.start(cell + 1)))
}

fn word(waiting_ms: Option<u64>) -> String {
    match waiting_ms {
        None => "unknown".to_owned(),
        Some(ms) => format::period(rounded(ms)),
    }
}

fn is_selected(shown: &Shown, row: &ContentionRow, cell: usize) -> bool {
    picked(shown).is_some_and(|(it, place)| std::ptr::eq(it, row) && place == cell)
}

/// The selected cell; by default the one with the longest wait.
fn picked(shown: &Shown) -> Option<(&ContentionRow, usize)> {
    let found = &shown.found;
    if let Some((backend, prefix, at)) = &shown.asked.cell {
        let row = found
            .rows
            .iter()
            .find(|row| row.backend.as_str() == backend && row.prefix == *prefix)?;
        return Some((row, found.span.cell_of(*at)?));
    }
    let waited = |cell: &Option<Rollup>| cell.as_ref().map_or(0, |sum| sum.waiting_ms);
    let cells = found.rows.iter().flat_map(|row| {
        row.cells
            .iter()
            .enumerate()
            .map(move |(place, cell)| (row, place, waited(cell)))
    });
    let most = cells.max_by_key(|(_, place, waited)| (*waited, *place))?;
    (most.2 > 0).then_some((most.0, most.1))
}

/// URL that selects a cell.
fn cell_address(shown: &Shown, row: &ContentionRow, at: &str) -> String {
    let cell = [
        ("backend", row.backend.as_str()),
        ("prefix", &row.prefix),
        ("at", at),
    ];
    address(&shown.asked, &cell)
}

/// Link to a neighbour; the tab order continues from there.
fn step(shown: &Shown, to: Option<(usize, usize)>, word: &'static str) -> AnyView {
    let found = &shown.found;
    let Some((row, place)) = to.and_then(|(row, place)| Some((found.rows.get(row)?, place))) else {
        return view! { <span class="ink3" aria-hidden="true">{word}</span> }.into_any();
    };
    let at = DateTime::from_timestamp_millis(found.span.start(place)).map_or_else(String::new, iso);
    let said = format!(
        "{word}: {}, {}",
        domain::escape::visible(&row.prefix),
        span_words(&found.span, place)
    );
    view! { <a class="link" href=format!("{}#cell", cell_address(shown, row, &at)) aria-label=said>{word}</a> }.into_any()
}

fn map(shown: &Shown) -> HeatMap {
    let found = &shown.found;
    let span = &found.span;
    let mut rows: Vec<drawing::HeatmapRow> = found.rows.iter().map(|row| map_row(shown, row)).collect();
    rows.extend(found.others.as_ref().map(|others| other_row(others, span)));
    let ticks = ticks::times(scale(span), TICKS)
        .into_iter()
        .map(|tick| (tick.at, tick.label));
    HeatMap {
        title: "Time spent waiting, by prefix and time".to_owned(),
        spans: (0..span.cells).map(|cell| span_words(span, cell)).collect(),
        ticks: ticks.collect(),
        rows,
    }
}

fn map_row(shown: &Shown, row: &ContentionRow) -> drawing::HeatmapRow {
    let span = &shown.found.span;
    let cells = row.cells.iter().enumerate().map(|(place, cell)| {
        let waited = cell.as_ref().map(|sum| sum.waiting_ms);
        let at = DateTime::from_timestamp_millis(span.start(place)).map_or_else(String::new, iso);
        let href = || cell_address(shown, row, &at);
        drawing::Cell {
            heat: waited.map(|ms| heat(ms, span.cell_ms)),
            word: word(waited),
            href: waited.filter(|ms| *ms > 0).map(|_| href()),
            is_selected: is_selected(shown, row, place),
        }
    });
    let backend = row.backend.as_str();
    drawing::HeatmapRow {
        name: row.prefix.clone(),
        of: backend.to_owned(),
        href: locks(backend, &row.prefix),
        cells: cells.collect(),
        total: if row.is_known {
            word(Some(row.total.waiting_ms))
        } else {
            "unknown".to_owned()
        },
        is_known: row.is_known,
    }
}

fn other_row(others: &Others, span: &HistorySpan) -> drawing::HeatmapRow {
    let cells = others.cells.iter().map(|waited| drawing::Cell {
        heat: waited.map(|ms| heat(ms, span.cell_ms)),
        word: word(*waited),
        href: None,
        is_selected: false,
    });
    drawing::HeatmapRow {
        name: format!(
            "other, {}",
            format::counted(others.prefixes as u64, "prefix", "prefixes")
        ),
        of: String::new(),
        href: None,
        cells: cells.collect(),
        total: word(Some(others.waited_ms)),
        is_known: true,
    }
}

fn legend(found: &Contention) -> AnyView {
    let swatch = |class: &'static str| {
        view! { <svg viewBox="0 0 16 12" aria-hidden="true"><rect class=class width="16" height="12"></rect></svg> }
    };
    let ramp = ["h0", "h1", "h2", "h3", "h4", "h5"].map(swatch);
    let unknown = found.rows.iter().any(|row| row.cells.iter().any(Option::is_none));
    let unknown = unknown.then(|| {
        view! { <span>{swatch("hx")}" no data, or the backend does not report waiters"</span> }
    });
    let full = format!(" {} or more", format::period(found.span.cell_ms));
    view! { <p class="legend"><span class="ramp">"none "{ramp.collect_view()}{full}</span>{unknown}</p> }
        .into_any()
}

fn selected(shown: &Shown) -> AnyView {
    let Some((row, place)) = picked(shown) else {
        return ().into_any();
    };
    let span = &shown.found.span;
    let sentence = row.cells.get(place).map_or_else(String::new, |cell| match cell {
        None => "no data".to_owned(),
        Some(sum) => describe_cell(row, sum),
    });
    let locks = locks(row.backend.as_str(), &row.prefix)
        .map(|href| view! { " "<a class="link" href=href>"locks"</a> });
    let rows: Vec<Vec<bool>> = shown.found.rows.iter().map(waited).collect();
    let here = shown.found.rows.iter().position(|it| std::ptr::eq(it, row));
    let next = steps(&rows, (here.unwrap_or_default(), place));
    view! {
        <div class="cell small" id="cell">
            <p><b><bdi class="mono">{domain::escape::visible(&row.prefix).into_owned()}</bdi>{format!(", {}", span_words(span, place))}</b>
            <span class="ink2">{sentence}</span>{locks}</p>
            <nav class="steps" aria-label="neighbouring cells">
                {step(shown, next.earlier, "Earlier")}" "{step(shown, next.later, "Later")}" "
                {step(shown, next.above, "Row above")}" "{step(shown, next.below, "Row below")}
            </nav>
        </div>
    }
    .into_any()
}

/// Cells with a wait.
fn waited(row: &ContentionRow) -> Vec<bool> {
    let cells = row.cells.iter();
    cells
        .map(|cell| cell.as_ref().is_some_and(|sum| sum.waiting_ms > 0))
        .collect()
}

fn describe_cell(row: &ContentionRow, sum: &Rollup) -> String {
    let mut parts = vec![format!("{} waited", format::period(rounded(sum.waiting_ms)))];
    let waits = sum.waits.count();
    if waits > 0 {
        parts.push(format!("{} ended", format::counted(waits, "wait", "waits")));
    }
    let quantile = |q: f64| sum.waits.quantile(q).map(format::latency);
    parts.extend(quantile(0.95).map(|ms| format!("p95 {ms}")));
    parts.extend(quantile(1.0).map(|ms| format!("longest {ms}")));
    if row.backend == domain::names::BackendName::builtin() {
        parts.push(format!("{} refused", format::count(sum.refused)));
    }
    parts.join(", ")
}
