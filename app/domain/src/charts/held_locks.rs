//! Held locks and waiters over time: means per cell, from roll-ups.

use serde::{Deserialize, Serialize};

use super::scale::TimeScale;
use super::series::{ChartSeries, Drawn};
use crate::history::rollup::Rollup;
use crate::history::series::{HistorySeries, HistorySpan, PrefixSeries, WatchedSpans};
use crate::token::FencingToken;

/// Most points of a line, in pixel columns.
const COLUMNS: usize = 600;

/// The drawing's data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeldLocksChart {
    pub held: Drawn,
    pub waiting: Drawn,
    /// Held and waiting of the preceding period, moved onto this one; `None`: not requested.
    pub before: Option<(Drawn, Drawn)>,
    pub now: HeldNow,
    pub events: Vec<ChartEvent>,
    /// Length of a cell, in milliseconds.
    pub cell_ms: i64,
}

/// Current values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldNow {
    pub held: u64,
    pub waiting: u64,
    /// Limited to kinds of locks of which the viewer may see all.
    pub is_cut: bool,
}

/// An event in the row below the lines. Times are milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChartEvent {
    /// Of one cell.
    Reclaims {
        from: i64,
        until: i64,
        count: u64,
    },
    ForcedUnlock {
        at: i64,
        by: String,
        id: String,
    },
    /// `resource` is the text form of a lock of the built-in service.
    Rejection {
        at: i64,
        token: FencingToken,
        resource: String,
    },
}

impl ChartEvent {
    /// Its place on the time axis.
    pub const fn at(&self) -> i64 {
        match self {
            Self::Reclaims { from, until, .. } => *from + (*until - *from) / 2,
            Self::ForcedUnlock { at, .. } | Self::Rejection { at, .. } => *at,
        }
    }
}

impl HeldLocksChart {
    pub fn new(series: &HistorySeries, now: HeldNow, events: Vec<ChartEvent>) -> Self {
        let (held, waiting) = draw(series, series.span, 0);
        Self {
            held,
            waiting,
            before: None,
            now,
            events,
            cell_ms: series.span.cell_ms,
        }
    }

    /// With the cells of the span before, as [`HistorySpan::before`] names it.
    #[must_use]
    pub fn compared_to(self, before: &HistorySeries, span: HistorySpan) -> Self {
        let shift = span.from - before.span.from;
        Self {
            before: Some(draw(before, span, shift)),
            ..self
        }
    }

    /// Some of the range was not observed.
    pub fn has_gaps(&self) -> bool {
        !self.held.gaps.is_empty() || !self.waiting.gaps.is_empty()
    }
}

/// Held and waiting of `series` on the scale of `span`, `shift` milliseconds later.
fn draw(series: &HistorySeries, span: HistorySpan, shift: i64) -> (Drawn, Drawn) {
    let scale = TimeScale::new(span.from, span.to().min(span.now.max(span.from + 1)));
    let draw_shifted = |mut values: ChartSeries| {
        values.points.iter_mut().for_each(|point| point.0 += shift);
        for gap in &mut values.gaps {
            *gap = (gap.0 + shift, gap.1 + shift);
        }
        Drawn::from_series(&values, scale, COLUMNS, span.cells)
    };
    (
        draw_shifted(levels(series, |sums| sums.held_ms, |watched| &watched.watched_ms)),
        draw_shifted(levels(
            series,
            |sums| sums.waiting_ms,
            |watched| &watched.waits_ms,
        )),
    )
}

/// Mean of each cell, summed over backends. A cell in which a backend was not observed is
/// unknown: a sum without it would show a drop that did not happen.
fn levels(
    series: &HistorySeries,
    sum: fn(&Rollup) -> u64,
    watched: fn(&WatchedSpans) -> &Vec<i64>,
) -> ChartSeries {
    let span = series.span;
    let observed: Vec<&WatchedSpans> = series
        .backends
        .iter()
        .filter(|backend| watched(backend).iter().any(|ms| *ms > 0))
        .collect();
    let mut values = ChartSeries::default();
    for cell in 0..span.cells {
        let passed = span.passed_ms(cell);
        if passed == 0 {
            continue;
        }
        let mut level = 0.0;
        let mut is_known = !observed.is_empty();
        for backend in &observed {
            let known = watched(backend).get(cell).copied().unwrap_or(0);
            // Known for at least half of the elapsed part.
            if known <= 0 || known * 2 < passed {
                is_known = false;
                break;
            }
            let is_of_backend = |prefix: &&PrefixSeries| prefix.backend == backend.backend;
            let held: u64 = series
                .prefixes
                .iter()
                .filter(is_of_backend)
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
    use super::*;
    use crate::names::BackendName;

    const MINUTE: i64 = 60_000;

    fn series(span: HistorySpan, held: &[(&str, [u64; 4], [i64; 4])]) -> HistorySeries {
        let name = |name: &str| BackendName::parse(name).unwrap();
        let cells = |held: [u64; 4]| {
            let cell = |count: u64| Rollup {
                held_ms: count * 60_000,
                ..Rollup::default()
            };
            held.into_iter().map(cell).collect()
        };
        let prefixes = held.iter().map(|(backend, held, _)| PrefixSeries {
            backend: name(backend),
            prefix: "x".to_owned(),
            cells: cells(*held),
            total: Rollup::default(),
        });
        let backends = held.iter().map(|(backend, _, watched)| WatchedSpans {
            backend: name(backend),
            watched_ms: watched.to_vec(),
            waits_ms: vec![0; 4],
        });
        HistorySeries {
            span,
            prefixes: prefixes.collect(),
            backends: backends.collect(),
        }
    }

    const SPAN: HistorySpan = HistorySpan {
        from: 4 * MINUTE,
        cell_ms: MINUTE,
        cells: 4,
        now: 8 * MINUTE,
    };
    const NOW: HeldNow = HeldNow {
        held: 14,
        waiting: 0,
        is_cut: false,
    };

    #[test]
    fn means_are_summed_and_an_unobserved_backend_makes_a_gap() {
        // Two backends over four minutes; the second is not observed in the third.
        let series = series(
            SPAN,
            &[
                ("a", [1, 2, 3, 4], [MINUTE; 4]),
                ("b", [10, 10, 0, 10], [MINUTE, MINUTE, 0, MINUTE]),
            ],
        );
        let chart = HeldLocksChart::new(&series, NOW, Vec::new());
        let levels: Vec<f64> = chart
            .held
            .runs
            .iter()
            .flatten()
            .map(|(_, level)| *level)
            .collect();
        assert_eq!(
            (levels, chart.held.gaps.clone()),
            (vec![11.0, 12.0, 14.0], vec![(6 * MINUTE, 7 * MINUTE)])
        );
        assert!(chart.has_gaps() && chart.waiting.is_empty());
    }

    #[test]
    fn the_span_before_is_drawn_in_the_same_columns() {
        // Four minutes with 5 held, after four minutes with 1, 2, 3, 4.
        let before = SPAN.before();
        assert_eq!((before.from, before.to()), (0, SPAN.from));
        let now = series(SPAN, &[("a", [5; 4], [MINUTE; 4])]);
        let past = series(before, &[("a", [1, 2, 3, 4], [MINUTE; 4])]);
        let chart = HeldLocksChart::new(&now, NOW, Vec::new()).compared_to(&past, SPAN);
        let levels = |drawn: &Drawn| -> Vec<Option<f64>> {
            drawn
                .spans
                .iter()
                .map(|span| span.level.map(|level| level.last))
                .collect()
        };
        let (held, _) = chart.before.unwrap();
        assert_eq!(levels(&held), [1.0, 2.0, 3.0, 4.0].map(Some));
        assert_eq!(levels(&chart.held), [5.0; 4].map(Some));
    }
}
