//! Fencing rejections: writes rejected because a newer token had been granted, counted per
//! owner and reporter.
//!
//! Pure: rows in, counts out. The server reads the rows.

mod page;
mod query;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::charts::scale::TimeScale;
use crate::names::OwnerId;
use crate::token::FencingToken;

pub use page::{FencingInput, FencingPage, LatestGrant};
pub use query::RejectionFilter;

/// One rejected write. Times are milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejection {
    pub id: i64,
    pub at: i64,
    /// Text form. Always a resource of the built-in service, the only one with fencing
    /// rejections.
    pub resource: String,
    /// Token of the write.
    pub token: FencingToken,
    /// The newest token at that time, if reported.
    pub current: Option<FencingToken>,
    pub owner: Option<OwnerId>,
    /// Reporter: the resource that rejected the write or asked for a check.
    pub source: String,
    /// `stale`, `never_issued` or `reported`.
    pub reason: String,
}

/// An owner that wrote with stale tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StaleOwner {
    /// `None`: the owner of the tokens was not reported.
    pub owner: Option<OwnerId>,
    pub writes: u64,
    /// Number of different locks.
    pub locks: u64,
    pub last_at: i64,
    /// Resource of the last rejection.
    pub resource: String,
}

/// A reporter and the time of its last report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reporter {
    pub source: String,
    pub writes: u64,
    pub locks: u64,
    pub last_at: i64,
}

/// Owners with the most rejected writes first; at equal counts the latest first.
pub fn stale_owners(rejections: &[Rejection]) -> Vec<StaleOwner> {
    let mut groups: HashMap<Option<&OwnerId>, Vec<&Rejection>> = HashMap::new();
    for rejection in rejections {
        groups
            .entry(rejection.owner.as_ref())
            .or_default()
            .push(rejection);
    }
    let mut stale: Vec<StaleOwner> = groups
        .into_iter()
        .filter_map(|(owner, rows)| {
            let last = rows.iter().max_by_key(|row| row.at)?;
            Some(StaleOwner {
                owner: owner.cloned(),
                writes: rows.len() as u64,
                locks: count_distinct(rows.iter().map(|row| row.resource.as_str())),
                last_at: last.at,
                resource: last.resource.clone(),
            })
        })
        .collect();
    stale.sort_by(|one, other| {
        let key = |it: &StaleOwner| (it.writes, it.last_at);
        key(other)
            .cmp(&key(one))
            .then_with(|| one.owner.cmp(&other.owner))
    });
    stale
}

/// Latest report first.
pub fn reporters(rejections: &[Rejection]) -> Vec<Reporter> {
    let mut groups: HashMap<&str, Vec<&Rejection>> = HashMap::new();
    for rejection in rejections {
        groups.entry(&rejection.source).or_default().push(rejection);
    }
    let mut reporters: Vec<Reporter> = groups
        .into_iter()
        .map(|(source, rows)| Reporter {
            source: source.to_owned(),
            writes: rows.len() as u64,
            locks: count_distinct(rows.iter().map(|row| row.resource.as_str())),
            last_at: rows.iter().map(|row| row.at).max().unwrap_or(i64::MIN),
        })
        .collect();
    reporters.sort_by(|one, other| {
        let by_time = other.last_at.cmp(&one.last_at);
        by_time.then_with(|| one.source.cmp(&other.source))
    });
    reporters
}

/// Rejections per equal part of the range.
pub fn over_time(rejections: &[Rejection], scale: TimeScale, parts: usize) -> Vec<u64> {
    let mut counts = vec![0; parts];
    for rejection in rejections.iter().filter(|row| scale.contains(row.at)) {
        if let Some(count) = counts.get_mut(scale.part(rejection.at, parts)) {
            *count += 1;
        }
    }
    counts
}

fn count_distinct<'a>(names: impl Iterator<Item = &'a str>) -> u64 {
    names.collect::<std::collections::HashSet<_>>().len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: i64, owner: &str, resource: &str, source: &str) -> Rejection {
        Rejection {
            id,
            at: id * 1_000,
            resource: resource.to_owned(),
            token: FencingToken::new(1),
            current: None,
            owner: (!owner.is_empty()).then(|| OwnerId::new(owner)),
            source: source.to_owned(),
            reason: "stale".to_owned(),
        }
    }

    #[test]
    fn owners_with_most_rejections_come_first() {
        // Three owners, one of them unreported; two sources; four parts of a range that
        // excludes the last row.
        let rows = [
            row(1, "a", "x", "db"),
            row(2, "b", "x", "db"),
            row(3, "a", "y", "api"),
            row(4, "", "x", "db"),
            row(9, "a", "x", "db"),
        ];
        let stale = stale_owners(&rows);
        let counted: Vec<(Option<&str>, u64, u64, i64)> = stale
            .iter()
            .map(|it| {
                (
                    it.owner.as_ref().map(OwnerId::as_str),
                    it.writes,
                    it.locks,
                    it.last_at,
                )
            })
            .collect();
        assert_eq!(
            counted,
            [
                (Some("a"), 3, 2, 9_000),
                (None, 1, 1, 4_000),
                (Some("b"), 1, 1, 2_000)
            ]
        );
        let counted: Vec<(String, u64)> = reporters(&rows)
            .into_iter()
            .map(|it| (it.source, it.writes))
            .collect();
        assert_eq!(counted, [("db".to_owned(), 4), ("api".to_owned(), 1)]);
        assert_eq!(over_time(&rows, TimeScale::new(0, 8_000), 4), [1, 2, 1, 0]);
    }
}
