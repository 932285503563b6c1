//! Inserts many rows with `VALUES ($1, $2), ($3, $4), …` in a few sizes, so that each text is prepared once.

use runtime::db::Tx;

/// Rows per statement; a remainder uses the next smaller size.
const SIZES: [usize; 3] = [256, 16, 1];

/// Splits rows into chunks of these sizes.
pub(super) fn chunks<T>(rows: &[T]) -> impl Iterator<Item = &[T]> {
    let mut rest = rows;
    std::iter::from_fn(move || {
        let size = SIZES.into_iter().find(|size| *size <= rest.len())?;
        let (piece, later) = rest.split_at(size);
        rest = later;
        Some(piece)
    })
}

/// Parameter list for these rows and columns, in the form best for the store.
pub(super) fn values(tx: &Tx, rows: usize, columns: usize) -> String {
    match tx {
        Tx::Sqlite(_) => placeholders(rows, columns),
        Tx::Postgres(_) => numbered_placeholders(rows, columns),
    }
}

/// Without numbers: SQLite treats `$1` as a name, and sqlx looks up each name in linear time, so binding many would
/// be quadratic.
pub(super) fn placeholders(rows: usize, columns: usize) -> String {
    let row = format!("({})", vec!["?"; columns].join(", "));
    vec![row; rows].join(", ")
}

fn numbered_placeholders(rows: usize, columns: usize) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(rows * columns * 7);
    for row in 0..rows {
        text.push_str(if row == 0 { "(" } else { ", (" });
        for column in 1..=columns {
            let comma = if column == 1 { "" } else { ", " };
            let _ = write!(text, "{comma}${}", row * columns + column);
        }
        text.push(')');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_in_one_statement_with_all_its_values() {
        // More than two of the largest, with a remainder for each smaller size.
        let rows: Vec<usize> = (0..2 * 256 + 2 * 16 + 3).collect();
        assert_eq!(chunks(&rows).flatten().copied().collect::<Vec<_>>(), rows);
        assert_eq!(chunks(&rows).count(), 2 + 2 + 3);
        assert_eq!(numbered_placeholders(2, 3), "($1, $2, $3), ($4, $5, $6)");
        assert_eq!(placeholders(2, 3), "(?, ?, ?), (?, ?, ?)");
    }
}
