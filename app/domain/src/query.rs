//! Query of the lock list: filter and order, parsed from and written to URLs; the same in
//! pages, API and command line.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::access::Visible;
use crate::backend::BackendView;
use crate::limits::{PAGE_ROWS_DEFAULT, PAGE_ROWS_MAX, QUERY_BYTES_MAX};
use crate::lock::Lock;
use crate::names::BackendName;
use crate::safety::SafetyClass;
use crate::state::{LockState, StateCounts};

crate::wire_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum SortKey {
        Resource = "resource",
        Held = "held",
        Remaining = "remaining",
        Waiters = "waiters",
        State = "state",
    }
}

/// Order of a list; ties are ordered by resource, backend, source; missing values come last in
/// either direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Sort {
    pub key: SortKey,
    /// For [`SortKey::State`], descending means worst first.
    pub descending: bool,
}

impl Default for Sort {
    fn default() -> Self {
        Self {
            key: SortKey::State,
            descending: true,
        }
    }
}

impl Sort {
    pub fn to_query_value(self) -> String {
        format!("{}{}", if self.descending { "-" } else { "" }, self.key.as_str())
    }

    pub fn parse(text: &str) -> Option<Self> {
        let (descending, name) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        SortKey::parse(name).map(|key| Self { key, descending })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InventoryQuery {
    /// Empty: all.
    pub backends: Vec<BackendName>,
    /// Text form of the literal leading part of the resource.
    pub prefix: String,
    pub owners: Vec<String>,
    pub states: Vec<LockState>,
    pub safety: Option<SafetyClass>,
    /// Substring of resource or owner.
    pub q: String,
    pub sort: Sort,
    pub limit: u32,
    pub cursor: Option<String>,
    /// Set by the server from the reader's permissions; never read from a request.
    #[serde(skip)]
    pub visible: Visible,
}

impl Default for InventoryQuery {
    fn default() -> Self {
        Self {
            backends: Vec::new(),
            prefix: String::new(),
            owners: Vec::new(),
            states: Vec::new(),
            safety: None,
            q: String::new(),
            sort: Sort::default(),
            limit: PAGE_ROWS_DEFAULT,
            cursor: None,
            visible: Visible::default(),
        }
    }
}

/// An invalid query value, with its field and the accepted form.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[error("{field}: {message}")]
pub struct QueryError {
    pub field: String,
    pub message: String,
}

impl QueryError {
    pub fn new(field: &str, message: impl Into<String>) -> Self {
        Self {
            field: field.to_owned(),
            message: message.into(),
        }
    }
}

impl InventoryQuery {
    /// From decoded `name=value` pairs. Empty values count as not given, because forms send
    /// them.
    ///
    /// # Errors
    /// Names the first field that is invalid or unknown.
    pub fn from_pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, QueryError> {
        let mut query = Self::default();
        for (name, value) in pairs {
            query.set_parameter(name, value)?;
        }
        Ok(query)
    }

    fn set_parameter(&mut self, name: &str, value: &str) -> Result<(), QueryError> {
        if value.len() > QUERY_BYTES_MAX {
            return Err(QueryError::new(
                name,
                format!("is longer than {QUERY_BYTES_MAX} bytes"),
            ));
        }
        if value.is_empty() {
            return if Self::FIELDS.contains(&name) {
                Ok(())
            } else {
                Err(unknown_field(name))
            };
        }
        match name {
            "backend" => self
                .backends
                .push(BackendName::parse(value).map_err(|error| QueryError::new(name, error.to_string()))?),
            "prefix" => value.clone_into(&mut self.prefix),
            "owner" => self.owners.push(value.to_owned()),
            "state" => self
                .states
                .push(LockState::parse(value).ok_or_else(|| bad_state(value))?),
            "safety" => {
                let class = SafetyClass::parse(value);
                self.safety = Some(class.ok_or_else(|| {
                    QueryError::new(name, format!("is correctness or efficiency, not {value:?}"))
                })?);
            }
            "q" => value.clone_into(&mut self.q),
            "sort" => self.sort = Sort::parse(value).ok_or_else(|| bad_sort(value))?,
            "limit" => self.limit = parse_limit(value)?,
            "cursor" => self.cursor = Some(value.to_owned()),
            _ => return Err(unknown_field(name)),
        }
        Ok(())
    }

    const FIELDS: [&'static str; 9] = [
        "backend", "prefix", "owner", "state", "safety", "q", "sort", "limit", "cursor",
    ];

    /// Pairs that differ from the default, in a fixed order, for the URL.
    pub fn to_pairs(&self) -> Vec<(&'static str, String)> {
        let mut pairs = Vec::new();
        pairs.extend(self.backends.iter().map(|name| ("backend", name.to_string())));
        if !self.prefix.is_empty() {
            pairs.push(("prefix", self.prefix.clone()));
        }
        pairs.extend(self.owners.iter().map(|owner| ("owner", owner.clone())));
        pairs.extend(
            self.states
                .iter()
                .map(|state| ("state", state.as_str().to_owned())),
        );
        if let Some(class) = self.safety {
            pairs.push(("safety", class.as_str().to_owned()));
        }
        if !self.q.is_empty() {
            pairs.push(("q", self.q.clone()));
        }
        if self.sort != Sort::default() {
            pairs.push(("sort", self.sort.to_query_value()));
        }
        if self.limit != PAGE_ROWS_DEFAULT {
            pairs.push(("limit", self.limit.to_string()));
        }
        if let Some(cursor) = &self.cursor {
            pairs.push(("cursor", cursor.clone()));
        }
        pairs
    }
}

fn unknown_field(name: &str) -> QueryError {
    QueryError::new(
        name,
        format!(
            "is not a parameter; allowed are {}",
            InventoryQuery::FIELDS.join(", ")
        ),
    )
}

fn bad_state(value: &str) -> QueryError {
    let allowed = LockState::ALL.map(LockState::as_str).join(", ");
    QueryError::new("state", format!("must be one of {allowed}, not {value:?}"))
}

fn bad_sort(value: &str) -> QueryError {
    let allowed = SortKey::ALL.map(SortKey::as_str).join(", ");
    QueryError::new(
        "sort",
        format!("must be one of {allowed}, with - before it for descending, not {value:?}"),
    )
}

fn parse_limit(value: &str) -> Result<u32, QueryError> {
    match value.parse() {
        Ok(limit) if (1..=PAGE_ROWS_MAX).contains(&limit) => Ok(limit),
        _ => Err(QueryError::new(
            "limit",
            format!("is a whole number from 1 to {PAGE_ROWS_MAX}, not {value:?}"),
        )),
    }
}

/// One page of the list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InventoryPage {
    pub locks: Vec<Lock>,
    pub next_cursor: Option<String>,
    /// Locks that match, over all pages.
    pub total: u64,
    /// Every backend in the query is live and completely covered.
    pub complete: bool,
    pub backends: Vec<BackendView>,
    /// Matches per state without the state filter: the counts of the facets.
    pub states: StateCounts,
    /// Locks on all backends, regardless of the query.
    pub held_total: u64,
    pub revision: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_survives_a_round_trip_through_its_url() {
        let pairs = [
            ("backend", "cache"),
            ("backend", "coord"),
            ("prefix", "tenant_1:"),
            ("owner", "worker-7"),
            ("state", "no_ttl"),
            ("safety", "efficiency"),
            ("q", "bill"),
            ("sort", "-held"),
            ("limit", "26"),
        ];
        let query = InventoryQuery::from_pairs(pairs).unwrap();
        let again = query.to_pairs();
        assert_eq!(
            again
                .iter()
                .map(|(name, value)| (*name, value.as_str()))
                .collect::<Vec<_>>(),
            pairs
        );
    }

    #[test]
    fn an_invalid_value_names_its_field_and_the_accepted_form() {
        for (name, value) in [
            ("state", "broken"),
            ("sort", "+held"),
            ("limit", "0"),
            ("limit", "1001"),
            ("limit", "ten"),
            ("backend", "No_Such"),
            ("safety", "safe"),
            ("colour", "red"),
            ("colour", ""),
        ] {
            let error = InventoryQuery::from_pairs([(name, value)]).unwrap_err();
            assert_eq!(error.field, name);
            assert!(error.message.len() > 10);
        }
        assert!(InventoryQuery::from_pairs([("state", ""), ("limit", "")]).is_ok());
    }
}
