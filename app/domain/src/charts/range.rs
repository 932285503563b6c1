//! Time range of a page, from its URL, for all of its charts.

use chrono::DateTime;
use serde::{Deserialize, Serialize};

use super::scale::TimeScale;
use crate::audit::parse_moment;
use crate::query::QueryError;
use crate::time_format;

const HOUR: i64 = 3_600_000;
/// Shortest and longest range between two moments.
const LENGTH_MS_MIN: i64 = 60_000;
const LENGTH_MS_MAX: i64 = 31 * 24 * HOUR;

crate::wire_enum! {
    /// The last hours or days.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub enum RangePreset {
        Hour = "1h",
        SixHours = "6h",
        Day = "24h",
        Week = "7d",
        Month = "30d",
    }
}

impl RangePreset {
    pub const fn label(self) -> &'static str {
        match self {
            Self::Hour => "1 h",
            Self::SixHours => "6 h",
            Self::Day => "24 h",
            Self::Week => "7 d",
            Self::Month => "30 d",
        }
    }

    pub const fn length_ms(self) -> i64 {
        match self {
            Self::Hour => HOUR,
            Self::SixHours => 6 * HOUR,
            Self::Day => 24 * HOUR,
            Self::Week => 7 * 24 * HOUR,
            Self::Month => 30 * 24 * HOUR,
        }
    }
}

/// The range that a URL requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TimeRange {
    Last(RangePreset),
    /// Milliseconds since 1970; the end is exclusive.
    Between {
        from: i64,
        to: i64,
    },
}

impl TimeRange {
    /// Names of the URL parameters.
    pub const FIELDS: [&'static str; 3] = ["range", "from", "to"];

    /// The range in the decoded pairs of a URL, or `otherwise`.
    ///
    /// # Errors
    /// As [`Self::picked`].
    pub fn from_pairs<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
        otherwise: RangePreset,
    ) -> Result<Self, QueryError> {
        Ok(Self::picked(pairs)?.unwrap_or(Self::Last(otherwise)))
    }

    /// The range in the decoded pairs of a URL; other names are ignored. Empty values count as
    /// not given.
    ///
    /// # Errors
    /// Names the invalid field: preset and moments together, one end alone, an end before its
    /// begin, too short or too long.
    pub fn picked<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Option<Self>, QueryError> {
        let mut values: [Option<&str>; 3] = [None; 3];
        for (name, value) in pairs {
            let field = Self::FIELDS.iter().position(|field| *field == name);
            let Some(index) = field.filter(|_| !value.is_empty()) else {
                continue;
            };
            if values[index].replace(value).is_some() {
                return Err(QueryError::new(name, "must be given once"));
            }
        }
        match values {
            [None, None, None] => Ok(None),
            [Some(text), None, None] => {
                let presets = || RangePreset::ALL.map(RangePreset::as_str).join(", ");
                RangePreset::parse(text)
                    .map(|preset| Some(Self::Last(preset)))
                    .ok_or_else(|| QueryError::new("range", format!("must be one of {}", presets())))
            }
            [Some(_), ..] => Err(QueryError::new("range", "cannot be combined with from and to")),
            [None, Some(_), None] => Err(QueryError::new("to", "is required with from")),
            [None, None, Some(_)] => Err(QueryError::new("from", "is required with to")),
            [None, Some(from), Some(to)] => Self::between(end("from", from)?, end("to", to)?).map(Some),
        }
    }

    /// Between two moments, made at least a minute long.
    pub fn at_least_a_minute(from: i64, to: i64) -> Self {
        Self::Between {
            from,
            to: to.max(from.saturating_add(LENGTH_MS_MIN)),
        }
    }

    fn between(from: i64, to: i64) -> Result<Self, QueryError> {
        match to.saturating_sub(from) {
            ..=0 => Err(QueryError::new("to", "is not later than from")),
            1..LENGTH_MS_MIN => Err(QueryError::new("to", "is less than a minute after from")),
            LENGTH_MS_MIN..=LENGTH_MS_MAX => Ok(Self::Between { from, to }),
            _ => Err(QueryError::new("to", "is more than 31 days after from")),
        }
    }

    /// URL parameters of the range.
    pub fn pairs(self) -> Vec<(&'static str, String)> {
        match self {
            Self::Last(last) => vec![("range", last.as_str().to_owned())],
            Self::Between { from, to } => [("from", from), ("to", to)]
                .into_iter()
                .filter_map(|(name, ms)| {
                    DateTime::from_timestamp_millis(ms).map(|at| (name, time_format::iso(at)))
                })
                .collect(),
        }
    }

    /// The covered time at `now`, in milliseconds since 1970.
    pub fn scale(self, now: i64) -> TimeScale {
        match self {
            Self::Last(last) => TimeScale::new(now.saturating_sub(last.length_ms()), now),
            Self::Between { from, to } => TimeScale::new(from, to),
        }
    }

    /// `last 6 h`, or both ends.
    pub fn label(self) -> String {
        match self {
            Self::Last(last) => format!("last {}", last.label()),
            Self::Between { from, to } => {
                let dated =
                    |ms| DateTime::from_timestamp_millis(ms).map_or_else(String::new, time_format::dated);
                format!("{} to {}", dated(from), dated(to))
            }
        }
    }
}

fn end(name: &str, text: &str) -> Result<i64, QueryError> {
    let bad = || QueryError::new(name, "is not a time like 2026-03-01T03:12:00Z");
    // Years outside of this range would overflow scales.
    let at = parse_moment(text).filter(|at| (1970..10_000).contains(&chrono::Datelike::year(at)));
    at.map(|at| at.timestamp_millis()).ok_or_else(bad)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(pairs: &[(&str, &str)]) -> Result<TimeRange, QueryError> {
        TimeRange::from_pairs(pairs.iter().copied(), RangePreset::SixHours)
    }

    #[test]
    fn invalid_ranges_name_their_field() {
        // Each invalid form; unrelated parameters are ignored.
        assert_eq!(
            parse(&[("backend", "x"), ("range", "")]),
            Ok(TimeRange::Last(RangePreset::SixHours))
        );
        let (may, june) = ("2026-05-01", "2026-06-15");
        for (pairs, field) in [
            (vec![("range", "2h")], "range"),
            (vec![("range", "1h"), ("range", "1h")], "range"),
            (vec![("range", "1h"), ("from", may)], "range"),
            (vec![("from", may)], "to"),
            (vec![("to", may)], "from"),
            (vec![("from", may), ("to", may)], "to"),
            (vec![("from", may), ("to", "2026-05-01T00:00:59Z")], "to"),
            (vec![("from", may), ("to", june)], "to"),
            (vec![("from", "yesterday"), ("to", may)], "from"),
            (vec![("from", "+99999-01-01T00:00:00Z"), ("to", may)], "from"),
        ] {
            assert_eq!(
                parse(&pairs).map_err(|error| error.field),
                Err(field.into()),
                "{pairs:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn a_range_survives_a_round_trip_through_the_url(from in 0_i64..4_000_000_000_000, length in LENGTH_MS_MIN..LENGTH_MS_MAX, now: i64) {
            // Between any two moments, and each preset.
            let named = RangePreset::ALL.map(TimeRange::Last);
            for range in named.into_iter().chain([TimeRange::Between { from, to: from + length }]) {
                let pairs = range.pairs();
                let borrowed: Vec<(&str, &str)> = pairs.iter().map(|(name, value)| (*name, value.as_str())).collect();
                prop_assert_eq!(parse(&borrowed), Ok(range));
                prop_assert!(range.scale(now).length_ms() > 0);
            }
        }
    }
}
