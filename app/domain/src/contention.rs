//! Contention: wait time of prefixes over time, the worst first, with recommendations.
//!
//! Pure: takes sums of history, returns what pages and programs show.

mod page;
mod query;
pub mod recommendations;
mod selection;
pub mod trees;

pub use page::{AllLocks, ContentionPage, MapRow, PageInput, TopPrefix};
pub use query::ContentionQuery;
pub use selection::{CellDetail, CellSums, Selection};

use serde::{Deserialize, Serialize};

use crate::format;
use crate::history::rollup::Rollup;
use crate::history::series::{HistorySeries, HistorySpan, PrefixSeries};
use crate::names::BackendName;

use self::recommendations::Advice;

/// Prefixes shown individually; the others share one row.
pub const ROWS_MAX: usize = 12;
/// Prefixes shown although their waiters are unknown.
const UNOBSERVED_PREFIXES_MAX: usize = 2;

crate::wire_enum! {
    /// Sort order of the rows.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
    pub enum ContentionSort {
        #[default]
        Wait = "wait",
        Refusals = "refusals",
        Held = "held",
    }
}

/// One prefix on one backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentionRow {
    pub backend: BackendName,
    pub prefix: String,
    /// The backend reports its waiters.
    pub is_known: bool,
    pub total: Rollup,
    /// `None`: unknown for most of the cell.
    pub cells: Vec<Option<Rollup>>,
    pub advice: Vec<Advice>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contention {
    pub span: HistorySpan,
    /// Worst first.
    pub rows: Vec<ContentionRow>,
    /// All other prefixes: number, total wait, and wait per cell.
    pub others: Option<Others>,
    pub waited_ms: u64,
    /// Some of the range was observed.
    pub is_known: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Others {
    pub prefixes: usize,
    pub waited_ms: u64,
    pub cells: Vec<Option<u64>>,
}

/// Indexes in `series` of the worst prefixes, worst first.
pub fn worst(series: &HistorySeries, by: ContentionSort, most: usize) -> Vec<usize> {
    let reports_waiters =
        |of: &PrefixSeries| series.watched(&of.backend).is_some_and(|it| it.reports_waiters());
    let weight = |of: &PrefixSeries| match by {
        ContentionSort::Wait => (of.total.waiting_ms, of.total.refused),
        ContentionSort::Refusals => (of.total.refused, of.total.waiting_ms),
        ContentionSort::Held => (of.total.held_ms, of.total.waiting_ms),
    };
    let mut indexes: Vec<usize> = (0..series.prefixes.len()).collect();
    indexes.sort_by(|left, right| {
        let (left, right) = (&series.prefixes[*left], &series.prefixes[*right]);
        let names = (&left.prefix, &left.backend).cmp(&(&right.prefix, &right.backend));
        let held = right.total.held_ms.cmp(&left.total.held_ms);
        weight(right).cmp(&weight(left)).then(held).then(names)
    });
    let (known, unobserved): (Vec<usize>, Vec<usize>) = indexes.into_iter().partition(|index| {
        reports_waiters(&series.prefixes[*index]) || weight(&series.prefixes[*index]) > (0, 0)
    });
    let unobserved: Vec<usize> = unobserved
        .into_iter()
        .take(UNOBSERVED_PREFIXES_MAX.min(most))
        .collect();
    known
        .into_iter()
        .take(most - unobserved.len())
        .chain(unobserved)
        .collect()
}

/// Rows for the prefixes at `indexes` of `series`. Their histograms must be loaded.
pub fn contention(series: &HistorySeries, indexes: &[usize]) -> Contention {
    let rows: Vec<ContentionRow> = indexes
        .iter()
        .filter_map(|index| series.prefixes.get(*index))
        .map(|of| row(series, of))
        .collect();
    let waited = |of: &PrefixSeries| of.total.waiting_ms;
    let is_other = |index: &usize| !indexes.contains(index);
    let others: Vec<&PrefixSeries> = (0..series.prefixes.len())
        .filter(is_other)
        .map(|index| &series.prefixes[index])
        .collect();
    let span = series.span;
    let known = |cell: usize| series.backends.iter().any(|it| it.knows(&span, cell));
    let others = (!others.is_empty()).then(|| Others {
        prefixes: others.len(),
        waited_ms: others.iter().map(|of| waited(of)).sum(),
        cells: (0..span.cells)
            .map(|cell| known(cell).then(|| others.iter().map(|of| of.cells[cell].waiting_ms).sum()))
            .collect(),
    });
    Contention {
        span,
        rows,
        others,
        waited_ms: series.prefixes.iter().map(waited).sum(),
        is_known: (0..span.cells).any(known),
    }
}

fn row(series: &HistorySeries, of: &PrefixSeries) -> ContentionRow {
    let watched = series.watched(&of.backend);
    let cells = of.cells.iter().enumerate().map(|(cell, sum)| {
        let is_known = watched.is_some_and(|it| it.knows(&series.span, cell));
        is_known.then(|| sum.clone())
    });
    ContentionRow {
        backend: of.backend.clone(),
        prefix: of.prefix.clone(),
        is_known: watched.is_some_and(|it| it.reports_waiters()),
        total: of.total.clone(),
        cells: cells.collect(),
        advice: Vec::new(),
    }
}

impl ContentionRow {
    /// The resource with the longest wait, and the least share of the row's wait that it
    /// accounts for, in per cent. `None` if no wait has ended.
    pub fn heaviest(&self) -> Option<(&str, u64)> {
        let (name, ms) = self.total.most_waited.iter().next()?;
        Some((name, share(ms, self.total.waiting_ms.max(ms))))
    }
}

fn share(part: u64, whole: u64) -> u64 {
    (part.saturating_mul(100))
        .checked_div(whole)
        .unwrap_or(0)
        .min(100)
}

impl Contention {
    /// The page's title, as a finding.
    pub fn title(&self, range_label: &str) -> String {
        // Waits can be recorded although no cell is known for most of its time.
        if !self.is_known && !self.has_waits() {
            return "No data about waits".to_owned();
        }
        let waited: Vec<&ContentionRow> = self.rows.iter().filter(|row| row.total.waiting_ms > 0).collect();
        let Some(first) = waited.first().filter(|_| self.has_waits()) else {
            return format!("No waits in the {range_label}");
        };
        let (worst, of) = (first.total.waiting_ms, self.waited_ms);
        let of_one = first
            .total
            .most_waited
            .iter()
            .next()
            .map_or(0, |(_, ms)| share(ms, of.max(ms)));
        if of_one >= 25 {
            return format!("One resource causes {of_one} % of the waiting");
        }
        match (share(worst, of), waited.len()) {
            (100, _) => "All waiting is under one prefix".to_owned(),
            (percent @ 25.., _) => format!("One prefix causes {percent} % of the waiting"),
            (_, prefixes) => format!("Waiting is spread over {prefixes} prefixes"),
        }
    }

    /// Shorter sums are below the displayed precision.
    const fn has_waits(&self) -> bool {
        self.waited_ms >= 1_000
    }

    pub fn lead(&self, range_label: &str) -> String {
        let all = format::period(rounded(self.waited_ms));
        let worst = self.rows.first().filter(|row| row.total.waiting_ms > 0);
        match worst.filter(|_| self.has_waits()) {
            Some(first) => format!(
                "{all} were spent waiting in the {range_label}, {} of it for {}.",
                format::period(rounded(first.total.waiting_ms)),
                first
                    .heaviest()
                    .filter(|(_, share)| *share >= 50)
                    .map_or(first.prefix.as_str(), |(name, _)| name)
            ),
            None if self.is_known => format!(
                "{} with locks in the {range_label}.",
                format::counted(self.rows.len() as u64, "prefix", "prefixes")
            ),
            None => format!("No backend reported its waiters for most of the {range_label}."),
        }
    }
}

/// Rounded to whole seconds, and to whole minutes above an hour.
pub fn rounded(ms: u64) -> i64 {
    let grain = if ms >= 3_600_000 {
        60_000
    } else if ms >= 1_000 {
        1_000
    } else {
        1
    };
    i64::try_from(ms / grain * grain).unwrap_or(i64::MAX)
}

/// Heat step of a cell, 0 to 5, by its wait: 5 is one waiter all the time, or more.
pub fn heat(waiting_ms: u64, cell_ms: i64) -> usize {
    let cell = u64::try_from(cell_ms.max(1)).unwrap_or(1);
    match waiting_ms.saturating_mul(100) / cell {
        _ if waiting_ms == 0 => 0,
        0..2 => 1,
        2..10 => 2,
        10..30 => 3,
        30..100 => 4,
        _ => 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::series::WatchedSpans;

    fn prefix(name: &str, waiting_ms: u64, resource: &str) -> PrefixSeries {
        let mut sum = Rollup {
            waiting_ms,
            ..Rollup::default()
        };
        sum.most_waited.add(resource, waiting_ms);
        PrefixSeries {
            backend: BackendName::builtin(),
            prefix: name.to_owned(),
            cells: vec![sum.clone(), Rollup::default()],
            total: sum,
        }
    }

    fn series(prefixes: Vec<PrefixSeries>) -> HistorySeries {
        let span = HistorySpan {
            from: 0,
            cell_ms: 60_000,
            cells: 2,
            now: 120_000,
        };
        HistorySeries {
            span,
            prefixes,
            backends: vec![WatchedSpans {
                backend: BackendName::builtin(),
                watched_ms: vec![60_000, 20_000],
                waits_ms: vec![60_000, 20_000],
            }],
        }
    }

    #[test]
    fn titles_are_findings_and_rows_come_worst_first() {
        // One resource, one prefix of many, many prefixes, no waits, and an unobserved range.
        let title = |prefixes: Vec<PrefixSeries>| {
            let series = series(prefixes);
            let indexes = worst(&series, ContentionSort::Wait, ROWS_MAX);
            contention(&series, &indexes).title("last 6 h")
        };
        assert_eq!(
            title(vec![prefix("b:*", 40_000, "b:1"), prefix("a:*", 60_000, "a:1")]),
            "One resource causes 60 % of the waiting"
        );
        let light = |name: &str| {
            let mut of = prefix(name, 20_000, "x");
            of.total.most_waited = crate::history::rollup::MostWaited::default();
            of
        };
        assert_eq!(
            title(vec![light("a"), light("b")]),
            "One prefix causes 50 % of the waiting"
        );
        let many = ["a", "b", "c", "d", "e"].map(light);
        assert_eq!(title(many.into()), "Waiting is spread over 5 prefixes");
        assert_eq!(title(Vec::new()), "No waits in the last 6 h");
        let mut unobserved = series(Vec::new());
        unobserved.backends.clear();
        assert_eq!(
            contention(&unobserved, &[]).title("last 6 h"),
            "No data about waits"
        );
    }

    #[test]
    fn title_and_lead_agree_about_waits_in_unknown_cells() {
        let texts = |ms: u64| {
            let mut of = prefix("a:*", ms, "a:1");
            of.total.waiting_ms = ms;
            let mut series = series(vec![of]);
            series.backends.clear();
            let all = contention(&series, &worst(&series, ContentionSort::Wait, ROWS_MAX));
            assert!(!all.is_known);
            (all.title("last 6 h"), all.lead("last 6 h"))
        };
        let (title, lead) = texts(40_000);
        assert_eq!(title, "One resource causes 100 % of the waiting");
        assert!(lead.starts_with("40 s were spent waiting"), "{lead}");
        let (title, lead) = texts(900);
        assert_eq!(title, "No data about waits");
        assert!(lead.starts_with("No backend reported its waiters"), "{lead}");
    }

    #[test]
    fn unknown_cells_are_not_zero_and_other_prefixes_are_summed() {
        // A third of the second cell was observed; three prefixes for two rows.
        let series = series(vec![
            prefix("a", 3, "a"),
            prefix("b", 2, "b"),
            prefix("c", 1, "c"),
        ]);
        let all = contention(&series, &worst(&series, ContentionSort::Wait, 2));
        let names: Vec<_> = all.rows.iter().map(|row| row.prefix.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert!(all.rows[0].cells[0].is_some() && all.rows[0].cells[1].is_none());
        let others = all.others.unwrap();
        assert_eq!(
            (others.prefixes, others.waited_ms, others.cells),
            (1, 1, vec![Some(1), None])
        );
    }

    #[test]
    fn one_waiter_all_the_time_is_the_darkest_cell() {
        // In a cell of ten minutes: zero, a moment, and the steps up to all of it.
        let steps = [0, 1, 20_000, 100_000, 300_000, 600_000, u64::MAX].map(|ms| heat(ms, 600_000));
        assert_eq!(steps, [0, 1, 2, 3, 4, 5, 5]);
    }
}
