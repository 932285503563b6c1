//! Links from one cell of the heatmap to its non-empty neighbours: arrow-key navigation without
//! script. Pure.

/// Row and column of each neighbour; `None` at an edge or without a wait in that direction.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Steps {
    pub(super) earlier: Option<(usize, usize)>,
    pub(super) later: Option<(usize, usize)>,
    pub(super) above: Option<(usize, usize)>,
    pub(super) below: Option<(usize, usize)>,
}

/// `rows` marks non-empty cells; `at` is row and column of the selected one.
pub(super) fn steps(rows: &[Vec<bool>], (row, place): (usize, usize)) -> Steps {
    let cells = rows.get(row).map_or(&[][..], Vec::as_slice);
    let has_wait = |place: &usize| cells.get(*place) == Some(&true);
    let nearest = |row: usize| {
        let waits = rows.get(row)?.iter().enumerate().filter(|(_, waits)| **waits);
        let nearest = waits.min_by_key(|(there, _)| there.abs_diff(place));
        nearest.map(|(there, _)| (row, there))
    };
    Steps {
        earlier: (0..place).rev().find(has_wait).map(|place| (row, place)),
        later: (place + 1..cells.len()).find(has_wait).map(|place| (row, place)),
        above: (0..row).rev().find_map(nearest),
        below: (row + 1..rows.len()).find_map(nearest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_goes_to_the_next_cell_with_data() {
        // Fails on a step to an empty cell, past a row, or out of the map.
        let row = |drawn: &str| -> Vec<bool> { drawn.chars().map(|c| c == 'x').collect() };
        let rows = [row("x..x.x"), row("......"), row("..x..x"), row("x.....")];
        let middle = steps(&rows, (2, 2));
        assert_eq!((middle.earlier, middle.later), (None, Some((2, 5))));
        assert_eq!((middle.above, middle.below), (Some((0, 3)), Some((3, 0))));
        let corner = steps(&rows, (0, 5));
        assert_eq!((corner.earlier, corner.later), (Some((0, 3)), None));
        assert_eq!((corner.above, corner.below), (None, Some((2, 5))));
        let empty = steps(&[], (0, 0));
        assert!(
            empty.earlier.is_none()
                && empty.later.is_none()
                && empty.above.is_none()
                && empty.below.is_none()
        );
    }
}
