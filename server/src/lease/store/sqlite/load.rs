//! Loads what a batch needs, inside its transaction.

use std::collections::HashMap;

use domain::lease::{Lease, LeaseId, StoreTime};
use domain::names::Resource;
use sqlx::SqliteConnection;

use super::sql;
use crate::lease::batch::Loaded;
use crate::lease::operation::Operation;
use crate::lease::store::StoreError;
use crate::lease::store::asked::Asked;
use crate::lease::store::rows::{KeyRowWire, LeaseRow, StateRow, from_json, to_json};

pub(super) async fn load(
    connection: &mut SqliteConnection,
    operations: &[Operation],
    now: StoreTime,
) -> Result<Loaded, StoreError> {
    let asked = Asked::of(operations);
    let mut loaded = Loaded {
        now,
        ..Loaded::default()
    };
    let mut names: Vec<String> = asked.resources.iter().map(Resource::text).collect();
    if !asked.leases.is_empty() {
        let found = leases(connection, &asked.leases).await?;
        for (resource, lease) in found {
            names.push(resource.text());
            loaded.homes.insert(lease.id, resource);
            loaded.old_leases.insert(lease.id, lease);
        }
    }
    if !asked.keys.is_empty() {
        let text: String = sqlx::query_scalar(sql::KEYS_OF)
            .bind(to_json(&asked.keys)?)
            .fetch_one(&mut *connection)
            .await?;
        let rows: Vec<KeyRowWire> = from_json(&text)?;
        loaded.keys = rows.into_iter().map(KeyRowWire::into_key).collect();
        let ids: Vec<LeaseId> = loaded.keys.values().filter_map(|row| row.lease).collect();
        let found = leases(connection, &ids).await?;
        loaded
            .old_leases
            .extend(found.into_iter().map(|(_, lease)| (lease.id, lease)));
    }
    if names.is_empty() {
        return Ok(loaded);
    }
    names.sort_unstable();
    names.dedup();
    let (floor, text): (i64, String) = sqlx::query_as(sql::STATES)
        .bind(to_json(&names)?)
        .fetch_one(&mut *connection)
        .await?;
    loaded.floor = floor.unsigned_abs();
    let rows: Vec<StateRow> = from_json(&text)?;
    loaded.resources = rows
        .into_iter()
        .map(StateRow::into_held)
        .collect::<Result<HashMap<_, _>, _>>()?;
    Ok(loaded)
}

async fn leases(
    connection: &mut SqliteConnection,
    ids: &[LeaseId],
) -> Result<Vec<(Resource, Lease)>, StoreError> {
    let text: String = sqlx::query_scalar(sql::LEASES)
        .bind(to_json(ids)?)
        .fetch_one(connection)
        .await?;
    let rows: Vec<LeaseRow> = from_json(&text)?;
    rows.into_iter().map(LeaseRow::into_lease).collect()
}
