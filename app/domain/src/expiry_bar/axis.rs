//! Round steps for the axis of the large expiry bar.

use crate::format;

/// One label of the axis, with its position in per cent of the track.
#[derive(Debug, Clone, PartialEq)]
pub struct AxisTick {
    pub at: f64,
    pub label: String,
}

/// Most intervals between labels: the limit at a width of 390 pixels.
const INTERVALS_MAX: i64 = 6;
/// A label beyond this position, in per cent, would overlap the last one.
const CLEAR_OF_END: f64 = 88.0;

const SECOND: i64 = 1000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const STEPS_MS: [i64; 27] = [
    10,
    20,
    50,
    100,
    200,
    500,
    SECOND,
    2 * SECOND,
    5 * SECOND,
    10 * SECOND,
    15 * SECOND,
    20 * SECOND,
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
    4 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    2 * DAY,
];

/// Labels from 0 to the end of the track, the end included. Empty for a track without length.
pub fn axis(track_ms: i64) -> Vec<AxisTick> {
    if track_ms <= 0 {
        return Vec::new();
    }
    let fitting = STEPS_MS.into_iter().find(|step| track_ms / step <= INTERVALS_MAX);
    let step = fitting.unwrap_or_else(|| round_days(track_ms));
    let mut ticks: Vec<AxisTick> = (0..=INTERVALS_MAX)
        .map(|index| index * step)
        .map(|ms| AxisTick {
            at: super::percent(ms, track_ms),
            label: format::period(ms),
        })
        .take_while(|tick| tick.at < CLEAR_OF_END)
        .collect();
    ticks.push(AxisTick {
        at: 100.0,
        label: format::period(track_ms),
    });
    ticks
}

fn round_days(track_ms: i64) -> i64 {
    (track_ms / INTERVALS_MAX / DAY)
        .saturating_add(1)
        .saturating_mul(DAY)
}
