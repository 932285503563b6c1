//! Roll-ups for charts: aggregated from the same changes as events, at five steps at once, so that a month is read
//! as fast as an hour.

pub(super) mod aggregate;
pub(super) mod read;
mod wait_inference;
mod write;

/// Step lengths in seconds: a minute, ten minutes, an hour, six hours, a day.
pub(super) const STEPS_S: [i64; 5] = [60, 600, 3_600, 21_600, 86_400];
