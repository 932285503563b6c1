//! Scope of a principal: everything, or a set of prefixes on whole segments.
//!
//! `team_a` covers `team_a`, `team_a:x` and `team_a/x`, not `team_ab`; a prefix that ends in a
//! separator covers what begins with it. No wildcards: a scope becomes byte ranges, for the
//! store's index too.

use std::sync::Arc;

/// Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Scope(Option<Arc<[String]>>);

/// A part of a scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScopePiece {
    /// This name alone.
    Name(Vec<u8>),
    /// Every name that begins with this.
    Beginning(Vec<u8>),
}

/// Names from `from` (inclusive) to `to` (exclusive); `None`: no end.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NameRange {
    pub from: String,
    pub to: Option<String>,
}

impl NameRange {
    /// Every name that begins with `prefix`.
    pub fn starting_with(prefix: &str) -> Self {
        Self {
            from: prefix.to_owned(),
            to: successor(prefix),
        }
    }

    /// Intersection.
    pub fn and(&self, other: &Self) -> Option<Self> {
        let from = self.from.clone().max(other.from.clone());
        let to = match (&self.to, &other.to) {
            (Some(one), Some(two)) => Some(one.min(two).clone()),
            (one, two) => one.clone().or_else(|| two.clone()),
        };
        let empty = to.as_ref().is_some_and(|to| *to <= from);
        (!empty).then_some(Self { from, to })
    }
}

impl Scope {
    pub const fn everything() -> Self {
        Self(None)
    }

    /// An empty set covers nothing. Equality ignores the order.
    pub fn prefixes(prefixes: impl IntoIterator<Item = String>) -> Self {
        let mut prefixes: Vec<String> = prefixes.into_iter().collect();
        prefixes.sort_unstable();
        prefixes.dedup();
        Self(Some(prefixes.into()))
    }

    /// The scope as bytes, for names that may not be UTF-8 and may have control characters.
    /// Pieces may overlap; `None`: everything.
    pub fn pieces(&self) -> Option<Vec<ScopePiece>> {
        let pieces = |prefix: &String| {
            let prefix = prefix.as_bytes();
            if prefix.last().is_some_and(|last| SEPARATOR_BYTES.contains(last)) {
                return vec![ScopePiece::Beginning(prefix.to_vec())];
            }
            let below =
                SEPARATOR_BYTES.map(|separator| ScopePiece::Beginning([prefix, &[separator]].concat()));
            let exact_name = ScopePiece::Name(prefix.to_vec());
            std::iter::once(exact_name).chain(below).collect()
        };
        let prefixes = self.0.as_ref()?;
        Some(prefixes.iter().flat_map(pieces).collect())
    }

    pub fn covers(&self, resource: &str) -> bool {
        self.covers_bytes(resource.as_bytes())
    }

    /// The same for a name that may not be UTF-8.
    pub fn covers_bytes(&self, resource: &[u8]) -> bool {
        let Some(prefixes) = &self.0 else { return true };
        let separates = |byte: Option<&u8>| byte.is_some_and(|byte| SEPARATORS.contains(&char::from(*byte)));
        prefixes.iter().any(|prefix| {
            resource.strip_prefix(prefix.as_bytes()).is_some_and(|rest| {
                separates(prefix.as_bytes().last()) || rest.is_empty() || separates(rest.first())
            })
        })
    }

    pub fn is_everything(&self) -> bool {
        self.0.is_none()
    }

    /// Covers no name at all.
    pub fn is_nothing(&self) -> bool {
        self.0.as_ref().is_some_and(|prefixes| prefixes.is_empty())
    }

    /// The scope as disjoint sorted ranges, limited to names that begin with `prefix`.
    pub fn ranges(&self, prefix: &str) -> Vec<NameRange> {
        let prefix_range = NameRange::starting_with(prefix);
        let Some(prefixes) = &self.0 else {
            return vec![prefix_range];
        };
        let mut ranges: Vec<NameRange> = prefixes
            .iter()
            .flat_map(|prefix| segment_ranges(prefix))
            .filter_map(|range| range.and(&prefix_range))
            .collect();
        ranges.sort();
        let mut disjoint: Vec<NameRange> = Vec::new();
        for range in ranges {
            match disjoint.last_mut() {
                Some(last) if last.to.as_ref().is_none_or(|to| range.from < *to) => {
                    last.to = match (last.to.take(), range.to) {
                        (Some(one), Some(two)) => Some(one.max(two)),
                        _ => None,
                    };
                }
                _ => disjoint.push(range),
            }
        }
        disjoint
    }
}

const SEPARATORS: [char; 2] = [':', '/'];
const SEPARATOR_BYTES: [u8; 2] = [b':', b'/'];

fn segment_ranges(prefix: &str) -> Vec<NameRange> {
    if prefix.ends_with(SEPARATORS) {
        return vec![NameRange::starting_with(prefix)];
    }
    let exact_name = NameRange {
        from: prefix.to_owned(),
        // Names have no control characters, so nothing lies between a name and the name with
        // U+0001.
        to: Some(format!("{prefix}\u{1}")),
    };
    let below = SEPARATORS.map(|separator| NameRange::starting_with(&format!("{prefix}{separator}")));
    std::iter::once(exact_name).chain(below).collect()
}

/// The smallest text greater than all texts that begin with `prefix`. UTF-8 sorts like code
/// points.
fn successor(prefix: &str) -> Option<String> {
    let mut chars: Vec<char> = prefix.chars().collect();
    while let Some(last) = chars.pop() {
        let next = match last {
            '\u{D7FF}' => Some('\u{E000}'),
            _ => char::from_u32(u32::from(last) + 1),
        };
        if let Some(next) = next {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}
