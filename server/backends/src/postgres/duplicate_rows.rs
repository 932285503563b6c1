//! Rows of one lease table that share a resource: possible without a unique index on it.
//!
//! Expired rows next to a live one are history, not holders. Two live rows of different owners
//! are two holders of one exclusive lock.

use std::collections::{HashMap, HashSet};

use domain::escape::visible;
use domain::names::{OwnerId, Resource};
use domain::observation::{Lifetime, ObservedCondition, ObservedLock};
use sqlx::{AssertSqlSafe, Row};

use super::checked_table::CheckedTable;
use super::connection::Link;
use super::error::StatementError;

/// Owners that a reason names.
const OWNERS_NAMED: usize = 3;

/// Resources with several rows; `None` if a unique index forbids them or the server refuses the
/// count.
pub(super) async fn names(
    link: &mut Link<'_>,
    checked: &CheckedTable,
) -> Result<HashSet<Resource>, StatementError> {
    let Some(select) = checked.repeated() else {
        return Ok(HashSet::new());
    };
    let rows = match link.rows(sqlx::query(AssertSqlSafe(select))).await {
        Ok(rows) => rows,
        Err(StatementError::Refused(_)) => return Ok(HashSet::new()),
        Err(error) => return Err(error),
    };
    let names = rows.iter().filter_map(|row| row.try_get::<&str, _>(0).ok());
    Ok(names.map(Resource::from).collect())
}

/// One lock per resource, with its owners: of several rows the newest that has not expired.
pub(super) fn fold(rows: Vec<ObservedLock>) -> Vec<(ObservedLock, Vec<OwnerId>)> {
    let mut by_name: HashMap<Resource, Vec<ObservedLock>> = HashMap::with_capacity(rows.len());
    for row in rows {
        by_name.entry(row.resource.clone()).or_default().push(row);
    }
    by_name.into_values().filter_map(fold_one).collect()
}

fn fold_one(mut rows: Vec<ObservedLock>) -> Option<(ObservedLock, Vec<OwnerId>)> {
    if rows.iter().any(is_live) {
        rows.retain(is_live);
    }
    // Deterministic for any order of the rows.
    rows.sort_by_key(|row| std::cmp::Reverse(newness(row)));
    let mut owners: Vec<OwnerId> = Vec::new();
    for owner in rows.iter().filter_map(|row| row.owner.known()) {
        if !owners.contains(owner) {
            owners.push(owner.clone());
        }
    }
    let why = (owners.len() > 1 && rows.iter().all(is_live)).then(|| reason(&rows));
    let mut first = rows.into_iter().next()?;
    if let Some(why) = why {
        first.owner_count = u32::try_from(owners.len()).unwrap_or(u32::MAX);
        first.condition = Some(ObservedCondition::DualOwner { why: why.into() });
    } else {
        owners.truncate(1);
    }
    Some((first, owners))
}

fn is_live(row: &ObservedLock) -> bool {
    !matches!(row.lifetime, Lifetime::Leased { remaining_ms, .. } if remaining_ms <= 0)
}

type Newness = (Option<u64>, Option<i64>, Option<String>);

fn newness(row: &ObservedLock) -> Newness {
    (
        row.fencing_token.known().map(|token| token.number()),
        row.acquired_at.known().map(|at| at.timestamp_micros()),
        row.generation
            .known()
            .map(|generation| generation.as_str().to_owned()),
    )
}

fn reason(rows: &[ObservedLock]) -> String {
    let owner_names = rows.iter().take(OWNERS_NAMED).map(|row| {
        let owner = row.owner.known().map_or("an unknown owner".into(), |owner| {
            visible(owner.as_str()).into_owned()
        });
        match row.fencing_token.known() {
            Some(token) => format!("{owner} with token {token}"),
            None => owner,
        }
    });
    let owner_names = owner_names.collect::<Vec<String>>().join(", ");
    let ellipsis = if rows.len() > OWNERS_NAMED { ", …" } else { "" };
    format!(
        "The table has {} rows for it that have not expired: {owner_names}{ellipsis}",
        rows.len()
    )
}
