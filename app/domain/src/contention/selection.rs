//! The selected cell of the heatmap.

use serde::{Deserialize, Serialize};

use super::{Contention, ContentionQuery, ContentionRow};
use crate::history::rollup::Rollup;
use crate::names::BackendName;

/// The cell in the URL; without one, that with the longest wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Selection {
    /// Nothing was selected, and there was no wait.
    Nothing,
    Cell(CellDetail),
    /// `at`: that time is not in the range; `None`: the prefix is not on the map.
    NotShown {
        prefix: String,
        at: Option<i64>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellDetail {
    /// Places in the map.
    pub row: usize,
    pub cell: usize,
    /// `None`: no data.
    pub sums: Option<CellSums>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellSums {
    pub waited_ms: u64,
    pub waits: u64,
    pub p95_ms: Option<i64>,
    pub longest_ms: Option<i64>,
    /// Known for the lease service only.
    pub refused: Option<u64>,
}

impl Selection {
    pub(super) fn new(found: &Contention, query: &ContentionQuery) -> Selection {
        let Some(prefix) = &query.prefix else {
            let position = longest_wait(found);
            return position.map_or(Selection::Nothing, |(row, cell)| {
                Selection::Cell(detail(found, row, cell))
            });
        };
        let row = found.rows.iter().position(|row| is_prefix(row, prefix));
        let position = row.and_then(|row| {
            let cell = match query.at {
                Some(at) => found.span.cell_of(at),
                None => longest_of(&found.rows[row].cells),
            };
            Some((row, cell?))
        });
        match position {
            Some((row, cell)) => Selection::Cell(detail(found, row, cell)),
            None => Selection::NotShown {
                prefix: prefix.1.clone(),
                // The same prefix of another backend may be on the map.
                at: row.and(query.at),
            },
        }
    }
}

pub(super) fn is_prefix(row: &ContentionRow, (backend, prefix): &(String, String)) -> bool {
    row.backend.as_str() == backend && row.prefix == *prefix
}

fn waited(cell: &Option<Rollup>) -> u64 {
    cell.as_ref().map_or(0, |sum| sum.waiting_ms)
}

/// The last of those with the longest wait.
fn longest_of(cells: &[Option<Rollup>]) -> Option<usize> {
    let cells = cells.iter().enumerate();
    cells
        .max_by_key(|(place, cell)| (waited(cell), *place))
        .map(|(place, _)| place)
}

/// Row and cell; `None` where nothing waited.
fn longest_wait(found: &Contention) -> Option<(usize, usize)> {
    let rows = found.rows.iter().enumerate();
    let cells = rows.filter_map(|(row, prefix_row)| Some((row, longest_of(&prefix_row.cells)?)));
    let wait_of = |(row, cell): &(usize, usize)| waited(&found.rows[*row].cells[*cell]);
    cells
        .max_by_key(|position| (wait_of(position), position.1))
        .filter(|position| wait_of(position) > 0)
}

fn detail(found: &Contention, row: usize, cell: usize) -> CellDetail {
    let prefix_row = &found.rows[row];
    let sum = prefix_row.cells.get(cell).and_then(Option::as_ref);
    let sums = sum.map(|sum| CellSums {
        waited_ms: sum.waiting_ms,
        waits: sum.waits.count(),
        p95_ms: sum.waits.quantile(0.95),
        longest_ms: sum.waits.quantile(1.0),
        refused: (prefix_row.backend == BackendName::builtin()).then_some(sum.refused),
    });
    CellDetail { row, cell, sums }
}
