//! Held locks and waiters over time: means per cell, from rollups.

use domain::charts::scale::TimeScale;
use domain::charts::series::{ChartSeries as Values, Drawn};
use domain::format;
use domain::history::rollup::Rollup;
use domain::history::series::{HistorySeries, PrefixSeries, WatchedSpans};

use super::chart_frame::{self, Frame, LegendEntry, Swatch};
use super::html_writer::Markup;
use super::series::{Draw, Event, Panel, SeriesChart};

/// Current values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldLocks {
    pub held: u64,
    pub waiting: u64,
    /// Limited to kinds of locks of which the viewer may see all.
    pub is_cut: bool,
}

/// Most points of a line, in pixel columns.
const COLUMNS: usize = 600;

pub fn held_locks_chart(
    series: &HistorySeries,
    now: HeldLocks,
    events: Vec<Event>,
    words: &str,
    end: Markup,
) -> Markup {
    let span = series.span;
    let scale = TimeScale::new(span.from, span.to().min(span.now.max(span.from + 1)));
    let drawn = |values: Values| Drawn::from_series(&values, scale, COLUMNS, span.cells);
    let held = drawn(levels(series, |sums| sums.held_ms, |watched| &watched.watched_ms));
    let waiting = drawn(levels(
        series,
        |sums| sums.waiting_ms,
        |watched| &watched.waits_ms,
    ));
    let has_gaps = !held.gaps.is_empty() || !waiting.gaps.is_empty();
    let legend = legend(&events, has_gaps);
    let chart = SeriesChart {
        scale,
        panels: vec![
            panel("held", now.held, "healthy", 112, held),
            panel("waiting", now.waiting, "waiting", 72, waiting),
        ],
        events: Some(events),
        href: None,
    };
    let each = format::period(span.cell_ms);
    let cut = if now.is_cut { ", in your scope" } else { "" };
    chart_frame::frame(&Frame {
        id: "held",
        title: finding(&chart, now),
        note: format!("{words}, mean of each {each}, UTC{cut}"),
        end,
        drawing: chart.markup(),
        legend,
        table: chart.table("Held and waiting over time, as drawn above"),
    })
}

fn panel(word: &'static str, now: u64, hue: &'static str, height: u32, drawn: Drawn) -> Panel {
    Panel {
        word,
        figure: Some(format::count(now)),
        hue,
        draw: Draw::Line,
        height,
        drawn,
    }
}

fn finding(chart: &SeriesChart, now: HeldLocks) -> String {
    let waiting = chart.panels.iter().find(|panel| panel.word == "waiting");
    let most = waiting
        .filter(|panel| !panel.drawn.is_empty())
        .map(|panel| panel.drawn.high);
    match most {
        Some(most) if most >= 1.0 && now.waiting as f64 >= most => "Waiting at its peak".to_owned(),
        _ => "Held and waiting".to_owned(),
    }
}

fn legend(events: &[Event], has_gaps: bool) -> Vec<LegendEntry> {
    let has = |shape: &str| events.iter().any(|event| event.shape == shape);
    let keys = [
        (has("reclaim"), Swatch::Shape("reclaim", ""), "reclaim"),
        (has("revoke"), Swatch::Shape("revoke", ""), "forced unlock"),
        (has("x"), Swatch::Shape("x", "critical"), "fencing rejection"),
        (has_gaps, Swatch::Area("hatch"), "no history"),
    ];
    let drawn = keys.into_iter().filter(|(is_drawn, ..)| *is_drawn);
    drawn
        .map(|(_, swatch, word)| LegendEntry::new(swatch, word))
        .collect()
}

/// Mean of each cell, summed over backends. A cell in which a backend was not observed is
/// unknown: a sum without it would show a drop that did not happen.
fn levels(
    series: &HistorySeries,
    sum: fn(&Rollup) -> u64,
    watched: fn(&WatchedSpans) -> &Vec<i64>,
) -> Values {
    let span = series.span;
    let telling: Vec<&WatchedSpans> = series
        .backends
        .iter()
        .filter(|backend| watched(backend).iter().any(|ms| *ms > 0))
        .collect();
    let mut values = Values::default();
    for cell in 0..span.cells {
        let passed = span.passed_ms(cell);
        if passed == 0 {
            continue;
        }
        let mut level = 0.0;
        let mut is_known = !telling.is_empty();
        for backend in &telling {
            let known = watched(backend).get(cell).copied().unwrap_or(0);
            // Known for at least half of the elapsed part.
            if known <= 0 || known * 2 < passed {
                is_known = false;
                break;
            }
            let own = |prefix: &&PrefixSeries| prefix.backend == backend.backend;
            let held: u64 = series
                .prefixes
                .iter()
                .filter(own)
                .filter_map(|prefix| prefix.cells.get(cell))
                .map(sum)
                .sum();
            level += held as f64 / known as f64;
        }
        let from = span.start(cell);
        if is_known {
            values.points.push((from + passed / 2, level));
            continue;
        }
        match values.gaps.last_mut().filter(|last| last.1 == from) {
            Some(last) => last.1 = from + passed,
            None => values.gaps.push((from, from + passed)),
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use domain::history::series::HistorySpan;
    use domain::names::BackendName;

    use super::*;

    #[test]
    fn means_are_summed_and_an_unobserved_backend_makes_a_gap() {
        // Two backends over four minutes; the second is not observed in the third.
        let minute = 60_000;
        let span = HistorySpan {
            from: 0,
            cell_ms: minute,
            cells: 4,
            now: 4 * minute,
        };
        let name = |name: &str| BackendName::parse(name).unwrap();
        let cells = |held: [u64; 4]| -> Vec<Rollup> {
            let cell = |count: u64| Rollup {
                held_ms: count * 60_000,
                ..Rollup::default()
            };
            held.into_iter().map(cell).collect()
        };
        let prefix = |backend: &str, held| PrefixSeries {
            backend: name(backend),
            prefix: "x".to_owned(),
            cells: cells(held),
            total: Rollup::default(),
        };
        let watched = |backend: &str, ms: [i64; 4]| WatchedSpans {
            backend: name(backend),
            watched_ms: ms.to_vec(),
            waits_ms: vec![0; 4],
        };
        let series = HistorySeries {
            span,
            prefixes: vec![prefix("a", [1, 2, 3, 4]), prefix("b", [10, 10, 0, 10])],
            backends: vec![
                watched("a", [minute; 4]),
                watched("b", [minute, minute, 0, minute]),
            ],
        };
        let values = levels(&series, |sums| sums.held_ms, |watched| &watched.watched_ms);
        let told: Vec<f64> = values.points.iter().map(|(_, level)| *level).collect();
        assert_eq!(
            (told, values.gaps),
            (vec![11.0, 12.0, 14.0], vec![(2 * minute, 3 * minute)])
        );
        let now = HeldLocks {
            held: 14,
            waiting: 0,
            is_cut: false,
        };
        let html = held_locks_chart(&series, now, Vec::new(), "last 4 m", Markup::new()).into_string();
        for told in ["11 held", "14 held", "unknown: no history"] {
            // Once as a tooltip, once in the table.
            assert!(html.matches(told).count() >= 2, "{told}: {html}");
        }
    }
}
