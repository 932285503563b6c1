//! Many rows in one statement: `VALUES ($1, $2), ($3, $4), …`, in a few sizes, so that each text is prepared once.

use crate::db::Tx;

/// Rows of one statement; what is left over takes the next smaller size.
const SIZES: [usize; 3] = [256, 16, 1];

/// Cuts rows into pieces of the sizes that have a statement.
pub(super) fn pieces<T>(rows: &[T]) -> impl Iterator<Item = &[T]> {
    let mut rest = rows;
    std::iter::from_fn(move || {
        let size = SIZES.into_iter().find(|size| *size <= rest.len())?;
        let (piece, later) = rest.split_at(size);
        rest = later;
        Some(piece)
    })
}

/// The places of so many rows and columns, as this store takes them best.
pub(super) fn values(tx: &Tx, rows: usize, columns: usize) -> String {
    match tx {
        Tx::Sqlite(_) => places(rows, columns),
        Tx::Postgres(_) => numbered(rows, columns),
    }
}

/// SQLite takes the number of a place for a name, and sqlx asks for the name of each place, which SQLite finds by going
/// through all of them: half of the work of writing history went there. Without numbers there are no names.
pub(super) fn places(rows: usize, columns: usize) -> String {
    let row = format!("({})", vec!["?"; columns].join(", "));
    vec![row; rows].join(", ")
}

fn numbered(rows: usize, columns: usize) -> String {
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
    fn every_row_is_in_one_piece_and_every_value_has_its_place() {
        // More than two of the largest, with a rest of each smaller size.
        let rows: Vec<usize> = (0..2 * 256 + 2 * 16 + 3).collect();
        assert_eq!(pieces(&rows).flatten().copied().collect::<Vec<_>>(), rows);
        assert_eq!(pieces(&rows).count(), 2 + 2 + 3);
        assert_eq!(numbered(2, 3), "($1, $2, $3), ($4, $5, $6)");
        assert_eq!(places(2, 3), "(?, ?, ?), (?, ?, ?)");
    }
}
