//! Filter of the fencing rejections: parsed from and written to the page's URL.

use super::Rejection;
use crate::charts::range::TimeRange;
use crate::history::HistoryEvent;
use crate::limits::QUERY_BYTES_MAX;
use crate::names::BackendName;
use crate::query::QueryError;

/// All given filters must match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectionFilter {
    /// `None`: fitted to the data.
    pub range: Option<TimeRange>,
    pub backend: Option<BackendName>,
    /// Beginning of the resource's text form.
    pub prefix: Option<String>,
    pub owner: Option<String>,
    pub source: Option<String>,
    /// Only rejections older than the one with this number.
    pub before: Option<i64>,
}

impl RejectionFilter {
    /// Names of the filters; the page has a field for each.
    pub const FILTERS: [&'static str; 4] = ["backend", "prefix", "owner", "source"];

    /// From decoded `name=value` pairs. Empty values count as not given, because forms send
    /// them.
    ///
    /// # Errors
    /// Names the first field that is invalid, given twice or unknown.
    pub fn from_pairs(pairs: &[(String, String)]) -> Result<Self, QueryError> {
        let parameters = || pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let mut filter = Self {
            range: TimeRange::picked(parameters())?,
            backend: None,
            prefix: None,
            owner: None,
            source: None,
            before: None,
        };
        let mut seen = Vec::new();
        for (name, value) in parameters() {
            let is_range = TimeRange::FIELDS.contains(&name);
            if !is_range && name != "before" && !Self::FILTERS.contains(&name) {
                let message = format!(
                    "is not a parameter; allowed are {}, range, from, to",
                    Self::FILTERS.join(", ")
                );
                return Err(QueryError::new(name, message));
            }
            if value.is_empty() || is_range {
                continue;
            }
            if seen.contains(&name) {
                return Err(QueryError::new(name, "must be given once"));
            }
            seen.push(name);
            filter.set_field(name, value)?;
        }
        Ok(filter)
    }

    fn set_field(&mut self, name: &str, value: &str) -> Result<(), QueryError> {
        if value.len() > QUERY_BYTES_MAX {
            return Err(QueryError::new(
                name,
                format!("is longer than {QUERY_BYTES_MAX} bytes"),
            ));
        }
        match name {
            "backend" => {
                let backend = BackendName::parse(value);
                self.backend = Some(backend.map_err(|error| QueryError::new(name, error.to_string()))?);
            }
            "prefix" => self.prefix = Some(value.to_owned()),
            "owner" => self.owner = Some(value.to_owned()),
            "source" => self.source = Some(value.to_owned()),
            _ => {
                let before = value.parse().ok().filter(|id: &i64| *id >= 1);
                self.before = Some(
                    before.ok_or_else(|| QueryError::new(name, "is not where a page of this list begins"))?,
                );
            }
        }
        Ok(())
    }

    /// Filters in a fixed order, for the URL; without range and page.
    pub fn filters(&self) -> Vec<(&'static str, String)> {
        let values = [
            self.backend.as_ref().map(ToString::to_string),
            self.prefix.clone(),
            self.owner.clone(),
            self.source.clone(),
        ];
        let pairs = Self::FILTERS.into_iter().zip(values);
        pairs
            .filter_map(|(name, value)| value.map(|value| (name, value)))
            .collect()
    }

    /// Independent of the page. Only the built-in service records rejections.
    pub fn fits(&self, row: &Rejection) -> bool {
        let is_ours = self
            .backend
            .as_ref()
            .is_none_or(|backend| *backend == BackendName::builtin());
        let owner = row.owner.as_ref().map(|owner| owner.as_str());
        is_ours
            && self.fits_name(&row.resource)
            && self.owner.as_deref().is_none_or(|filter| owner == Some(filter))
            && self.source.as_ref().is_none_or(|filter| *filter == row.source)
    }

    /// Grants have no source: a source filter is ignored for them.
    pub fn fits_grant(&self, event: &HistoryEvent) -> bool {
        let owner = event.owner.as_ref().map(|owner| owner.as_str());
        self.backend
            .as_ref()
            .is_none_or(|backend| *backend == event.backend)
            && self.fits_name(&event.resource.text())
            && self.owner.as_deref().is_none_or(|filter| owner == Some(filter))
    }

    /// Literal match, without wildcards.
    fn fits_name(&self, name: &str) -> bool {
        self.prefix
            .as_deref()
            .is_none_or(|prefix| name.starts_with(prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pairs: &[(&str, &str)]) -> Result<RejectionFilter, QueryError> {
        let pairs: Vec<(String, String)> = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        RejectionFilter::from_pairs(&pairs)
    }

    #[test]
    fn filters_survive_a_round_trip_through_the_url() {
        let pairs = [
            ("backend", "builtin"),
            ("prefix", "\u{202e}100%"),
            ("owner", "a&b=c"),
            ("source", "ledger-db"),
        ];
        let filter = parse(&pairs).unwrap();
        let filters = filter.filters();
        let names: Vec<(&str, &str)> = filters
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        assert_eq!(names, pairs);
        assert_eq!(parse(&[("owner", ""), ("range", "")]).unwrap().filters(), []);
    }

    #[test]
    fn invalid_filters_name_their_field() {
        for (name, value) in [
            ("backend", "No Name"),
            ("before", "0"),
            ("before", "x"),
            ("range", "2h"),
            ("colour", "red"),
        ] {
            assert_eq!(parse(&[(name, value)]).unwrap_err().field, name, "{value}");
        }
        assert_eq!(
            parse(&[("owner", "a"), ("owner", "b")]).unwrap_err().field,
            "owner"
        );
    }
}
