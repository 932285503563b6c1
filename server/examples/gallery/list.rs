//! Filters, order and pages over the made-up rows. A cursor is simply the number of rows before.

use std::cmp::Ordering;

use app::console::ConsoleError;
use domain::lock::Lock;
use domain::query::{InventoryPage, InventoryQuery, QueryError, SortKey};
use domain::state::StateCounts;

use crate::canned::count;

pub(crate) fn page(rows: &[Lock], query: &InventoryQuery) -> Result<InventoryPage, ConsoleError> {
    let start = match &query.cursor {
        None => 0,
        Some(cursor) => cursor.parse::<usize>().map_err(|_| {
            ConsoleError::BadQuery(QueryError::new(
                "cursor",
                "is not a cursor that this console gave",
            ))
        })?,
    };
    let mut states = StateCounts::default();
    let mut found: Vec<&Lock> = rows.iter().filter(|lock| fits(lock, query)).collect();
    found.iter().for_each(|lock| states.add(lock.state, 1));
    found.retain(|lock| query.states.is_empty() || query.states.contains(&lock.state));
    found.sort_by(|a, b| order(a, b, query));
    let limit = usize::try_from(query.limit).unwrap_or(100);
    let end = (start + limit).min(found.len());
    Ok(InventoryPage {
        locks: found
            .get(start..end)
            .unwrap_or_default()
            .iter()
            .map(|lock| (*lock).clone())
            .collect(),
        next_cursor: (end < found.len()).then(|| end.to_string()),
        total: count(found.len()),
        complete: true,
        backends: Vec::new(),
        states,
        held_total: 0,
        revision: 0,
    })
}

fn fits(lock: &Lock, query: &InventoryQuery) -> bool {
    let resource = lock.id.resource.text();
    let owner = lock.owner_id.known().map_or("", |owner| owner.as_str());
    (query.backends.is_empty() || query.backends.contains(&lock.id.backend))
        && resource.starts_with(&query.prefix)
        && (query.owners.is_empty() || query.owners.iter().any(|wanted| wanted == owner))
        && query.safety.is_none_or(|class| class == lock.safety.class)
        && (query.q.is_empty() || resource.contains(&query.q) || owner.contains(&query.q))
}

fn order(a: &Lock, b: &Lock, query: &InventoryQuery) -> Ordering {
    let by_name = a.id.resource.cmp(&b.id.resource);
    let by_key = match query.sort.key {
        SortKey::Resource => by_name,
        SortKey::State => b.state.cmp(&a.state),
        SortKey::Held => {
            return nulls_last(a.held_ms.known(), b.held_ms.known(), query.sort.descending).then(by_name);
        }
        SortKey::Remaining => {
            return nulls_last(
                a.remaining_ms.known(),
                b.remaining_ms.known(),
                query.sort.descending,
            )
            .then(by_name);
        }
        SortKey::Waiters => {
            return nulls_last(
                a.waiter_count.known(),
                b.waiter_count.known(),
                query.sort.descending,
            )
            .then(by_name);
        }
    };
    let by_key = if query.sort.descending {
        by_key.reverse()
    } else {
        by_key
    };
    by_key.then(by_name)
}

fn nulls_last<T: Ord>(a: Option<&T>, b: Option<&T>, descending: bool) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) if descending => b.cmp(a),
        (Some(a), Some(b)) => a.cmp(b),
        (a, b) => b.is_some().cmp(&a.is_some()),
    }
}
