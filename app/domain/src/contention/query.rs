//! Query of the contention page and its API, parsed from a URL.

use super::ContentionSort;
use crate::audit::parse_moment;
use crate::charts::range::TimeRange;
use crate::query::QueryError;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ContentionQuery {
    /// `None`: fitted to the data.
    pub range: Option<TimeRange>,
    pub by: ContentionSort,
    /// Backend and template of the selected row.
    pub prefix: Option<(String, String)>,
    /// Begin of the selected cell, in milliseconds since 1970.
    pub at: Option<i64>,
    pub all_trees: bool,
}

impl ContentionQuery {
    const FIELDS: [&'static str; 8] = ["range", "from", "to", "by", "backend", "prefix", "at", "trees"];
    /// Names of the parameters that select a row or a cell.
    pub const SELECTION: [&'static str; 3] = ["backend", "prefix", "at"];

    /// From decoded `name=value` pairs. Empty values count as not given.
    ///
    /// # Errors
    /// Names the first field that is invalid or unknown.
    pub fn from_pairs(pairs: &[(String, String)]) -> Result<Self, QueryError> {
        let parameters = || pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        if let Some((name, _)) = parameters().find(|(name, _)| !Self::FIELDS.contains(name)) {
            return Err(QueryError::new(
                name,
                format!("is not a parameter; allowed are {}", Self::FIELDS.join(", ")),
            ));
        }
        let value_of = |field: &str| {
            parameters()
                .find(|(name, value)| *name == field && !value.is_empty())
                .map(|(_, value)| value)
        };
        let by = value_of("by").map(|text| {
            ContentionSort::parse(text).ok_or_else(|| QueryError::new("by", "must be wait, refusals or held"))
        });
        let at = value_of("at").map(|text| {
            let at = parse_moment(text).map(|at| at.timestamp_millis());
            at.ok_or_else(|| QueryError::new("at", "must be a time like 2026-05-01T02:40:00Z"))
        });
        let (prefix, at) = match (value_of("backend"), value_of("prefix"), at.transpose()?) {
            (None, None, None) => (None, None),
            (Some(backend), Some(prefix), at) => (Some((backend.to_owned(), prefix.to_owned())), at),
            (_, _, Some(_)) => return Err(QueryError::new("at", "is only allowed with backend and prefix")),
            (Some(_), None, None) => return Err(QueryError::new("prefix", "is required with backend")),
            (None, Some(_), None) => return Err(QueryError::new("backend", "is required with prefix")),
        };
        Ok(Self {
            range: TimeRange::picked(parameters())?,
            by: by.transpose()?.unwrap_or_default(),
            prefix,
            at,
            all_trees: value_of("trees") == Some("all"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pairs: &[(&str, &str)]) -> Result<ContentionQuery, QueryError> {
        let pairs: Vec<(String, String)> = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        ContentionQuery::from_pairs(&pairs)
    }

    #[test]
    fn a_row_or_a_cell_can_be_selected() {
        let row = parse(&[("backend", "b"), ("prefix", "p"), ("by", "held"), ("range", "")]).unwrap();
        assert_eq!(row.prefix, Some(("b".to_owned(), "p".to_owned())));
        assert_eq!((row.by, row.at, row.range), (ContentionSort::Held, None, None));
        let cell = parse(&[("backend", "b"), ("prefix", "p"), ("at", "1970-01-01T00:01:00Z")]);
        assert_eq!(cell.unwrap().at, Some(60_000));
    }

    #[test]
    fn invalid_parameters_name_their_field() {
        for (pairs, field) in [
            (vec![("by", "size")], "by"),
            (vec![("backend", "b")], "prefix"),
            (vec![("prefix", "p")], "backend"),
            (vec![("at", "1970-01-01T00:01:00Z")], "at"),
            (vec![("backend", "b"), ("prefix", "p"), ("at", "x")], "at"),
            (vec![("range", "2h")], "range"),
            (vec![("colour", "red")], "colour"),
        ] {
            assert_eq!(parse(&pairs).unwrap_err().field, field, "{pairs:?}");
        }
    }
}
