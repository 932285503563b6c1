//! Positions of a drawn cycle. Pure.

/// Owners of a cycle that is drawn as a ring; a longer one is a list.
pub(super) const WIDE_HOPS_MAX: usize = 4;

/// Width of a box in a ring; its height is 60.
const BOX: f64 = 224.0;
const RING_WIDTH: f64 = 872.0;
const LIST_WIDTH: f64 = 358.0;
/// From one box of a list to the next.
const STEP: f64 = 168.0;

pub(super) struct CycleLayout {
    pub(super) width: f64,
    pub(super) height: f64,
    /// Left, top and width of the box of each owner.
    pub(super) boxes: Vec<(f64, f64, f64)>,
    /// From each owner to the next; the last to the first.
    pub(super) edges: Vec<EdgeLayout>,
    /// On each arrow, the middle of the number of its release.
    pub(super) numbers: Vec<(f64, f64)>,
    /// Position of the remark that the last owner waits for the first one.
    pub(super) closed: Option<(f64, f64)>,
}

pub(super) struct EdgeLayout {
    pub(super) path: String,
    pub(super) head: String,
    pub(super) text: Anchor,
}

/// First line of a text, and the CSS class of its alignment.
#[derive(Clone, Copy)]
pub(super) struct Anchor {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) class: &'static str,
}

enum Towards {
    Right,
    Down,
    Left,
    Up,
}

fn head(x: f64, y: f64, towards: &Towards) -> String {
    let strokes = match towards {
        Towards::Right => "l-10 -5.5v11z",
        Towards::Down => "l-5.5 -10h11z",
        Towards::Left => "l10 -5.5v11z",
        Towards::Up => "l-5.5 10h11z",
    };
    format!("M{x} {y}{strokes}")
}

fn edge(path: &str, tip: (f64, f64, Towards), text: (f64, f64, &'static str)) -> EdgeLayout {
    EdgeLayout {
        path: path.to_owned(),
        head: head(tip.0, tip.1, &tip.2),
        text: Anchor {
            x: text.0,
            y: text.1,
            class: text.2,
        },
    }
}

/// On the arrows of a ring, next to their texts.
fn ring_numbers(owners: usize) -> Vec<(f64, f64)> {
    match owners {
        0..=2 => vec![(760.0, 66.0), (112.0, 202.0)],
        3 => vec![(112.0, 228.0), (760.0, 228.0), (304.0, 342.0)],
        _ => vec![(112.0, 300.0), (304.0, 38.0), (760.0, 300.0), (304.0, 422.0)],
    }
}

impl CycleLayout {
    /// Two to four owners around the middle.
    pub(super) fn ring(owners: usize) -> Self {
        let right = RING_WIDTH - BOX - 0.5;
        let (height, places, edges) = match owners {
            0..=2 => (
                268.0,
                vec![(0.5, 104.5), (right, 104.5)],
                vec![
                    edge(
                        "M112 104V40a8 8 0 0 1 8-8H752a8 8 0 0 1 8 8V94",
                        (760.0, 104.0, Towards::Down),
                        (436.0, 56.0, "mid"),
                    ),
                    edge(
                        "M760 165V228a8 8 0 0 1-8 8H120a8 8 0 0 1-8-8V175",
                        (112.0, 165.0, Towards::Up),
                        (436.0, 152.0, "mid"),
                    ),
                ],
            ),
            3 => (
                384.0,
                vec![(0.5, 312.5), (324.5, 18.5), (right, 312.5)],
                vec![
                    edge(
                        "M112 312V56a8 8 0 0 1 8-8H314",
                        (324.0, 48.0, Towards::Right),
                        (140.0, 120.0, ""),
                    ),
                    edge(
                        "M549 48H752a8 8 0 0 1 8 8V302",
                        (760.0, 312.0, Towards::Down),
                        (732.0, 120.0, "e"),
                    ),
                    edge(
                        "M647 342H235",
                        (225.0, 342.0, Towards::Left),
                        (436.0, 258.0, "mid"),
                    ),
                ],
            ),
            _ => (
                462.0,
                vec![(0.5, 392.5), (0.5, 8.5), (right, 8.5), (right, 392.5)],
                vec![
                    edge("M112 392V79", (112.0, 69.0, Towards::Up), (140.0, 200.0, "")),
                    edge("M225 38H637", (647.0, 38.0, Towards::Right), (436.0, 66.0, "mid")),
                    edge("M760 69V382", (760.0, 392.0, Towards::Down), (732.0, 200.0, "e")),
                    edge(
                        "M647 422H235",
                        (225.0, 422.0, Towards::Left),
                        (436.0, 338.0, "mid"),
                    ),
                ],
            ),
        };
        Self {
            width: RING_WIDTH,
            height,
            boxes: places.into_iter().map(|(x, y)| (x, y, BOX)).collect(),
            edges,
            numbers: ring_numbers(owners),
            closed: None,
        }
    }

    /// One owner below the other; the last arrow returns at the left.
    pub(super) fn list(owners: usize) -> Self {
        let top = |at: usize| 8.5 + STEP * f64::from(u16::try_from(at).unwrap_or(u16::MAX));
        let text = |at: usize| (72.0, top(at) + 80.5, "");
        let edges = (0..owners).map(|at| {
            let bottom = top(at) + 60.5;
            if at + 1 < owners {
                let tip = top(at + 1) - 0.5;
                return edge(
                    &format!("M48 {bottom}V{}", tip - 10.0),
                    (48.0, tip, Towards::Down),
                    text(at),
                );
            }
            let turn = bottom + 88.0;
            let path = format!("M48 {bottom}V{turn}a8 8 0 0 1-8 8H15a8 8 0 0 1-8-8V46a8 8 0 0 1 8-8h3");
            edge(&path, (28.0, 38.0, Towards::Right), text(at))
        });
        let end = top(owners.max(1) - 1);
        Self {
            width: LIST_WIDTH,
            height: end + 184.0,
            boxes: (0..owners).map(|at| (28.5, top(at), LIST_WIDTH - 29.0)).collect(),
            edges: edges.collect(),
            numbers: (0..owners).map(|at| (48.0, top(at) + 106.5)).collect(),
            closed: Some((72.0, end + 170.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_owner_has_a_box_and_an_arrow_inside_of_the_drawing() {
        let layouts = (2..=WIDE_HOPS_MAX)
            .map(CycleLayout::ring)
            .chain((1..=8).map(CycleLayout::list));
        for layout in layouts {
            assert_eq!(layout.boxes.len(), layout.edges.len());
            for (x, y, width) in &layout.boxes {
                assert!(*x >= 0.0 && x + width <= layout.width && y + 60.0 <= layout.height);
            }
            assert_eq!(layout.numbers.len(), layout.edges.len());
            for edge in &layout.edges {
                assert!(edge.text.y + 62.0 < layout.height, "{}", edge.path);
            }
        }
    }
}
