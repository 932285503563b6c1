//! Axis ticks at round values with their labels, always UTC.

use chrono::{DateTime, Datelike as _, Timelike as _, Utc};

use super::scale::{Linear, Log, TimeScale};
use crate::format;

/// One label of an axis, with its position in per cent.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartTick {
    pub at: f64,
    pub label: String,
}

const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// All of them divide a day, or are whole days.
const STEPS_MS: [i64; 22] = [
    SECOND,
    5 * SECOND,
    10 * SECOND,
    15 * SECOND,
    30 * SECOND,
    MINUTE,
    2 * MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    15 * MINUTE,
    20 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    3 * HOUR,
    4 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    2 * DAY,
    5 * DAY,
    7 * DAY,
];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// At most `most + 1` ticks, at whole steps since 1970; at midnight the label is the day.
pub fn times(scale: TimeScale, most: usize) -> Vec<ChartTick> {
    let intervals = i64::try_from(most.max(1)).unwrap_or(i64::MAX);
    let fitting = STEPS_MS
        .into_iter()
        .find(|step| scale.length_ms() / step <= intervals);
    let step = fitting.unwrap_or_else(|| (scale.length_ms() / intervals / DAY + 1) * DAY);
    let first = scale.from().div_euclid(step) * step;
    (0..=intervals + 2)
        .map(|index| first.saturating_add(index.saturating_mul(step)))
        .filter(|at| scale.contains(*at))
        .map(|at| ChartTick {
            at: scale.at(at),
            label: time_label(at, step),
        })
        .collect()
}

fn time_label(ms: i64, step: i64) -> String {
    let Some(at) = DateTime::from_timestamp_millis(ms) else {
        return String::new();
    };
    if ms.rem_euclid(DAY) == 0 {
        return day(at);
    }
    let (hour, minute) = (at.hour(), at.minute());
    if step < MINUTE {
        format!("{hour:02}:{minute:02}:{:02}", at.second())
    } else {
        format!("{hour:02}:{minute:02}")
    }
}

/// `1 May`.
pub fn day(at: DateTime<Utc>) -> String {
    let month = usize::try_from(at.month0()).unwrap_or(0);
    format!("{} {}", at.day(), MONTHS[month.min(11)])
}

/// A moment as a label for this range: `03:12:41`, with the day if the range spans several.
pub fn moment(ms: i64, scale: TimeScale) -> String {
    let Some(at) = DateTime::from_timestamp_millis(ms) else {
        return "unknown".to_owned();
    };
    let (hour, minute, second) = (at.hour(), at.minute(), at.second());
    let is_one_day = scale.from().div_euclid(DAY) == scale.until().div_euclid(DAY);
    match (is_one_day, scale.length_ms() > 12 * HOUR) {
        (true, false) => format!("{hour:02}:{minute:02}:{second:02}"),
        (true, true) => format!("{hour:02}:{minute:02}"),
        (false, false) => format!("{} {hour:02}:{minute:02}:{second:02}", day(at)),
        (false, true) => format!("{} {hour:02}:{minute:02}", day(at)),
    }
}

/// Axis of a count: from 0, or from below the lowest value if all are large and close together.
pub fn counts(low: f64, high: f64, most: usize) -> (Linear, Vec<ChartTick>) {
    let (low, high) = (low.max(0.0), high.max(1.0));
    let base = if low > high * 0.6 && high > 20.0 { low } else { 0.0 };
    let step = round_step((high - base).max(1.0) / most.max(1) as f64);
    let bottom = (base / step).floor() * step;
    let top = (high / step).ceil() * step;
    let scale = Linear::new(bottom, top);
    let ticks = (0..=most + 2)
        .map(|index| bottom + step * index as f64)
        .take_while(|value| *value <= top + step / 2.0)
        .map(|value| ChartTick {
            at: scale.at(value),
            label: compact(value),
        });
    (scale, ticks.collect())
}

/// The next of 1, 2, 5 times a power of ten; at least 1, because locks are counted in whole
/// numbers.
fn round_step(step: f64) -> f64 {
    let mut unit = 1.0;
    loop {
        for factor in [1.0, 2.0, 5.0] {
            if unit * factor >= step || unit > 1e15 {
                return unit * factor;
            }
        }
        unit *= 10.0;
    }
}

/// `0`, `40`, `1.2k`, `12k`, `3M`: for axes only.
pub fn compact(value: f64) -> String {
    match value {
        ..1e3 => format::measure(value),
        1e3..1e6 => format!("{}k", format::measure(value / 1e3)),
        _ => format!("{}M", format::measure(value / 1e6)),
    }
}

const DURATIONS_MS: [i64; 14] = [
    1,
    10,
    100,
    SECOND,
    10 * SECOND,
    MINUTE,
    5 * MINUTE,
    15 * MINUTE,
    HOUR,
    2 * HOUR,
    6 * HOUR,
    DAY,
    7 * DAY,
    30 * DAY,
];
/// Closer labels, in per cent, would overlap on a phone.
const LABEL_WIDTH: f64 = 11.0;

/// Durations in milliseconds on a log scale; round ends of the scale are included.
pub fn durations(scale: Log) -> Vec<ChartTick> {
    let mut ticks: Vec<ChartTick> = Vec::new();
    for ms in DURATIONS_MS {
        let value = ms as f64;
        if value < scale.low() || value > scale.high() {
            continue;
        }
        let at = scale.at(value);
        if ticks.last().is_none_or(|last| at - last.at >= LABEL_WIDTH) {
            let label = format::period(ms);
            ticks.push(ChartTick { at, label });
        }
    }
    ticks
}

/// A log scale for durations with round ends around the values.
pub fn duration_scale(low_ms: i64, high_ms: i64) -> Log {
    let below = DURATIONS_MS.into_iter().rev().find(|ms| *ms <= low_ms.max(1));
    let above = DURATIONS_MS.into_iter().find(|ms| *ms >= high_ms);
    Log::new(
        below.unwrap_or(1) as f64,
        above.unwrap_or_else(|| high_ms.max(1)) as f64,
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 2026-05-01T00:00:00Z.
    const MAY: i64 = 1_777_593_600_000;

    fn labels(ticks: &[ChartTick]) -> Vec<&str> {
        ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    #[test]
    fn time_ticks_are_whole_steps_and_midnight_is_a_day() {
        // An hour, six hours over midnight, a week, and ten seconds.
        let hour = times(TimeScale::new(MAY + HOUR + 90_000, MAY + 2 * HOUR + 90_000), 6);
        assert_eq!(
            labels(&hour),
            ["01:10", "01:20", "01:30", "01:40", "01:50", "02:00"]
        );
        assert!((hour[0].at - 14.166).abs() < 0.01, "{hour:?}");
        let night = times(TimeScale::new(MAY - 3 * HOUR, MAY + 3 * HOUR), 6);
        assert_eq!(
            labels(&night),
            ["21:00", "22:00", "23:00", "1 May", "01:00", "02:00", "03:00"]
        );
        let week = times(TimeScale::new(MAY - 7 * DAY, MAY), 7);
        assert_eq!((week.len(), week[0].label.as_str()), (8, "24 Apr"));
        let short = times(TimeScale::new(MAY + 1_000, MAY + 11_000), 5);
        assert_eq!(labels(&short), ["00:00:05", "00:00:10"]);
    }

    #[test]
    fn count_axis_begins_at_zero_unless_values_are_large_and_close() {
        let (scale, ticks) = counts(3.0, 69.0, 2);
        assert_eq!((scale.low(), scale.high()), (0.0, 100.0));
        assert_eq!(labels(&ticks), ["0", "50", "100"]);
        let (scale, ticks) = counts(11_400.0, 13_100.0, 2);
        assert_eq!((scale.low(), scale.high()), (11_000.0, 14_000.0));
        assert_eq!(labels(&ticks), ["11k", "12k", "13k", "14k"]);
        assert_eq!(labels(&counts(0.0, 0.0, 2).1), ["0", "1"]);
    }

    #[test]
    fn duration_ticks_are_round_and_do_not_overlap() {
        let scale = duration_scale(12_000, 2_468_000);
        assert_eq!((scale.low(), scale.high()), (10_000.0, 3_600_000.0));
        assert_eq!(labels(&durations(scale)), ["10 s", "1 m", "5 m", "15 m", "1 h"]);
    }

    proptest! {
        #[test]
        fn an_axis_has_at_most_the_requested_labels(from in 0_i64..4_000_000_000_000, length in 1_i64..10_000_000_000_000, most in 1_usize..12) {
            let ticks = times(TimeScale::new(from, from + length), most);
            prop_assert!(ticks.len() <= most + 1, "{ticks:?}");
            prop_assert!(ticks.windows(2).all(|pair| pair[0].at < pair[1].at));
        }

        #[test]
        fn counts_lie_within_their_axis(low in 0.0_f64..1e9, more in 0.0_f64..1e9, most in 1_usize..6) {
            let (scale, ticks) = counts(low, low + more, most);
            prop_assert!(scale.low() <= low && scale.high() >= low + more);
            prop_assert!(ticks.len() >= 2 && ticks.len() <= most + 3, "{ticks:?}");
        }
    }
}
