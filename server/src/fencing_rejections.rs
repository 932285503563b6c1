//! Fencing rejections for pages: a time range, with owners from the history of grants.
//!
//! The lease service records them; statistics are in `domain::fencing_rejections`.

use std::collections::HashMap;

use domain::charts::scale::TimeScale;
use domain::fencing_rejections::Rejection;
use domain::history::HistoryEvent;
use domain::lease::{Scope, StoreTime};
use domain::names::{BackendName, OwnerId};
use domain::token::FencingToken;

use lease::{FoundRejections, LeaseError, LeaseService, RejectionQuery, RejectionRow};

/// Rows read per range, the newest.
pub const ROWS_MAX: u32 = 20_000;

/// Rejections of a range.
pub struct ReadRejections {
    /// Newest first.
    pub rows: Vec<Rejection>,
    /// Whether every shard answered: otherwise those of one or more are missing.
    pub is_complete: bool,
}

/// Rejections of names in scope.
///
/// # Errors
/// The lease store does not answer.
pub async fn read(
    leases: &LeaseService,
    scale: TimeScale,
    scope: &Scope,
) -> Result<ReadRejections, LeaseError> {
    let times = (
        StoreTime::from_ms(scale.from()),
        StoreTime::from_ms(scale.until()),
    );
    let found = newest(leases, times, scope, ROWS_MAX).await?;
    Ok(ReadRejections {
        rows: found.rows.into_iter().map(rejection).collect(),
        is_complete: found.is_complete,
    })
}

/// Whether any write to a name in scope was ever rejected.
///
/// # Errors
/// The lease store does not answer.
pub async fn is_used(leases: &LeaseService, scope: &Scope) -> Result<bool, LeaseError> {
    let ever = (StoreTime::from_ms(i64::MIN), StoreTime::from_ms(i64::MAX));
    Ok(!newest(leases, ever, scope, 1).await?.rows.is_empty())
}

/// The scope is part of the query, so that other rows do not use up its limit.
async fn newest(
    leases: &LeaseService,
    (from, until): (StoreTime, StoreTime),
    scope: &Scope,
    most: u32,
) -> Result<FoundRejections, LeaseError> {
    let ranges = match scope.is_everything() {
        true => vec![None],
        false => scope.ranges("").into_iter().map(Some).collect(),
    };
    let (mut rows, mut is_complete) = (Vec::new(), true);
    for names in ranges {
        let query = RejectionQuery {
            resource: None,
            names,
            from,
            until,
            most,
        };
        let found = leases.query_rejections(&query).await?;
        rows.extend(found.rows);
        is_complete &= found.is_complete;
    }
    match leases.shards().len() {
        1 => rows.sort_by_key(|row| std::cmp::Reverse(row.id)),
        // Ids of two shards do not compare.
        _ => rows.sort_by_key(|row| std::cmp::Reverse((row.at, row.id))),
    }
    rows.truncate(most as usize);
    Ok(FoundRejections { rows, is_complete })
}

/// Reports may lack the owner of a token: the history of grants has it.
pub fn name_owners(rejections: &mut [Rejection], grants: &[HistoryEvent]) {
    let builtin = BackendName::builtin();
    let granted: HashMap<(String, FencingToken), &OwnerId> = grants
        .iter()
        .filter(|grant| grant.backend == builtin)
        .filter_map(|grant| Some(((grant.resource.text(), grant.token?), grant.owner.as_ref()?)))
        .collect();
    for rejection in rejections.iter_mut().filter(|row| row.owner.is_none()) {
        let key = (rejection.resource.clone(), rejection.token);
        rejection.owner = granted.get(&key).map(|owner| (*owner).clone());
    }
}

fn rejection(row: RejectionRow) -> Rejection {
    let token = |number: i64| FencingToken::new(number.cast_unsigned());
    Rejection {
        id: row.id,
        at: row.at.ms(),
        resource: row.resource,
        token: token(row.token),
        current: row.highest.map(token),
        owner: row.owner.map(OwnerId::new),
        source: row.source,
        reason: row.reason,
    }
}
