//! SVG paths in a viewport of 1000 by 100 that is stretched to its size.

use crate::format::measure;

/// Width and height of the viewport.
pub const WIDTH: f64 = 1000.0;
pub const HEIGHT: f64 = 100.0;

/// Position of a point in per cent: from the left, and from the bottom.
pub type Point = (f64, f64);

/// One decimal place: finer is not visible and costs bytes.
fn point_text((x, y): Point) -> String {
    let round = |value: f64| measure((value * 10.0).round() / 10.0);
    format!(
        "{} {}",
        round(x / 100.0 * WIDTH),
        round(HEIGHT - y / 100.0 * HEIGHT)
    )
}

/// A straight line from point to point; a single point is a short dash.
pub fn line(points: &[Point]) -> String {
    let mut out = String::with_capacity(points.len() * 11);
    for (index, point) in points.iter().enumerate() {
        // SVG reads further pairs after `M` as lines.
        out.push(if index == 0 { 'M' } else { ' ' });
        out.push_str(&point_text(*point));
    }
    if points.len() == 1 {
        out.push_str("h3");
    }
    out
}

/// A step line: each value is drawn level until the next point.
pub fn steps(points: &[Point]) -> String {
    let mut corners = Vec::with_capacity(points.len() * 2);
    for point in points {
        if let Some((_, level)) = corners.last().copied() {
            corners.push((point.0, level));
        }
        corners.push(*point);
    }
    line(&corners)
}

/// The area between a line and the base.
pub fn area(points: &[Point]) -> String {
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return String::new();
    };
    let mut ring = Vec::with_capacity(points.len() + 2);
    ring.push((first.0, 0.0));
    ring.extend_from_slice(points);
    ring.push((last.0, 0.0));
    format!("{}Z", line(&ring))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_as_short_as_they_can_be() {
        let points = [(0.0, 0.0), (12.345, 50.0), (100.0, 100.0)];
        assert_eq!(line(&points), "M0 100 123.5 50 1000 0");
        assert_eq!(steps(&points), "M0 100 123.5 100 123.5 50 1000 50 1000 0");
        assert_eq!(area(&points), "M0 100 0 100 123.5 50 1000 0 1000 100Z");
        assert_eq!((line(&[]), area(&[])), (String::new(), String::new()));
        assert_eq!(line(&[(5.0, 5.0)]), "M50 95h3");
    }
}
