//! Strings of SVG paths, in a drawing of 1000 by 100 that is stretched to its place.

use crate::human::measure;

/// Width and height of the drawing's own coordinates.
pub const WIDTH: f64 = 1000.0;
pub const HEIGHT: f64 = 100.0;

/// Places of points in per cent: from the left, and from the bottom.
pub type Place = (f64, f64);

/// To a tenth, which no screen shows finer, with the smallest number of bytes.
fn pair((x, y): Place) -> String {
    let round = |value: f64| measure((value * 10.0).round() / 10.0);
    format!(
        "{} {}",
        round(x / 100.0 * WIDTH),
        round(HEIGHT - y / 100.0 * HEIGHT)
    )
}

/// A straight line from point to point; a point alone is a short dash.
pub fn line(points: &[Place]) -> String {
    let mut out = String::with_capacity(points.len() * 11);
    for (index, point) in points.iter().enumerate() {
        // Pairs behind the first are lines without being told so.
        out.push(if index == 0 { 'M' } else { ' ' });
        out.push_str(&pair(*point));
    }
    if points.len() == 1 {
        out.push_str("h3");
    }
    out
}

/// What holds until the next point is known: level, then up or down.
pub fn steps(points: &[Place]) -> String {
    let mut corners = Vec::with_capacity(points.len() * 2);
    for point in points {
        if let Some((_, level)) = corners.last().copied() {
            corners.push((point.0, level));
        }
        corners.push(*point);
    }
    line(&corners)
}

/// The area between a line and the ground.
pub fn area(points: &[Place]) -> String {
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
