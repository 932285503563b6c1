//! Everything that the contention page shows, from sums of history.

use serde::{Deserialize, Serialize};

use super::recommendations::Advice;
use super::selection::{Selection, is_prefix};
use super::{Contention, ContentionQuery, ContentionRow, ContentionSort, Others};
use crate::blockers::Blocker;
use crate::charts::durations::{DurationChart, DurationsOf, Holds};
use crate::charts::shown_range::ShownRange;
use crate::format;
use crate::history::histogram::Histogram;
use crate::history::rollup::Rollup;
use crate::history::series::HistorySpan;
use crate::names::BackendName;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContentionPage {
    pub range: ShownRange,
    /// Headline, as a finding, and the sentence below it.
    pub title: String,
    pub lead: String,
    pub span: HistorySpan,
    /// Worst first.
    pub map: Vec<MapRow>,
    pub others: Option<Others>,
    /// Order of `top`.
    pub by: ContentionSort,
    pub top: Vec<TopPrefix>,
    pub selected: Selection,
    /// Of the selected row, or of all locks.
    pub hold_times: DurationChart,
    pub wait_times: DurationChart,
    /// Largest tree first, and their number.
    pub trees: Vec<Blocker>,
    pub trees_total: usize,
    /// Why the trees may be incomplete.
    pub trees_fault: Option<String>,
    /// The reader sees only a part of the names.
    pub is_cut: bool,
}

/// A row of the heatmap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapRow {
    pub backend: BackendName,
    pub prefix: String,
    /// The backend reports its waiters.
    pub is_known: bool,
    pub waited_ms: u64,
    /// Wait per cell, in milliseconds; `None`: unknown for most of it.
    pub cells: Vec<Option<u64>>,
}

/// A row of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopPrefix {
    pub backend: BackendName,
    pub prefix: String,
    pub is_known: bool,
    pub waited_ms: u64,
    pub held_ms: u64,
    pub refused: u64,
    /// Tenths of a per cent of the acquires; known for the lease service only.
    pub refused_permille: Option<u32>,
    pub waits: u64,
    pub wait_p95_ms: Option<i64>,
    pub hold_p95_ms: Option<i64>,
    pub advice: Vec<Advice>,
}

/// Input from which [`ContentionPage`] is built.
pub struct PageInput<'a> {
    pub query: &'a ContentionQuery,
    pub range: ShownRange,
    /// Rows by wait.
    pub found: Contention,
    /// Rows in the requested order.
    pub top: Contention,
    /// Holds and waits of all visible locks.
    pub all: AllLocks,
    /// Wait of the preceding period; `None`: it was not observed.
    pub before_ms: Option<u64>,
    pub is_cut: bool,
}

/// Histograms over all visible prefixes.
#[derive(Debug, Clone, Default)]
pub struct AllLocks {
    pub holds: Histogram,
    pub holds_uncertain: u64,
    pub waits: Histogram,
}

impl ContentionPage {
    /// Without trees, which are read live.
    pub fn new(input: PageInput<'_>) -> Self {
        let PageInput {
            query,
            range,
            found,
            top,
            all,
            before_ms,
            is_cut,
        } = input;
        let range_label = range_label(&range);
        let chosen = query.prefix.as_ref().and_then(|prefix| {
            found
                .rows
                .iter()
                .chain(&top.rows)
                .find(|row| is_prefix(row, prefix))
        });
        let (hold_times, wait_times) = match chosen {
            Some(row) => durations(&row.total, &row.prefix),
            None => all_durations(&all),
        };
        Self {
            title: found.title(&range_label),
            lead: format!(
                "{}{}",
                found.lead(&range_label),
                compared(found.waited_ms, before_ms)
            ),
            span: found.span,
            selected: Selection::new(&found, query),
            map: found.rows.iter().map(map_row).collect(),
            others: found.others,
            by: query.by,
            top: top.rows.into_iter().map(top_row).collect(),
            hold_times,
            wait_times,
            trees: Vec::new(),
            trees_total: 0,
            trees_fault: None,
            range,
            is_cut,
        }
    }
}

/// `last 6 h`, `last 10 m`, `range`.
fn range_label(range: &ShownRange) -> String {
    match (range.picked, range.begins_with_data) {
        (Some(crate::charts::range::TimeRange::Between { .. }), _) => "range".to_owned(),
        (None, true) => format!("last {}", range.length()),
        _ => range.label(),
    }
}

/// Compared with the preceding period: differences from a tenth on are worth a sentence.
fn compared(waited_ms: u64, before_ms: Option<u64>) -> String {
    let Some(before) = before_ms else {
        return String::new();
    };
    let difference = waited_ms.abs_diff(before);
    if difference < 1_000 || difference.saturating_mul(10) < before {
        return if waited_ms.max(before) < 1_000 {
            String::new()
        } else {
            " About as much as in the preceding period.".to_owned()
        };
    }
    let comparison = if waited_ms > before { "more" } else { "less" };
    let length = format::period(super::rounded(difference));
    format!(" {length} {comparison} than in the preceding period.")
}

fn durations(total: &Rollup, prefix: &str) -> (DurationChart, DurationChart) {
    let of = DurationsOf::Prefix(prefix.to_owned());
    let holds = Holds::counted(total.holds.bars()).with_uncertain(total.holds_uncertain);
    let waits = Holds::counted(total.waits.bars());
    (
        DurationChart::new(&holds, None, of.clone()),
        DurationChart::new(&waits, None, of),
    )
}

fn all_durations(all: &AllLocks) -> (DurationChart, DurationChart) {
    let holds = Holds::counted(all.holds.bars()).with_uncertain(all.holds_uncertain);
    let waits = Holds::counted(all.waits.bars());
    (
        DurationChart::new(&holds, None, DurationsOf::AllLocks),
        DurationChart::new(&waits, None, DurationsOf::AllLocks),
    )
}

fn map_row(row: &ContentionRow) -> MapRow {
    let waited = |cell: &Option<Rollup>| cell.as_ref().map(|sum| sum.waiting_ms);
    MapRow {
        backend: row.backend.clone(),
        prefix: row.prefix.clone(),
        is_known: row.is_known,
        waited_ms: row.total.waiting_ms,
        cells: row.cells.iter().map(waited).collect(),
    }
}

fn top_row(row: ContentionRow) -> TopPrefix {
    let total = &row.total;
    let is_ours = row.backend == BackendName::builtin();
    TopPrefix {
        refused_permille: is_ours.then(|| permille(total.refused, total.acquired + total.refused)),
        is_known: row.is_known,
        waited_ms: total.waiting_ms,
        held_ms: total.held_ms,
        refused: total.refused,
        waits: total.waits.count(),
        wait_p95_ms: total.waits.quantile(0.95),
        hold_p95_ms: total.holds.quantile(0.95),
        backend: row.backend,
        prefix: row.prefix,
        advice: row.advice,
    }
}

fn permille(part: u64, whole: u64) -> u32 {
    let share = part.saturating_mul(1_000).checked_div(whole).unwrap_or(0);
    u32::try_from(share.min(1_000)).unwrap_or(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::charts::range::RangePreset;

    fn row(prefix: &str, waits: [u64; 2]) -> ContentionRow {
        let mut total = Rollup {
            waiting_ms: waits.iter().sum(),
            acquired: 3,
            refused: 1,
            ..Rollup::default()
        };
        total.holds.add(10_000);
        let cell = |ms| {
            Some(Rollup {
                waiting_ms: ms,
                ..Rollup::default()
            })
        };
        ContentionRow {
            backend: BackendName::builtin(),
            prefix: prefix.to_owned(),
            is_known: true,
            total,
            cells: waits.map(cell).into(),
            advice: Vec::new(),
        }
    }

    fn page(query: &ContentionQuery, before_ms: Option<u64>) -> ContentionPage {
        let rows = vec![row("a:*", [5_000, 60_000]), row("b:*", [70_000, 0])];
        let found = Contention {
            span: HistorySpan {
                from: 0,
                cell_ms: 600_000,
                cells: 2,
                now: 1_200_000,
            },
            rows,
            others: None,
            waited_ms: 135_000,
            is_known: true,
        };
        ContentionPage::new(PageInput {
            query,
            range: ShownRange::new(Ok(None), RangePreset::SixHours, Some(0), 1_200_000),
            top: found.clone(),
            found,
            all: AllLocks::default(),
            before_ms,
            is_cut: false,
        })
    }

    fn query_for(prefix: &str, at: Option<i64>) -> ContentionQuery {
        ContentionQuery {
            prefix: Some(("builtin".to_owned(), prefix.to_owned())),
            at,
            ..ContentionQuery::default()
        }
    }

    #[test]
    fn the_longest_wait_is_selected_unless_the_url_selects() {
        let place = |query: &ContentionQuery| match page(query, None).selected {
            Selection::Cell(it) => Some((it.row, it.cell)),
            Selection::Nothing => None,
            Selection::NotShown { prefix, at } => {
                // The time is named only where the prefix is on the map.
                let at_expected = query.at.filter(|_| prefix == "a:*");
                assert_eq!(
                    (Some(prefix), at),
                    (query.prefix.clone().map(|it| it.1), at_expected)
                );
                None
            }
        };
        assert_eq!(place(&ContentionQuery::default()), Some((1, 0)));
        assert_eq!(place(&query_for("a:*", None)), Some((0, 1)));
        assert_eq!(place(&query_for("a:*", Some(0))), Some((0, 0)));
        assert_eq!(
            [
                place(&query_for("c:*", None)),
                place(&query_for("c:*", Some(0))),
                place(&query_for("a:*", Some(9_000_000)))
            ],
            [None, None, None]
        );
    }

    #[test]
    fn hold_times_are_of_the_selected_prefix_or_of_all() {
        let hold_times = page(&query_for("a:*", None), None).hold_times;
        assert_eq!(
            (hold_times.count(), hold_times.of),
            (1, DurationsOf::Prefix("a:*".to_owned()))
        );
        let all = page(&ContentionQuery::default(), None).hold_times;
        assert_eq!((all.count(), all.of), (0, DurationsOf::AllLocks));
    }

    #[test]
    fn the_lead_compares_with_the_span_before() {
        let lead = |before| page(&ContentionQuery::default(), before).lead;
        assert!(
            lead(None).starts_with("2 m 15 s were spent waiting in the last 20 m"),
            "{}",
            lead(None)
        );
        assert!(!lead(None).contains("before"));
        assert!(
            lead(Some(75_000)).ends_with(" 1 m more than in the preceding period."),
            "{}",
            lead(Some(75_000))
        );
        assert!(lead(Some(195_000)).ends_with(" 1 m less than in the preceding period."));
        assert!(lead(Some(134_000)).ends_with(" About as much as in the preceding period."));
    }

    #[test]
    fn refused_shares_are_known_for_the_lease_service_only() {
        let top = page(&ContentionQuery::default(), None).top;
        assert_eq!(top[0].refused_permille, Some(250));
        let mut foreign = row("x", [0, 0]);
        foreign.backend = BackendName::parse("cache").unwrap();
        assert_eq!(top_row(foreign).refused_permille, None);
    }
}
