//! Filter of the audit log: parsed from and written to URLs; the same in the page, the API and
//! exports.

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Utc};

use super::{Action, Readable};
use crate::limits::{PAGE_ROWS_DEFAULT, PAGE_ROWS_MAX, QUERY_BYTES_MAX};
use crate::names::BackendName;
use crate::query::QueryError;
use crate::time_format;

/// All given filters must match.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuditQuery {
    /// Id or name of the actor.
    pub actor: Option<String>,
    pub backend: Option<BackendName>,
    /// Beginning of the resource's text form.
    pub prefix: Option<String>,
    pub action: Option<Action>,
    pub outcome: Option<String>,
    pub unlock_id: Option<String>,
    pub from: Option<DateTime<Utc>>,
    /// Exclusive.
    pub to: Option<DateTime<Utc>>,
    pub limit: u32,
    /// Only entries before this one.
    pub before_seq: Option<i64>,
    /// Set by the server from the reader's permissions; never read from a request.
    pub readable: Readable,
}

/// Longest outcome, in characters.
const OUTCOME_CHARS_MAX: usize = 64;

impl AuditQuery {
    /// Names of the filters; the page has a field for each.
    pub const FILTERS: [&'static str; 8] = [
        "actor", "backend", "prefix", "action", "outcome", "unlockId", "from", "to",
    ];
    const FIELDS: [&'static str; 10] = [
        "actor", "backend", "prefix", "action", "outcome", "unlockId", "from", "to", "limit", "cursor",
    ];

    /// From decoded `name=value` pairs. Empty values count as not given, because forms send
    /// them.
    ///
    /// # Errors
    /// Names the first field that is invalid, given twice or unknown.
    pub fn from_pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, QueryError> {
        let mut query = Self {
            limit: PAGE_ROWS_DEFAULT,
            ..Self::default()
        };
        let mut seen = Vec::new();
        for (name, value) in pairs {
            let known = Self::FIELDS.iter().find(|field| **field == name);
            let Some(known) = known else {
                let message = format!("is not a parameter; allowed are {}", Self::FIELDS.join(", "));
                return Err(QueryError::new(name, message));
            };
            if value.is_empty() {
                continue;
            }
            if seen.contains(known) {
                return Err(QueryError::new(name, "must be given once"));
            }
            seen.push(known);
            query.set_field(known, value)?;
        }
        match (query.from, query.to) {
            (Some(from), Some(to)) if from >= to => Err(QueryError::new("to", "is not later than from")),
            _ => Ok(query),
        }
    }

    fn set_field(&mut self, name: &'static str, value: &str) -> Result<(), QueryError> {
        let invalid = |message: String| QueryError::new(name, message);
        if value.len() > QUERY_BYTES_MAX {
            return Err(invalid(format!("is longer than {QUERY_BYTES_MAX} bytes")));
        }
        // Entries escape NUL, because Postgres cannot store it in text.
        let text = value.replace('\0', "\\u{0}");
        match name {
            "actor" => self.actor = Some(text),
            "backend" => {
                let backend = BackendName::parse(value).map_err(|error| invalid(error.to_string()))?;
                self.backend = Some(backend);
            }
            "prefix" => self.prefix = Some(text),
            "action" => {
                let allowed = || Action::ALL.map(Action::as_str).join(", ");
                let action =
                    Action::parse(value).ok_or_else(|| invalid(format!("must be one of {}", allowed())))?;
                self.action = Some(action);
            }
            "outcome" => {
                if !is_word(value) {
                    return Err(invalid(
                        "is one word of a-z, 0-9 and _, such as released".to_owned(),
                    ));
                }
                self.outcome = Some(text);
            }
            "unlockId" => self.unlock_id = Some(text),
            "from" => self.from = Some(parse_moment(value).ok_or_else(|| invalid(MOMENT.to_owned()))?),
            "to" => self.to = Some(parse_moment(value).ok_or_else(|| invalid(MOMENT.to_owned()))?),
            "limit" => {
                let limit = value.parse().ok();
                let limit = limit.filter(|limit| (1..=PAGE_ROWS_MAX).contains(limit));
                self.limit =
                    limit.ok_or_else(|| invalid(format!("is a number from 1 to {PAGE_ROWS_MAX}")))?;
            }
            _ => {
                let seq = value.parse().ok().filter(|seq: &i64| *seq >= 1);
                self.before_seq =
                    Some(seq.ok_or_else(|| invalid("is not a nextCursor of this list".to_owned()))?);
            }
        }
        Ok(())
    }

    /// Filters in a fixed order, for the URL; without page and length.
    pub fn filters(&self) -> Vec<(&'static str, String)> {
        let values = [
            self.actor.clone(),
            self.backend.as_ref().map(ToString::to_string),
            self.prefix.clone(),
            self.action.map(|action| action.as_str().to_owned()),
            self.outcome.clone(),
            self.unlock_id.clone(),
            self.from.map(time_format::iso),
            self.to.map(time_format::iso),
        ];
        let pairs = Self::FILTERS.into_iter().zip(values);
        pairs
            .filter_map(|(name, value)| value.map(|value| (name, value)))
            .collect()
    }
}

const MOMENT: &str =
    "is not a time like 2026-03-01T03:12:00Z; without a zone it is UTC, without a time midnight";

fn is_word(text: &str) -> bool {
    text.len() <= OUTCOME_CHARS_MAX
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// RFC 3339; or the UTC value of a form field; or a day, meaning its midnight.
pub fn parse_moment(text: &str) -> Option<DateTime<Utc>> {
    // An unencoded plus of the offset is decoded as a space.
    let zoned = DateTime::parse_from_rfc3339(text)
        .or_else(|_| DateTime::parse_from_rfc3339(&text.replacen(' ', "+", 1)))
        .map(|at| at.to_utc());
    let local = |format| NaiveDateTime::parse_from_str(text, format);
    let day = || NaiveDate::parse_from_str(text, "%Y-%m-%d").map(|day| day.and_time(NaiveTime::MIN));
    zoned
        .or_else(|_| {
            local("%Y-%m-%dT%H:%M:%S%.f")
                .or_else(|_| local("%Y-%m-%dT%H:%M"))
                .or_else(|_| day())
                .map(|at| at.and_utc())
        })
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pairs: &[(&str, &str)]) -> Result<AuditQuery, QueryError> {
        AuditQuery::from_pairs(pairs.iter().copied())
    }

    #[test]
    fn filters_survive_a_round_trip_through_the_url() {
        // All filters with hostile values, then none; empty form fields count as none.
        let pairs = [
            ("actor", "a&b=c"),
            ("backend", "cache"),
            ("prefix", "\u{202e}100%"),
            ("action", "FORCE_UNLOCK"),
            ("outcome", "released"),
            ("unlockId", "u_1"),
            ("from", "2026-03-01T03:12:00.000Z"),
            ("to", "2026-03-02T00:00:00.250Z"),
        ];
        let query = parse(&pairs).unwrap();
        let filters = query.filters();
        let names: Vec<_> = filters
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        assert_eq!(names, pairs);
        let none = parse(&[("actor", ""), ("from", ""), ("limit", "")]).unwrap();
        assert_eq!((none.filters().len(), none.limit), (0, PAGE_ROWS_DEFAULT));
    }

    #[test]
    fn times_parse_with_a_zone_without_one_and_as_days() {
        // The same moment in each format.
        let texts = [
            "2026-03-01T00:00:00Z",
            "2026-03-01T01:00:00+01:00",
            "2026-03-01T01:00:00 01:00",
            "2026-03-01T00:00:00",
            "2026-03-01T00:00:00.000",
            "2026-03-01T00:00",
            "2026-03-01",
        ];
        let moments: Vec<_> = texts.iter().map(|text| parse_moment(text).unwrap()).collect();
        assert!(moments.iter().all(|at| *at == moments[0]), "{moments:?}");
        for bad in ["yesterday", "2026-13-01", "12:00", "1772334761"] {
            assert_eq!(parse_moment(bad), None, "{bad}");
        }
    }

    #[test]
    fn invalid_filters_name_their_field() {
        // Per field one invalid value; one given twice; one unknown; a range that ends before
        // it begins.
        for (name, value) in [
            ("backend", "No Name"),
            ("action", "EXPLODE"),
            ("outcome", "Released!"),
            ("from", "soon"),
            ("to", "soon"),
            ("limit", "0"),
            ("limit", "1001"),
            ("cursor", "0"),
            ("cursor", "x"),
            ("colour", "red"),
        ] {
            assert_eq!(parse(&[(name, value)]).unwrap_err().field, name, "{value}");
        }
        assert_eq!(
            parse(&[("actor", "a"), ("actor", "b")]).unwrap_err().field,
            "actor"
        );
        let span = [("from", "2026-03-02"), ("to", "2026-03-02")];
        assert_eq!(parse(&span).unwrap_err().field, "to");
        let long = "x".repeat(QUERY_BYTES_MAX + 1);
        assert_eq!(parse(&[("prefix", &long)]).unwrap_err().field, "prefix");
    }
}
