//! Sums over time for charts: gathered from the same changes that events are written from, at five steps at once, so that
//! a month is read as quickly as an hour.

pub(super) mod gather;
mod lines;
pub(super) mod read;
mod write;

/// Lengths of what is summed up, in seconds: a minute, ten, an hour, six hours, a day.
pub(super) const STEPS_S: [i64; 5] = [60, 600, 3_600, 21_600, 86_400];
