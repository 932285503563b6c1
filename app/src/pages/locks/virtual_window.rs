//! Virtual window: which rows of a long list are drawn, the visible ones and a few around them.
//! Rows have equal height.

use std::ops::Range;

/// Rows drawn above and below the visible ones.
const AROUND: usize = 12;
/// Rows before the end at which the next page is fetched.
const AHEAD: usize = 120;

/// Visible rows, and drawn rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    pub seen: Range<usize>,
    pub drawn: Range<usize>,
}

impl Window {
    /// Before any measurement: all of the first page.
    pub fn all(rows: usize) -> Self {
        Self {
            seen: 0..rows,
            drawn: 0..rows,
        }
    }

    /// `top` is the position of the first row and `bottom` the lower edge of the view, both
    /// relative to its upper edge.
    pub fn at(top: f64, bottom: f64, row_height: f64, rows: usize) -> Self {
        let height = row_height.max(1.0);
        let first = rows_in(-top, height).min(rows);
        let last = (rows_in(bottom - top, height) + 1).clamp(first, rows);
        // Steps of a few rows: scrolling by one pixel draws nothing new.
        let step = AROUND / 2;
        let start = first.saturating_sub(AROUND) / step * step;
        let end = ((last + AROUND).div_ceil(step) * step).min(rows);
        Self {
            seen: first..last,
            drawn: start.min(end)..end,
        }
    }

    pub fn is_near_end(&self, rows: usize) -> bool {
        self.seen.end + AHEAD >= rows
    }
}

fn rows_in(pixels: f64, height: f64) -> usize {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to what a page can be high"
    )]
    let rows = (pixels / height).clamp(0.0, 1e9) as usize;
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visible_rows_are_always_drawn() {
        // Every scroll position of a list of 50,000 rows, in steps of a third of a row, at its
        // start and end.
        for rows in [0, 1, 26, 50_000] {
            for step in (0..600).chain(149_000..150_000) {
                let window = Window::at(200.0 - f64::from(step) * 32.0 / 3.0, 900.0, 32.0, rows);
                assert!(window.drawn.start <= window.seen.start && window.seen.end <= window.drawn.end);
                assert!(window.drawn.end <= rows && window.drawn.len() < 70, "{window:?}");
            }
        }
    }
}
