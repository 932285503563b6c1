//! URL state of the list: everything shown is in the URL, and every link changes one part.
//!
//! In addition to the query's fields: `from`, the number of the first row, and `back`, the
//! cursors of the previous pages, because keyset paging does not know them.

use domain::query::{InventoryQuery, Sort};

use crate::links;

/// Previous pages with a cursor; beyond, only the first page.
const BACK_MAX: usize = 12;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Address {
    /// The query's fields as given; the server validates them.
    pairs: Vec<(String, String)>,
    from: u64,
    back: Vec<String>,
}

impl Address {
    pub fn parse(search: &str) -> Self {
        let mut address = Self::default();
        for (name, value) in links::pairs(search) {
            match name.as_str() {
                _ if value.is_empty() && name != "back" => {}
                "from" => address.from = value.parse().unwrap_or(0),
                "back" => address.back.push(value),
                _ => address.pairs.push((name, value)),
            }
        }
        address
    }

    /// From the fields of the filters; paging restarts.
    pub fn from_fields(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        Self {
            pairs: pairs.into_iter().filter(|(_, value)| !value.is_empty()).collect(),
            ..Self::default()
        }
    }

    /// The query string for the server.
    pub fn query(&self) -> String {
        links::with_query("", self.pairs.iter().map(|(name, value)| (name, value)))
    }

    pub fn href(&self) -> String {
        let mut pairs = self.pairs.clone();
        if self.from > 0 {
            pairs.push(("from".to_owned(), self.from.to_string()));
        }
        pairs.extend(self.back.iter().map(|cursor| ("back".to_owned(), cursor.clone())));
        links::with_query("/locks", pairs)
    }

    pub fn first(&self, name: &str) -> &str {
        let found = self.pairs.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }

    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.pairs
            .iter()
            .filter(move |(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    pub fn has(&self, name: &str, value: &str) -> bool {
        self.all(name).any(|known| known == value)
    }

    pub fn sort(&self) -> Sort {
        Sort::parse(self.first("sort")).unwrap_or_default()
    }

    /// Rows before the first one shown.
    pub fn from(&self) -> u64 {
        self.from
    }

    /// Any filter is set: an empty list then means "no match".
    pub fn is_filtered(&self) -> bool {
        ["backend", "prefix", "owner", "state", "safety", "q"]
            .into_iter()
            .any(|name| self.all(name).next().is_some())
    }

    /// Without paging: any other change starts at the first row.
    fn at_first_page(&self) -> Self {
        let pairs = self
            .pairs
            .iter()
            .filter(|(name, _)| name != "cursor")
            .cloned()
            .collect();
        Self {
            pairs,
            ..Self::default()
        }
    }

    /// With only this value of the field; an empty value removes it.
    #[must_use]
    pub fn with(&self, name: &str, value: &str) -> Self {
        let mut next = self.at_first_page();
        next.pairs.retain(|(known, _)| known != name);
        if !value.is_empty() {
            next.pairs.push((name.to_owned(), value.to_owned()));
        }
        next
    }

    /// With this value added, or removed if present.
    #[must_use]
    pub fn toggled(&self, name: &str, value: &str) -> Self {
        let mut next = self.at_first_page();
        if next.has(name, value) {
            next.pairs
                .retain(|(known, other)| !(known == name && other == value));
        } else {
            next.pairs.push((name.to_owned(), value.to_owned()));
        }
        next
    }

    /// Without filters, in the same order.
    #[must_use]
    pub fn cleared(&self) -> Self {
        let mut next = self.at_first_page();
        next.pairs
            .retain(|(name, _)| matches!(name.as_str(), "sort" | "limit"));
        next
    }

    /// The next page, after `rows` rows and at `cursor`.
    #[must_use]
    pub fn next(&self, cursor: &str, rows: u64) -> Self {
        let mut next = self.with("cursor", cursor);
        next.from = self.from + rows;
        next.back.clone_from(&self.back);
        next.back.push(self.first("cursor").to_owned());
        let surplus = next.back.len().saturating_sub(BACK_MAX);
        next.back.drain(..surplus);
        next
    }

    /// The previous page; the first if its cursor is not known. `None` on the first.
    pub fn previous(&self, rows: u64) -> Option<Self> {
        if self.first("cursor").is_empty() {
            return None;
        }
        let Some(cursor) = self.back.last() else {
            return Some(self.at_first_page());
        };
        let mut before = self.with("cursor", cursor);
        if !cursor.is_empty() {
            before.from = self.from.saturating_sub(rows);
            before.back = self.back[..self.back.len() - 1].to_vec();
        }
        Some(before)
    }

    /// The same list from another cursor, in portions of `limit`: for the pages that scrolling
    /// adds.
    pub fn query_from(&self, cursor: Option<&str>, limit: u32) -> String {
        self.with("cursor", cursor.unwrap_or(""))
            .with_limit(limit)
            .query()
    }

    fn with_limit(mut self, limit: u32) -> Self {
        self.pairs.retain(|(name, _)| name != "limit");
        self.pairs.push(("limit".to_owned(), limit.to_string()));
        self
    }

    /// Requested rows per page.
    pub fn limit(&self) -> u32 {
        self.first("limit")
            .parse()
            .unwrap_or(InventoryQuery::default().limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_but_paging_starts_at_the_first_row() {
        // One filtered page in the middle of a list; each link changes one part of it.
        let here = Address::parse("?prefix=a%3A&state=stale&cursor=100&from=100&back=");
        assert_eq!(here.query(), "?prefix=a:&state=stale&cursor=100");
        assert_eq!(here.with("prefix", "b:").href(), "/locks?state=stale&prefix=b:");
        assert_eq!(
            here.toggled("state", "no_ttl").href(),
            "/locks?prefix=a:&state=stale&state=no_ttl"
        );
        assert_eq!(here.toggled("state", "stale").href(), "/locks?prefix=a:");
        assert_eq!(here.cleared().href(), "/locks");
        assert!(here.is_filtered() && !here.cleared().is_filtered());
    }

    #[test]
    fn the_previous_link_returns_to_the_previous_page() {
        let first = Address::parse("?sort=-held");
        let second = first.next("c1", 100);
        let third = second.next("c2", 100);
        assert_eq!(third.from(), 200);
        assert_eq!(third.previous(100), Some(second.clone()));
        assert_eq!(Address::parse(&third.href()["/locks".len()..]), third);
        assert_eq!(second.previous(100), Some(first.clone()));
        assert_eq!(first.previous(100), None);
        assert_eq!(
            Address::parse("?cursor=c9").previous(100),
            Some(Address::default())
        );
    }
}
