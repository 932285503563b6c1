//! Reads the rows of a batch that are not cached, in the transaction that will write it.

use domain::lease::LeaseId;
use domain::names::Resource;
use rusqlite::Connection;

use super::sql;
use crate::batch::Loaded;
use crate::store::StoreError;
use crate::store::batch_request::BatchRequest;
use crate::store::rows::{KeyRowDto, LeaseRow, StateRow, from_json, to_json};

/// Properties of the file at its first read.
#[derive(Clone, Copy)]
pub(super) struct File {
    /// Changes when another connection commits.
    pub(super) data_version: i64,
    pub(super) floor: u64,
}

/// Floor, resources of leases, states, leases that are not the newest of their resource, keys.
type Row = (i64, String, String, String, String);

pub(super) fn load(
    connection: &Connection,
    missing: BatchRequest,
    mut loaded: Loaded,
) -> Result<(File, Loaded), StoreError> {
    let names: Vec<String> = missing.resources.iter().map(Resource::text).collect();
    let params = [
        to_json(&names)?,
        to_json(&missing.leases)?,
        to_json(&missing.keys)?,
    ];
    let mut statement = connection.prepare_cached(sql::LOAD)?;
    let row = statement.query_row(params, |row| <Row>::try_from(row))?;
    let (floor, lease_resources, states, older, keys) = row;
    let lease_resources: Vec<(LeaseId, String)> = from_json(&lease_resources)?;
    let lease_resource = |(lease, name): (LeaseId, String)| (lease, Resource::from(name.as_str()));
    loaded
        .lease_resources
        .extend(lease_resources.into_iter().map(lease_resource));
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
    let keys: Vec<KeyRowDto> = from_json(&keys)?;
    loaded.keys = keys.into_iter().map(KeyRowDto::into_key).collect();
    loaded.floor = floor.unsigned_abs();
    let file = File {
        data_version: data_version(connection)?,
        floor: loaded.floor,
    };
    Ok((file, loaded))
}

/// Changes when another connection commits; our own commits leave it as it is.
pub(super) fn data_version(connection: &Connection) -> Result<i64, StoreError> {
    let mut statement = connection.prepare_cached(sql::DATA_VERSION)?;
    Ok(statement.query_row([], |row| row.get(0))?)
}
