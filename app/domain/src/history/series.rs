//! Sums over time for charts: dense cells, with what is not known told apart from nothing.

use super::rollup::Rollup;
use super::template::literal;
use crate::access::Visible;
use crate::names::BackendName;

/// Lengths that a cell may have, in seconds.
const CELLS_S: [i64; 6] = [60, 120, 600, 3_600, 21_600, 86_400];
/// Cells of one chart at most.
pub const CELLS_MAX: i64 = 48;

/// Cells from `from` on, all of one length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Milliseconds since 1970, on a boundary of cells.
    pub from: i64,
    pub cell_ms: i64,
    pub cells: usize,
    /// Nothing is known of what comes later.
    pub now: i64,
}

/// What is known of one backend, cell by cell, in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watched {
    pub backend: BackendName,
    pub watched_ms: Vec<i64>,
    /// As long as it told who waits.
    pub waits_ms: Vec<i64>,
}

/// The locks of one template on one backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrefixSeries {
    pub backend: BackendName,
    pub prefix: String,
    /// Histograms and names only where they were asked for.
    pub cells: Vec<Rollup>,
    pub total: Rollup,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    pub span: Span,
    pub prefixes: Vec<PrefixSeries>,
    pub backends: Vec<Watched>,
}

impl Span {
    /// The shortest cells that `from` until `to` has no more than [`CELLS_MAX`] of, in milliseconds since 1970. Ends are
    /// moved outwards to whole cells.
    pub fn over(from: i64, to: i64, now: i64) -> Self {
        let length = to.saturating_sub(from).max(1);
        let fits = |cell: &&i64| length <= **cell * 1_000 * CELLS_MAX;
        let cell_ms = CELLS_S.iter().find(fits).unwrap_or(&CELLS_S[CELLS_S.len() - 1]) * 1_000;
        let to = to.saturating_add(cell_ms - 1).div_euclid(cell_ms) * cell_ms;
        // A range that ends now has as many cells as it has cells' lengths: the last one is still filling.
        let cells = (length.saturating_add(cell_ms - 1) / cell_ms).clamp(1, CELLS_MAX * 8);
        Self {
            from: to - cells * cell_ms,
            cell_ms,
            cells: usize::try_from(cells).unwrap_or(1),
            now,
        }
    }

    pub const fn to(&self) -> i64 {
        self.start(self.cells)
    }

    /// Where a cell begins.
    #[expect(clippy::cast_possible_wrap, reason = "there are some dozens of cells")]
    pub const fn start(&self, cell: usize) -> i64 {
        self.from + self.cell_ms * cell as i64
    }

    /// Which cell a moment lies in.
    pub fn cell_of(&self, at: i64) -> Option<usize> {
        let cell = at.checked_sub(self.from)?.div_euclid(self.cell_ms);
        usize::try_from(cell).ok().filter(|cell| *cell < self.cells)
    }

    /// How much of a cell is over, in milliseconds.
    pub fn passed_ms(&self, cell: usize) -> i64 {
        (self.now - self.start(cell)).clamp(0, self.cell_ms)
    }
}

impl Watched {
    /// How long nobody knew who waited, in milliseconds.
    pub fn missing_ms(&self, span: &Span, cell: usize) -> i64 {
        let known = self.waits_ms.get(cell).copied().unwrap_or(0);
        (span.passed_ms(cell) - known).max(0)
    }

    /// Who waited is known for most of the cell; a cell of which nothing has passed is not.
    pub fn knows(&self, span: &Span, cell: usize) -> bool {
        let known = self.waits_ms.get(cell).copied().unwrap_or(0);
        known > 0 && known * 2 >= span.passed_ms(cell)
    }

    pub fn tells_waiters(&self) -> bool {
        self.waits_ms.iter().any(|ms| *ms > 0)
    }
}

impl Series {
    pub fn watched(&self, backend: &BackendName) -> Option<&Watched> {
        self.backends.iter().find(|watched| watched.backend == *backend)
    }

    /// Without what somebody may not see: a template stays if every name that it may stand for is theirs.
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

/// Every name that this template may stand for is theirs.
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
        // A viewer of one tenant and of one kind of job: only what cannot stand for others' names.
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
    fn ranges_have_cells_that_a_person_can_name() {
        // The five ranges of every page, each ending in the midst of a cell.
        let now = 1_772_334_761_000;
        let told = [1, 6, 24, 7 * 24, 30 * 24].map(|hours: i64| {
            let span = Span::over(now - hours * 3_600_000, now, now);
            (span.cell_ms / 60_000, span.cells)
        });
        assert_eq!(told, [(2, 30), (10, 36), (60, 24), (360, 28), (1_440, 30)]);
    }

    proptest! {
        #[test]
        fn cells_reach_the_end_and_are_few(from in 0i64..2_000_000_000_000, length in 60_000i64..2_678_400_000) {
            let span = Span::over(from, from + length, from + length);
            prop_assert!(span.to() >= from + length && span.to() - (from + length) < span.cell_ms);
            prop_assert!(i64::try_from(span.cells).unwrap() <= CELLS_MAX);
            prop_assert_eq!(span.cell_of(span.to() - 1), Some(span.cells - 1));
            prop_assert_eq!(span.cell_of(span.to()), None);
            prop_assert_eq!(span.from.rem_euclid(span.cell_ms), 0);
        }
    }
}
