//! The time range of a page: in its address, for every chart on it.

use chrono::DateTime;

use super::scale::TimeScale;
use crate::audit::parse_moment;
use crate::moment;
use crate::query::QueryError;

const HOUR: i64 = 3_600_000;
/// Shortest and longest range between two moments.
const LENGTH_MS_MIN: i64 = 60_000;
const LENGTH_MS_MAX: i64 = 31 * 24 * HOUR;

/// The last so many hours or days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Last {
    Hour,
    SixHours,
    Day,
    Week,
    Month,
}

impl Last {
    pub const ALL: [Self; 5] = [Self::Hour, Self::SixHours, Self::Day, Self::Week, Self::Month];

    pub fn parse(wire: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|last| last.wire() == wire)
    }

    pub const fn wire(self) -> &'static str {
        match self {
            Self::Hour => "1h",
            Self::SixHours => "6h",
            Self::Day => "24h",
            Self::Week => "7d",
            Self::Month => "30d",
        }
    }

    pub const fn word(self) -> &'static str {
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

/// What an address asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeRange {
    Last(Last),
    /// Milliseconds since 1970; the end is left out itself.
    Between {
        from: i64,
        to: i64,
    },
}

impl TimeRange {
    /// The names that it has in an address.
    pub const FIELDS: [&'static str; 3] = ["range", "from", "to"];

    /// From the decoded pairs of an address, others among them. Empty values count as not given.
    ///
    /// # Errors
    /// Names the field that does not fit: both kinds at once, one end alone, an end before its begin, too short or too long.
    pub fn from_pairs<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
        otherwise: Last,
    ) -> Result<Self, QueryError> {
        let mut given: [Option<&str>; 3] = [None; 3];
        for (name, value) in pairs {
            let field = Self::FIELDS.iter().position(|field| *field == name);
            let Some(index) = field.filter(|_| !value.is_empty()) else {
                continue;
            };
            if given[index].replace(value).is_some() {
                return Err(QueryError::new(name, "is given twice"));
            }
        }
        match given {
            [None, None, None] => Ok(Self::Last(otherwise)),
            [Some(word), None, None] => {
                let words = || Last::ALL.map(Last::wire).join(", ");
                Last::parse(word)
                    .map(Self::Last)
                    .ok_or_else(|| QueryError::new("range", format!("is none of {}", words())))
            }
            [Some(_), ..] => Err(QueryError::new(
                "range",
                "is given beside from and to; one of both will do",
            )),
            [None, Some(_), None] => Err(QueryError::new("to", "is missing beside from")),
            [None, None, Some(_)] => Err(QueryError::new("from", "is missing beside to")),
            [None, Some(from), Some(to)] => Self::between(end("from", from)?, end("to", to)?),
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

    /// What stands in an address for it.
    pub fn pairs(self) -> Vec<(&'static str, String)> {
        match self {
            Self::Last(last) => vec![("range", last.wire().to_owned())],
            Self::Between { from, to } => [("from", from), ("to", to)]
                .into_iter()
                .filter_map(|(name, ms)| {
                    DateTime::from_timestamp_millis(ms).map(|at| (name, moment::iso(at)))
                })
                .collect(),
        }
    }

    /// What it covers at `now`, milliseconds since 1970.
    pub fn scale(self, now: i64) -> TimeScale {
        match self {
            Self::Last(last) => TimeScale::new(now.saturating_sub(last.length_ms()), now),
            Self::Between { from, to } => TimeScale::new(from, to),
        }
    }

    /// `last 6 h`, or both ends.
    pub fn words(self) -> String {
        match self {
            Self::Last(last) => format!("last {}", last.word()),
            Self::Between { from, to } => {
                let dated = |ms| DateTime::from_timestamp_millis(ms).map_or_else(String::new, moment::dated);
                format!("{} to {}", dated(from), dated(to))
            }
        }
    }
}

fn end(name: &str, text: &str) -> Result<i64, QueryError> {
    let bad = || QueryError::new(name, "is not a time like 2026-03-01T03:12:00Z");
    // Years that no calendar on a page can show would only make scales overflow.
    let at = parse_moment(text).filter(|at| (1970..10_000).contains(&chrono::Datelike::year(at)));
    at.map(|at| at.timestamp_millis()).ok_or_else(bad)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(pairs: &[(&str, &str)]) -> Result<TimeRange, QueryError> {
        TimeRange::from_pairs(pairs.iter().copied(), Last::SixHours)
    }

    #[test]
    fn what_an_address_cannot_mean_is_refused_by_name() {
        // Each way to say it wrong; what belongs to others is passed over.
        assert_eq!(
            parse(&[("backend", "x"), ("range", "")]),
            Ok(TimeRange::Last(Last::SixHours))
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
        fn a_range_comes_back_from_the_address_that_it_makes(from in 0_i64..4_000_000_000_000, length in LENGTH_MS_MIN..LENGTH_MS_MAX, now: i64) {
            // Between any two moments, and each of the named ones.
            let named = Last::ALL.map(TimeRange::Last);
            for range in named.into_iter().chain([TimeRange::Between { from, to: from + length }]) {
                let pairs = range.pairs();
                let told: Vec<(&str, &str)> = pairs.iter().map(|(name, value)| (*name, value.as_str())).collect();
                prop_assert_eq!(parse(&told), Ok(range));
                prop_assert!(range.scale(now).length_ms() > 0);
            }
        }
    }
}
