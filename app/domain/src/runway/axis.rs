//! Round steps for the axis of the large runway.

/// One label of the axis: where, in per cent of the track, and what it says.
#[derive(Debug, Clone, PartialEq)]
pub struct AxisTick {
    pub at: f64,
    pub label: String,
}

/// Most intervals between labels: at 390 pixels each still has room for its text.
const INTERVALS_MAX: i64 = 6;
/// A label this near the end, in per cent, would run into the last one.
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

/// Labels from 0 to the end of the track, the end always among them. Empty for a track without length.
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
            label: short(ms),
        })
        .take_while(|tick| tick.at < CLEAR_OF_END)
        .collect();
    ticks.push(AxisTick {
        at: 100.0,
        label: short(track_ms),
    });
    ticks
}

fn round_days(track_ms: i64) -> i64 {
    (track_ms / INTERVALS_MAX / DAY)
        .saturating_add(1)
        .saturating_mul(DAY)
}

/// A round duration without idle digits: `0 s`, `250 ms`, `27.3 s`, `1 m 30 s`, `2 h`.
pub(super) fn short(ms: i64) -> String {
    match ms {
        0 => "0 s".to_owned(),
        1..SECOND => format!("{ms} ms"),
        _ if ms < MINUTE && ms % SECOND != 0 => format!("{}.{} s", ms / SECOND, ms % SECOND / 100),
        _ if ms < MINUTE => format!("{} s", ms / SECOND),
        _ if ms < HOUR => pair(ms / MINUTE, "m", ms % MINUTE / SECOND, "s"),
        _ if ms < DAY => pair(ms / HOUR, "h", ms % HOUR / MINUTE, "m"),
        _ => pair(ms / DAY, "d", ms % DAY / HOUR, "h"),
    }
}

fn pair(large: i64, unit: &str, small: i64, small_unit: &str) -> String {
    if small == 0 {
        format!("{large} {unit}")
    } else {
        format!("{large} {unit} {small:02} {small_unit}")
    }
}
