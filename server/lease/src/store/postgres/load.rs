//! Reads all rows that a batch needs in one statement, with the values by which `save_lease_batch`
//! detects changes.

use std::collections::{HashMap, HashSet};

use domain::lease::{Lease, LeaseId, ResourceState, StoreTime};
use domain::names::Resource;
use domain::tick::Tick;
use sqlx::postgres::PgConnection;

use super::sql;
use crate::batch::{ByLease, HeldLease, KeyRow, Loaded};
use crate::operation::KeyName;
use crate::store::StoreError;
use crate::store::batch_request::BatchRequest;
use crate::store::rows::{KeyRowDto, LeaseRow, StateRow, from_json};
use runtime::clock::Clock;

/// Rows that a batch is based on.
pub(super) struct LoadedRows {
    pub(super) read_at: Tick,
    pub(super) loaded: Loaded,
    pub(super) seen: LoadedState,
}

/// Loaded values as columns. If a resource has the same values at two times, its state is
/// unchanged.
#[derive(Default)]
pub(super) struct LoadedState {
    pub(super) floor: i64,
    /// The keys of the batch were not read: a key that is bound is a conflict.
    pub(super) are_keys_new: bool,
    pub(super) resource: Vec<String>,
    pub(super) token: Vec<i64>,
    pub(super) lease_id: Vec<Option<String>>,
    pub(super) locked_until: Vec<Option<i64>>,
    /// Renewals of a lease without an ending; an ended lease never changes.
    pub(super) renewals: Vec<Option<i64>>,
    pub(super) expires_at: Vec<Option<i64>>,
    pub(super) waiters: Vec<i64>,
    pub(super) last_waiter: Vec<Option<i64>>,
    /// Resources with rows that the state does not include: waiters, or a deleted lease.
    pub(super) more: HashSet<Resource>,
}

/// A state, then the lease id, renewals, expiry and ending as stored, the number of waiters of
/// all replicas, and the sequence number of the last one.
type SeenRow = (
    StateRow,
    Option<String>,
    Option<i64>,
    Option<i64>,
    Option<i64>,
    i64,
    Option<i64>,
);

impl LoadedState {
    fn add_row(&mut self, row: SeenRow) -> Result<(Resource, HeldLease), StoreError> {
        let (state, lease_id, renewals, expires_at, ended_at, waiters, last_waiter) = row;
        let (resource, held) = state.into_held()?;
        if waiters > 0 || (lease_id.is_some() && held.state.lease.is_none()) {
            self.more.insert(resource.clone());
        }
        self.resource.push(resource.text());
        self.token.push(held.state.last_token.number().cast_signed());
        self.lease_id.push(lease_id);
        self.locked_until.push(held.state.locked_until.map(StoreTime::ms));
        self.renewals.push(renewals.filter(|_| ended_at.is_none()));
        self.expires_at.push(expires_at.filter(|_| ended_at.is_none()));
        self.waiters.push(waiters);
        self.last_waiter.push(last_waiter);
        Ok((resource, held))
    }

    /// Adds a resource without waiters.
    pub(super) fn add_state(&mut self, resource: String, state: &ResourceState) {
        let lease = state.lease.as_ref();
        self.resource.push(resource);
        self.token.push(state.last_token.number().cast_signed());
        self.lease_id.push(lease.map(|lease| lease.id.to_string()));
        self.locked_until.push(state.locked_until.map(StoreTime::ms));
        let unended = lease.filter(|lease| lease.ending.is_none());
        self.renewals.push(unended.map(|lease| lease.renewals));
        self.expires_at.push(unended.map(|lease| lease.expires_at.ms()));
        self.waiters.push(0);
        self.last_waiter.push(None);
    }
}

/// Parameters of the load statement.
pub(super) struct LoadRequest {
    names: Vec<String>,
    leases: Vec<String>,
    issuers: Vec<String>,
    keys: Vec<String>,
}

impl LoadRequest {
    pub(super) fn from_request(requested: &BatchRequest) -> Self {
        let mut names: Vec<String> = requested.resources.iter().map(Resource::text).collect();
        names.sort_unstable();
        names.dedup();
        let part = |part: usize| requested.keys.iter().map(|key| key[part].to_string()).collect();
        Self {
            names,
            leases: texts(&requested.leases),
            issuers: part(0),
            keys: part(1),
        }
    }

    /// Inserts missing rows and locks all of them. Waits for sessions that hold one of the
    /// locks.
    ///
    /// # Errors
    /// `Conflict` when other replicas keep inserting the same rows.
    pub(super) async fn lock(&self, connection: &mut PgConnection) -> Result<(), StoreError> {
        for _ in 0..2 {
            let query = sqlx::query_scalar(sql::LOCK).bind(&self.names).bind(&self.leases);
            if query.fetch_one(&mut *connection).await? {
                return Ok(());
            }
        }
        Err(StoreError::Conflict)
    }

    pub(super) async fn load(
        &self,
        connection: &mut PgConnection,
        clock: &Clock,
    ) -> Result<LoadedRows, StoreError> {
        let read_at = clock.tick();
        let (now, floor, states, requested, older, keys): (i64, i64, String, String, String, String) =
            sqlx::query_as(sql::LOAD)
                .bind(&self.names)
                .bind(&self.leases)
                .bind(&self.issuers)
                .bind(&self.keys)
                .fetch_one(connection)
                .await?;
        let mut seen = LoadedState {
            floor,
            ..LoadedState::default()
        };
        let states: Vec<SeenRow> = from_json(&states)?;
        let resources = states
            .into_iter()
            .map(|row| seen.add_row(row))
            .collect::<Result<HashMap<_, _>, _>>()?;
        for name in &self.names {
            if !resources.contains_key(&Resource::from(name.as_str())) {
                seen.add_state(name.clone(), &ResourceState::default());
            }
        }
        let loaded = Loaded {
            now: StoreTime::from_ms(now),
            floor: floor.unsigned_abs(),
            margin_ms: 0,
            resources,
            lease_resources: lease_resources(&requested)?,
            old_leases: leases(&older)?,
            keys: bound(&keys)?,
        };
        Ok(LoadedRows {
            read_at,
            loaded,
            seen,
        })
    }
}

fn lease_resources(text: &str) -> Result<ByLease<Resource>, StoreError> {
    let rows: Vec<(LeaseId, String)> = from_json(text)?;
    let entry = |(id, resource): (LeaseId, String)| (id, Resource::from(resource.as_str()));
    Ok(rows.into_iter().map(entry).collect())
}

fn leases(text: &str) -> Result<ByLease<Lease>, StoreError> {
    let rows: Vec<LeaseRow> = from_json(text)?;
    rows.into_iter()
        .map(|row| row.into_lease().map(|(_, lease)| (lease.id, lease)))
        .collect()
}

fn bound(text: &str) -> Result<HashMap<KeyName, KeyRow>, StoreError> {
    let rows: Vec<KeyRowDto> = from_json(text)?;
    Ok(rows.into_iter().map(KeyRowDto::into_key).collect())
}

pub(super) fn texts(ids: &[LeaseId]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}
