//! Sums over time for charts: dense cells that distinguish unknown from zero.

use serde::{Deserialize, Serialize};

use super::rollup::Rollup;
use super::template::literal;
use crate::access::Visible;
use crate::names::BackendName;

/// Possible lengths of a cell, in seconds.
const CELLS_S: [i64; 6] = [60, 120, 600, 3_600, 21_600, 86_400];
/// Cells of one chart at most.
pub const CELLS_MAX: i64 = 48;

/// Cells of one length, starting at `from`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistorySpan {
    /// Milliseconds since 1970, on a cell boundary.
    pub from: i64,
    pub cell_ms: i64,
    pub cells: usize,
    /// Later times are unknown.
    pub now: i64,
}

/// Observed time of one backend per cell, in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedSpans {
    pub backend: BackendName,
    pub watched_ms: Vec<i64>,
    /// Time for which waiters were reported.
    pub waits_ms: Vec<i64>,
}

/// The locks of one template on one backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrefixSeries {
    pub backend: BackendName,
    pub prefix: String,
    /// Histograms and names only if requested.
    pub cells: Vec<Rollup>,
    pub total: Rollup,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistorySeries {
    pub span: HistorySpan,
    pub prefixes: Vec<PrefixSeries>,
    pub backends: Vec<WatchedSpans>,
}

impl HistorySpan {
    /// The shortest cells with which `from` to `to` has at most [`CELLS_MAX`], in milliseconds
    /// since 1970. A range in the past has every cell that it touches. One that ends now has as many cells as its length
    /// has, of which the last is still filling.
    pub fn new(from: i64, to: i64, now: i64) -> Self {
        let length = to.saturating_sub(from).max(1);
        let end = |cell_ms: i64| to.saturating_add(cell_ms - 1).div_euclid(cell_ms);
        let count = |cell_ms: i64| match to < now {
            true => end(cell_ms) - from.div_euclid(cell_ms),
            false => length.saturating_add(cell_ms - 1) / cell_ms,
        };
        let fits = |cell: &&i64| count(**cell * 1_000) <= CELLS_MAX;
        let cell_ms = CELLS_S.iter().find(fits).unwrap_or(&CELLS_S[CELLS_S.len() - 1]) * 1_000;
        let cells = count(cell_ms).clamp(1, CELLS_MAX * 8);
        Self {
            from: (end(cell_ms) - cells) * cell_ms,
            cell_ms,
            cells: usize::try_from(cells).unwrap_or(1),
            now,
        }
    }

    /// The same number of cells, ending where this begins.
    #[must_use]
    pub const fn before(self) -> Self {
        Self {
            from: self.from - (self.to() - self.from),
            ..self
        }
    }

    pub const fn to(&self) -> i64 {
        self.start(self.cells)
    }

    /// Begin of a cell.
    #[expect(clippy::cast_possible_wrap, reason = "there are some dozens of cells")]
    pub const fn start(&self, cell: usize) -> i64 {
        self.from + self.cell_ms * cell as i64
    }

    /// Index of the cell that contains a moment.
    pub fn cell_of(&self, at: i64) -> Option<usize> {
        let cell = at.checked_sub(self.from)?.div_euclid(self.cell_ms);
        usize::try_from(cell).ok().filter(|cell| *cell < self.cells)
    }

    /// Elapsed part of a cell, in milliseconds.
    pub fn passed_ms(&self, cell: usize) -> i64 {
        (self.now - self.start(cell)).clamp(0, self.cell_ms)
    }
}

impl WatchedSpans {
    /// Waiters are known for most of the elapsed cell.
    pub fn knows(&self, span: &HistorySpan, cell: usize) -> bool {
        let known = self.waits_ms.get(cell).copied().unwrap_or(0);
        known > 0 && known * 2 >= span.passed_ms(cell)
    }

    pub fn reports_waiters(&self) -> bool {
        self.waits_ms.iter().any(|ms| *ms > 0)
    }
}

impl HistorySeries {
    pub fn watched(&self, backend: &BackendName) -> Option<&WatchedSpans> {
        self.backends.iter().find(|watched| watched.backend == *backend)
    }

    /// Removes templates that the reader may not see: all names that a template can stand for
    /// must be visible.
    #[must_use]
    pub fn seen_by(mut self, visible: &Visible) -> Self {
        if visible.is_everything() {
            return self;
        }
        self.prefixes
            .retain(|series| is_visible(visible, &series.backend, &series.prefix));
        self.backends
            .retain(|watched| !visible.on(&watched.backend).is_nothing());
        self
    }
}

/// Every name that this template can stand for is visible.
pub fn is_visible(visible: &Visible, backend: &BackendName, prefix: &str) -> bool {
    let scope = visible.on(backend);
    scope.is_everything() || literal(prefix).is_some_and(|literal| scope.covers(literal))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::access::{Grant, Grants, Role};

    #[test]
    fn a_template_that_reaches_beyond_a_scope_is_not_shown() {
        // A viewer of one tenant and of one kind of job: only templates that cannot stand for
        // others' names.
        let grants = ["tenant_a", "jobs:close"].map(|prefix| Grant {
            role: Role::Viewer,
            backend: None,
            prefix: Some(prefix.to_owned()),
        });
        let visible = Visible::to(&Grants::new(grants.into()));
        let sees = |prefix: &str| is_visible(&visible, &BackendName::builtin(), prefix);
        assert!(sees("tenant_a:x") && sees("tenant_a:*") && sees("tenant_a") && sees("jobs:close:*"));
        assert!(
            !sees("tenant_*:x")
                && !sees("tenant_a*")
                && !sees("jobs:close*")
                && !sees("jobs:*")
                && !sees("*")
        );
        assert!(!sees("other names") && !sees("tenant_ab:*"));
        assert!(is_visible(&Visible::default(), &BackendName::builtin(), "*"));
    }

    #[test]
    fn ranges_have_cells_that_a_user_can_name() {
        // The five ranges of every page, each ending inside a cell.
        let now = 1_772_334_761_000;
        let layouts = [1, 6, 24, 7 * 24, 30 * 24].map(|hours: i64| {
            let span = HistorySpan::new(now - hours * 3_600_000, now, now);
            (span.cell_ms / 60_000, span.cells)
        });
        assert_eq!(layouts, [(2, 30), (10, 36), (60, 24), (360, 28), (1_440, 30)]);
    }

    proptest! {
        #[test]
        fn cells_reach_the_end_and_are_few(from in 0i64..2_000_000_000_000, length in 60_000i64..2_678_400_000, ago in 0i64..2) {
            let span = HistorySpan::new(from, from + length, from + length + ago);
            prop_assert!(span.to() >= from + length && span.to() - (from + length) < span.cell_ms);
            // The begin of a range in the past, such as that of an incident, is never left out.
            prop_assert!(ago == 0 || span.from <= from);
            prop_assert!(i64::try_from(span.cells).unwrap() <= CELLS_MAX);
            prop_assert_eq!(span.cell_of(span.to() - 1), Some(span.cells - 1));
            prop_assert_eq!(span.cell_of(span.to()), None);
            prop_assert_eq!(span.from.rem_euclid(span.cell_ms), 0);
        }
    }
}
