//! The range that a page's charts show: picked in its URL, or fitted to the data.

use chrono::DateTime;
use serde::{Deserialize, Serialize};

use super::range::{RangePreset, TimeRange};
use super::scale::TimeScale;
use crate::format;
use crate::query::QueryError;
use crate::time_format;

/// Shortest fitted range, in milliseconds: the resolution of roll-ups.
const FITTED_MS_MIN: i64 = 60_000;
/// The end of a range moves on in steps of this part of its length, less than a pixel, so that a
/// chart without changes stays identical.
const STEPS: i64 = 720;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownRange {
    pub scale: TimeScale,
    /// From the URL; `None`: fitted to the data.
    pub picked: Option<TimeRange>,
    /// Why the requested range is not used.
    pub error: Option<String>,
    /// Longest fitted range.
    pub preset: RangePreset,
    /// Fitted, and the data begins where the range does.
    pub begins_with_data: bool,
    /// Milliseconds since 1970; later times are unknown.
    pub now: i64,
    /// What is shown before this time was simulated, for a demo.
    pub simulated_until: Option<i64>,
}

impl ShownRange {
    /// `since` is the begin of the data; `None`: no data yet.
    pub fn new(
        requested: Result<Option<TimeRange>, QueryError>,
        preset: RangePreset,
        since: Option<i64>,
        now: i64,
    ) -> Self {
        let (picked, error) = match requested {
            Ok(picked) => (picked, None),
            Err(error) => (None, Some(format!("{} {}", error.field, error.message))),
        };
        if let Some(range) = picked {
            let now = stepped(now, range.scale(now).length_ms());
            return Self {
                scale: range.scale(now),
                picked,
                error,
                preset,
                begins_with_data: false,
                now,
                simulated_until: None,
            };
        }
        let earliest = now.saturating_sub(preset.length_ms());
        let since = since.map(|since| since.min(now.saturating_sub(FITTED_MS_MIN)));
        let begin = since.filter(|since| *since > earliest);
        let now = stepped(now, now.saturating_sub(begin.unwrap_or(earliest)));
        let scale = begin.map(|begin| TimeScale::new(begin, now));
        Self {
            scale: scale.unwrap_or_else(|| TimeRange::Last(preset).scale(now)),
            picked,
            error,
            preset,
            begins_with_data: begin.is_some(),
            now,
            simulated_until: None,
        }
    }

    /// With the end of the simulated past of a demo, where the range reaches back into it.
    pub fn with_simulated(mut self, until: Option<i64>) -> Self {
        self.simulated_until = until.filter(|until| *until > self.scale.from());
        self
    }

    /// `simulated before 14:02:11 UTC`: the mark of charts that contain simulated data.
    pub fn simulated_mark(&self) -> Option<String> {
        simulated_before(self.simulated_until)
    }

    /// From the decoded pairs of a URL.
    pub fn from_pairs(pairs: &[(String, String)], preset: RangePreset, since: Option<i64>, now: i64) -> Self {
        let pairs = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        Self::new(TimeRange::picked(pairs), preset, since, now)
    }

    /// `last 6 h`, or `6 m, since 03:06:41`, or what was wrong with the requested range.
    pub fn label(&self) -> String {
        let label = match self.picked {
            Some(range) => range.label(),
            None if self.begins_with_data => format!("{}, since {}", self.length(), self.begin()),
            None => TimeRange::Last(self.preset).label(),
        };
        match &self.error {
            None => label,
            Some(error) => format!("{error}; shown is {label}"),
        }
    }

    /// `6 m`: with minutes from ten minutes on, because the range grows while it is read.
    pub fn length(&self) -> String {
        let ms = self.scale.length_ms();
        let grain = if ms < 600_000 { 1_000 } else { 60_000 };
        format::period(ms / grain * grain)
    }

    fn begin(&self) -> String {
        let from = self.scale.from();
        let dated = DateTime::from_timestamp_millis(from).map_or_else(String::new, time_format::dated);
        let is_today = from.div_euclid(DAY_MS) == self.now.div_euclid(DAY_MS);
        // `2026-03-01 03:06:41 UTC`; charts name the zone once.
        let part = if is_today {
            dated.get(11..19)
        } else {
            dated.get(..19)
        };
        part.unwrap_or_default().to_owned()
    }

    /// The range as it would be picked.
    pub fn as_picked(&self) -> TimeRange {
        self.picked.unwrap_or(TimeRange::Last(self.preset))
    }
}

const DAY_MS: i64 = 24 * 3_600_000;

/// `simulated before 14:02:11 UTC`.
pub fn simulated_before(until: Option<i64>) -> Option<String> {
    let dated = time_format::dated(DateTime::from_timestamp_millis(until?)?);
    Some(format!("simulated before {} UTC", dated.get(11..19)?))
}

fn stepped(now: i64, length_ms: i64) -> i64 {
    let step = (length_ms / STEPS).max(1_000);
    (now.div_euclid(step) + 1) * step
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;
    const NOW: i64 = 1_772_334_761_000;

    fn fitted(since: Option<i64>) -> ShownRange {
        ShownRange::new(Ok(None), RangePreset::SixHours, since, NOW)
    }

    #[test]
    fn a_fitted_range_begins_with_the_data() {
        // Ten minutes of data; more than the preset; none; a start two seconds ago.
        let ten = fitted(Some(NOW - 10 * 60_000));
        assert_eq!(ten.scale.from(), NOW - 600_000);
        assert!(ten.label().starts_with("10 m, since "), "{}", ten.label());
        let long = fitted(Some(NOW - 9 * HOUR));
        assert_eq!(
            (long.label().as_str(), long.begins_with_data),
            ("last 6 h", false)
        );
        assert!(long.scale.length_ms() == 6 * HOUR && fitted(None).scale.length_ms() == 6 * HOUR);
        assert!(fitted(Some(NOW - 2_000)).scale.length_ms() >= FITTED_MS_MIN);
    }

    #[test]
    fn a_picked_range_is_not_fitted() {
        let picked = Ok(Some(TimeRange::Last(RangePreset::Day)));
        let day = ShownRange::new(picked, RangePreset::Hour, Some(NOW - 60_000), NOW);
        assert_eq!(
            (day.label().as_str(), day.scale.length_ms()),
            ("last 24 h", 24 * HOUR)
        );
        let bad = ShownRange::from_pairs(
            &[("range".to_owned(), "soon".to_owned())],
            RangePreset::Hour,
            None,
            NOW,
        );
        assert!(
            bad.label().starts_with("range must be one of 1h"),
            "{}",
            bad.label()
        );
        assert!(bad.label().ends_with("; shown is last 1 h") && bad.picked.is_none());
    }

    #[test]
    fn a_range_that_reaches_into_a_simulated_past_is_marked() {
        // An hour ago, seven hours ago, and never.
        let marked = |until| {
            fitted(Some(NOW - 24 * HOUR))
                .with_simulated(until)
                .simulated_mark()
        };
        assert_eq!(
            marked(Some(NOW - HOUR)).as_deref(),
            Some("simulated before 02:12:41 UTC")
        );
        assert_eq!(marked(Some(NOW - 7 * HOUR)), None);
        assert_eq!(marked(None), None);
    }

    #[test]
    fn a_range_stays_identical_for_less_than_a_pixel() {
        let at = |ms| {
            fitted(Some(NOW - 2 * HOUR)).scale
                == ShownRange::new(Ok(None), RangePreset::SixHours, Some(NOW - 2 * HOUR), NOW + ms).scale
        };
        assert!(at(1) && !at(2 * HOUR / STEPS + 1));
    }
}
