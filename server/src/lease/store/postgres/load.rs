//! Looks at what a batch needs, in one statement, and remembers by what each resource is known again when it is written.

use std::collections::{HashMap, HashSet};

use domain::lease::{Lease, LeaseId, ResourceState, StoreTime};
use domain::names::Resource;
use domain::observation::Tick;
use sqlx::postgres::PgConnection;

use super::sql;
use crate::clock::Clock;
use crate::lease::batch::{ByLease, Held, KeyRow, Loaded};
use crate::lease::operation::KeyName;
use crate::lease::store::StoreError;
use crate::lease::store::asked::Asked;
use crate::lease::store::rows::{KeyRowWire, LeaseRow, StateRow, from_json};

/// What a batch is decided on.
pub(super) struct Looked {
    pub(super) read_at: Tick,
    pub(super) loaded: Loaded,
    pub(super) seen: Seen,
}

/// Columns: how each resource was found. Two moments at which a resource has the same of all of these are one state.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) floor: i64,
    pub(super) resource: Vec<String>,
    pub(super) token: Vec<i64>,
    pub(super) lease_id: Vec<Option<String>>,
    pub(super) locked_until: Vec<Option<i64>>,
    /// Of the lease, if there is one without an ending: what has ended stays as it is.
    pub(super) renewals: Vec<Option<i64>>,
    pub(super) expires_at: Vec<Option<i64>>,
    pub(super) waiters: Vec<i64>,
    pub(super) last_waiter: Vec<Option<i64>>,
    /// Those with rows beside them that a state does not tell of: a line, a lease that is forgotten.
    pub(super) more: HashSet<Resource>,
}

/// A state, and beside it: its lease's id, renewals, end and ending as its row and its lease's row have them, how many stand in
/// line, of whatever replica, and who came last.
type SeenRow = (
    StateRow,
    Option<String>,
    Option<i64>,
    Option<i64>,
    Option<i64>,
    i64,
    Option<i64>,
);

impl Seen {
    fn note(&mut self, row: SeenRow) -> Result<(Resource, Held), StoreError> {
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

    /// One without a line.
    pub(super) fn note_state(&mut self, resource: String, state: &ResourceState) {
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

/// What a batch asks for, as parameters.
pub(super) struct Wanted {
    names: Vec<String>,
    leases: Vec<String>,
    issuers: Vec<String>,
    keys: Vec<String>,
}

impl Wanted {
    pub(super) fn of(asked: &Asked) -> Self {
        let mut names: Vec<String> = asked.resources.iter().map(Resource::text).collect();
        names.sort_unstable();
        names.dedup();
        let part = |part: usize| asked.keys.iter().map(|key| key[part].to_string()).collect();
        Self {
            names,
            leases: texts(&asked.leases),
            issuers: part(0),
            keys: part(1),
        }
    }

    /// Makes the rows that there are not and locks all of them. Waits for whoever is at one of them.
    ///
    /// # Errors
    /// `Conflict` when others make rows as fast as we look for them.
    pub(super) async fn lock(&self, connection: &mut PgConnection) -> Result<(), StoreError> {
        for _ in 0..2 {
            let query = sqlx::query_scalar(sql::LOCK).bind(&self.names).bind(&self.leases);
            if query.fetch_one(&mut *connection).await? {
                return Ok(());
            }
        }
        Err(StoreError::Conflict)
    }

    pub(super) async fn look(
        &self,
        connection: &mut PgConnection,
        clock: &Clock,
    ) -> Result<Looked, StoreError> {
        let read_at = clock.tick();
        let (now, floor, states, asked, older, keys): (i64, i64, String, String, String, String) =
            sqlx::query_as(sql::LOOK)
                .bind(&self.names)
                .bind(&self.leases)
                .bind(&self.issuers)
                .bind(&self.keys)
                .fetch_one(connection)
                .await?;
        let mut seen = Seen {
            floor,
            ..Seen::default()
        };
        let states: Vec<SeenRow> = from_json(&states)?;
        let resources = states
            .into_iter()
            .map(|row| seen.note(row))
            .collect::<Result<HashMap<_, _>, _>>()?;
        for name in &self.names {
            if !resources.contains_key(&Resource::from(name.as_str())) {
                seen.note_state(name.clone(), &ResourceState::default());
            }
        }
        let loaded = Loaded {
            now: StoreTime::from_ms(now),
            floor: floor.unsigned_abs(),
            resources,
            homes: homes(&asked)?,
            old_leases: leases(&older)?,
            keys: bound(&keys)?,
        };
        Ok(Looked {
            read_at,
            loaded,
            seen,
        })
    }
}

fn homes(text: &str) -> Result<ByLease<Resource>, StoreError> {
    let rows: Vec<(LeaseId, String)> = from_json(text)?;
    let home = |(id, resource): (LeaseId, String)| (id, Resource::from(resource.as_str()));
    Ok(rows.into_iter().map(home).collect())
}

fn leases(text: &str) -> Result<ByLease<Lease>, StoreError> {
    let rows: Vec<LeaseRow> = from_json(text)?;
    rows.into_iter()
        .map(|row| row.into_lease().map(|(_, lease)| (lease.id, lease)))
        .collect()
}

fn bound(text: &str) -> Result<HashMap<KeyName, KeyRow>, StoreError> {
    let rows: Vec<KeyRowWire> = from_json(text)?;
    Ok(rows.into_iter().map(KeyRowWire::into_key).collect())
}

pub(super) fn texts(ids: &[LeaseId]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}
