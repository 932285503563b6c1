//! Loads what a batch needs: rows are created, locked in order, and only then read, with the clock.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use domain::lease::{Lease, LeaseId, StoreTime};
use domain::names::Resource;
use domain::observation::Tick;
use sqlx::postgres::PgConnection;

use super::sql;
use crate::clock::Clock;
use crate::lease::batch::{KeyRow, Loaded};
use crate::lease::operation::{KeyName, Operation};
use crate::lease::store::StoreError;
use crate::lease::store::asked::Asked;
use crate::lease::store::rows::{KeyRowWire, LeaseRow, StateRow, from_json};

pub(super) async fn load(
    connection: &mut PgConnection,
    operations: &[Operation],
    clock: &Clock,
) -> Result<(Tick, Loaded), StoreError> {
    let asked = Asked::of(operations);
    let mut loaded = Loaded::default();
    let mut names: Vec<String> = asked.resources.iter().map(Resource::text).collect();
    names.sort_unstable();
    names.dedup();
    let query = sqlx::query_as(sql::FIND_AND_LOCK)
        .bind(&names)
        .bind(texts(&asked.leases));
    let (wanted, made, locked, homes): (i64, i64, i64, String) = query.fetch_one(&mut *connection).await?;
    let homes: Vec<(LeaseId, String)> = from_json(&homes)?;
    for (id, resource) in homes {
        loaded.homes.insert(id, Resource::from(resource.as_str()));
        names.push(resource);
    }
    if made + locked < wanted {
        // Made by another replica after our statement had begun to look.
        sqlx::query(sql::LOCK)
            .bind(&names)
            .execute(&mut *connection)
            .await?;
    }
    let mut wanted = asked.leases;
    if !asked.keys.is_empty() {
        loaded.keys = keys(connection, &asked.keys).await?;
        wanted.extend(loaded.keys.values().filter_map(|row| row.lease));
    }
    let read_at = clock.tick();
    let (now, floor, text): (i64, i64, String) = sqlx::query_as(sql::STATES)
        .bind(&names)
        .fetch_one(&mut *connection)
        .await?;
    loaded.now = StoreTime::from_ms(now);
    loaded.floor = floor.unsigned_abs();
    let rows: Vec<StateRow> = from_json(&text)?;
    loaded.resources = rows
        .into_iter()
        .map(StateRow::into_held)
        .collect::<Result<HashMap<_, _>, _>>()?;
    loaded.old_leases = older(connection, &loaded, wanted).await?;
    Ok((read_at, loaded))
}

async fn keys(
    connection: &mut PgConnection,
    asked: &[[Arc<str>; 2]],
) -> Result<HashMap<KeyName, KeyRow>, StoreError> {
    let [issuers, keys] =
        [0, 1].map(|part| asked.iter().map(|key| key[part].to_string()).collect::<Vec<_>>());
    let query = sqlx::query_scalar(sql::KEYS_OF).bind(issuers).bind(keys);
    let text: String = query.fetch_one(connection).await?;
    let rows: Vec<KeyRowWire> = from_json(&text)?;
    Ok(rows.into_iter().map(KeyRowWire::into_key).collect())
}

/// Those that are not their resource's newest, read under its lock like everything else.
async fn older(
    connection: &mut PgConnection,
    loaded: &Loaded,
    wanted: Vec<LeaseId>,
) -> Result<HashMap<LeaseId, Lease>, StoreError> {
    let newest = loaded
        .resources
        .values()
        .filter_map(|held| held.state.lease.as_ref());
    let newest: HashSet<LeaseId> = newest.map(|lease| lease.id).collect();
    let older: Vec<LeaseId> = wanted.into_iter().filter(|id| !newest.contains(id)).collect();
    if older.is_empty() {
        return Ok(HashMap::new());
    }
    let query = sqlx::query_as(sql::LEASES).bind(texts(&older));
    let (_, text): (i64, String) = query.fetch_one(connection).await?;
    let rows: Vec<LeaseRow> = from_json(&text)?;
    rows.into_iter()
        .map(|row| row.into_lease().map(|(_, lease)| (lease.id, lease)))
        .collect()
}

pub(super) fn texts(ids: &[LeaseId]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}
