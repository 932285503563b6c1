//! Time series reduced for drawing: the extremes of each pixel column, and a few spans for the
//! table. Line and table come from the same values.

use serde::{Deserialize, Serialize};

use super::path::{self, Point};
use super::scale::{Linear, TimeScale};

/// Measurements, oldest first, and unobserved times.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChartSeries {
    /// Milliseconds since 1970, value.
    pub points: Vec<(i64, f64)>,
    /// Begin and end, oldest first.
    pub gaps: Vec<(i64, i64)>,
}

/// A part of the range, one row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ChartSpan {
    pub from: i64,
    pub until: i64,
    /// `None`: not observed or not measured.
    pub level: Option<Level>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Level {
    pub low: f64,
    pub high: f64,
    pub last: f64,
}

/// A series cut to a range and decimated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Drawn {
    pub scale: TimeScale,
    /// Unbroken runs of points.
    pub runs: Vec<Vec<(i64, f64)>>,
    pub gaps: Vec<(i64, i64)>,
    pub spans: Vec<ChartSpan>,
    pub low: f64,
    pub high: f64,
    pub last: Option<f64>,
}

impl Drawn {
    /// `columns`: most pixel columns; `spans`: rows of the table.
    pub fn from_series(series: &ChartSeries, scale: TimeScale, columns: usize, spans: usize) -> Self {
        let gaps: Vec<(i64, i64)> = series
            .gaps
            .iter()
            .copied()
            .filter(|(from, until)| until > from && scale.meets(*from, *until))
            .collect();
        let inside: Vec<(i64, f64)> = series
            .points
            .iter()
            .copied()
            .filter(|(at, value)| scale.contains(*at) && value.is_finite())
            .collect();
        let runs: Vec<Vec<(i64, f64)>> = split_at_gaps(&inside, &gaps)
            .into_iter()
            .map(|run| decimate(run, scale, columns))
            .collect();
        let values = || runs.iter().flatten().map(|(_, value)| *value);
        Self {
            low: values().reduce(f64::min).unwrap_or(0.0),
            high: values().fold(0.0, f64::max),
            last: inside.last().map(|(_, value)| *value),
            spans: levels(&inside, scale, spans),
            scale,
            gaps,
            runs,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// One path for each run.
    pub fn paths(&self, values: Linear, draw: fn(&[Point]) -> String) -> Vec<String> {
        let place = |(at, value): &(i64, f64)| (self.scale.at(*at), values.at(*value));
        let places = self.runs.iter().map(|run| run.iter().map(place).collect());
        places.map(|places: Vec<Point>| draw(&places)).collect()
    }

    pub fn lines(&self, values: Linear) -> Vec<String> {
        self.paths(values, path::line)
    }
}

/// Points without a gap between them.
fn split_at_gaps<'a>(points: &'a [(i64, f64)], gaps: &[(i64, i64)]) -> Vec<&'a [(i64, f64)]> {
    let mut rest = points;
    let mut runs = Vec::new();
    for (_, until) in gaps {
        let (before, after) = rest.split_at(rest.partition_point(|(at, _)| at < until));
        runs.push(before);
        rest = after;
    }
    runs.push(rest);
    runs.retain(|run| !run.is_empty());
    runs
}

/// At most two points per column, its lowest and its highest, in their order of time.
pub fn decimate(points: &[(i64, f64)], scale: TimeScale, columns: usize) -> Vec<(i64, f64)> {
    if points.len() <= columns.saturating_mul(2) {
        return points.to_vec();
    }
    let mut out: Vec<(i64, f64)> = Vec::with_capacity(columns * 2);
    for column in points.chunk_by(|one, other| scale.part(one.0, columns) == scale.part(other.0, columns)) {
        let low = column.iter().min_by(|one, other| one.1.total_cmp(&other.1));
        let high = column.iter().max_by(|one, other| one.1.total_cmp(&other.1));
        let (Some(low), Some(high)) = (low, high) else {
            continue;
        };
        let (first, second) = if low.0 <= high.0 { (low, high) } else { (high, low) };
        out.push(*first);
        if first != second {
            out.push(*second);
        }
    }
    out
}

fn levels(points: &[(i64, f64)], scale: TimeScale, count: usize) -> Vec<ChartSpan> {
    let mut spans: Vec<ChartSpan> = (0..count)
        .map(|part| ChartSpan {
            from: scale.part_begins(part, count),
            until: scale.part_begins(part + 1, count),
            level: None,
        })
        .collect();
    for (at, value) in points {
        let Some(span) = spans.get_mut(scale.part(*at, count)) else {
            continue;
        };
        let level = span.level.get_or_insert(Level {
            low: *value,
            high: *value,
            last: *value,
        });
        level.low = level.low.min(*value);
        level.high = level.high.max(*value);
        level.last = *value;
    }
    spans
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_gap_breaks_the_line_and_stays_empty_in_the_table() {
        // Ten points; no observation from 30 to 60.
        let series = ChartSeries {
            points: [0, 10, 20, 30, 60, 70, 80, 90].map(|at| (at, at as f64)).to_vec(),
            gaps: vec![(30, 60), (500, 600)],
        };
        let drawn = Drawn::from_series(&series, TimeScale::new(0, 100), 50, 10);
        assert_eq!(
            (drawn.runs.len(), drawn.gaps.as_slice()),
            (2, [(30, 60)].as_slice())
        );
        assert_eq!(
            drawn.lines(Linear::new(0.0, 100.0)),
            ["M0 100 100 90 200 80 300 70", "M600 40 700 30 800 20 900 10"]
        );
        assert_eq!((drawn.spans[4].level, drawn.spans[5].level), (None, None));
        assert_eq!((drawn.low, drawn.high, drawn.last), (0.0, 90.0, Some(90.0)));
        assert!(Drawn::from_series(&ChartSeries::default(), TimeScale::new(0, 100), 50, 10).is_empty());
    }

    proptest! {
        // Few and long.
        #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 4))]

        #[test]
        fn decimation_keeps_the_extremes(values in proptest::collection::vec(0.0_f64..1e6, 0..3_000), columns in 1_usize..400) {
            // Decimation keeps the extremes and the order, and limits the number of points.
            let points: Vec<(i64, f64)> = (0..).zip(values).collect();
            let scale = TimeScale::new(0, 3_000);
            let few = decimate(&points, scale, columns);
            prop_assert!(few.len() <= columns * 2);
            prop_assert!(few.windows(2).all(|pair| pair[0].0 < pair[1].0));
            prop_assert!(few.iter().all(|point| points.contains(point)));
            let high = |points: &[(i64, f64)]| points.iter().map(|point| point.1).fold(0.0, f64::max);
            let low = |points: &[(i64, f64)]| points.iter().map(|point| point.1).fold(1e9, f64::min);
            prop_assert_eq!((high(&few), low(&few)), (high(&points), low(&points)));
        }

        #[test]
        fn line_and_table_show_the_same_extremes(values in proptest::collection::vec(0.0_f64..1e6, 1..3_000), rows in 1_usize..48) {
            let series = ChartSeries { points: (0..).zip(values).collect(), gaps: Vec::new() };
            let drawn = Drawn::from_series(&series, TimeScale::new(0, 3_000), 300, rows);
            let levels: Vec<Level> = drawn.spans.iter().filter_map(|span| span.level).collect();
            prop_assert_eq!(levels.iter().map(|level| level.high).fold(0.0, f64::max), drawn.high);
            prop_assert_eq!(levels.iter().map(|level| level.low).fold(f64::MAX, f64::min), drawn.low);
            prop_assert_eq!(levels.last().map(|level| level.last), drawn.last);
        }
    }
}
