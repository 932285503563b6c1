//! Reads what a batch needs and nobody remembers, in the transaction that will write it.

use domain::lease::{LeaseId, StoreTime};
use domain::names::Resource;
use sqlx::SqliteConnection;

use super::known::File;
use super::sql;
use crate::lease::batch::Loaded;
use crate::lease::store::StoreError;
use crate::lease::store::asked::Asked;
use crate::lease::store::rows::{KeyRowWire, LeaseRow, StateRow, from_json, to_json};

/// Begins the transaction and reads, in one message to the driver's thread.
pub(super) async fn begin_and_load(
    connection: &mut SqliteConnection,
    mut missing: Asked,
    loaded: &mut Loaded,
) -> Result<File, StoreError> {
    missing.resources.sort_unstable();
    missing.resources.dedup();
    let names: Vec<String> = missing.resources.iter().map(Resource::text).collect();
    let query = sqlx::query_as(sql::BEGIN_AND_LOAD)
        .bind(to_json(&names)?)
        .bind(to_json(&missing.leases)?)
        .bind(to_json(&missing.keys)?);
    let row: (i64, i64, String, String, String, String) = query.fetch_one(connection).await?;
    let (data_version, floor, homes, states, older, keys) = row;
    let homes: Vec<(LeaseId, String)> = from_json(&homes)?;
    let home = |(lease, name): (LeaseId, String)| (lease, Resource::from(name.as_str()));
    loaded.homes.extend(homes.into_iter().map(home));
    let states: Vec<StateRow> = from_json(&states)?;
    for state in states {
        let (resource, held) = state.into_held()?;
        loaded.resources.entry(resource).or_insert(held);
    }
    let older: Vec<LeaseRow> = from_json(&older)?;
    for row in older {
        let (_, lease) = row.into_lease()?;
        loaded.old_leases.insert(lease.id, lease);
    }
    let keys: Vec<KeyRowWire> = from_json(&keys)?;
    loaded.keys = keys.into_iter().map(KeyRowWire::into_key).collect();
    loaded.floor = floor.unsigned_abs();
    loaded.now = StoreTime::default();
    Ok(File {
        data_version,
        floor: loaded.floor,
    })
}
