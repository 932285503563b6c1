//! The SQL store that leases are moved from: marked first, so that no server grants from it meanwhile, then read page by
//! page.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use domain::lease::{Lease, ResourceState, StoreTime};
use domain::names::Resource;
use domain::token::FencingToken;
use sqlx::{PgConnection, SqliteConnection};

use super::rows::LeaseRow;
use super::{StoreError, moved, postgres, sqlite};
use crate::error::LeaseOpenError;
use runtime::db::from_row;

/// Resources of one page.
const PAGE: i64 = 1_000;
/// Replicas of a Postgres store count as running for 10 s after their last heartbeat, also after they have stopped.
const REPLICAS_POLLS: u32 = 60;
const REPLICAS_POLL: Duration = Duration::from_millis(200);
const MARK: &str = "UPDATE store_meta SET moved_to = $1";
const META: &str = "SELECT store_id, epoch, token_floor FROM store_meta";
const COUNT: &str = "SELECT count(*) FROM resource_tokens";
const STATES: &str = "SELECT t.resource, t.last_token, t.locked_until, l.lease_id, l.owner_id, l.issuer, l.fencing_token, \
     l.ttl_seconds, l.metadata, l.acquired_at, l.expires_at, l.renewed_at, l.renewals, l.ended_at, l.ended_how, \
     l.revoked_by, l.revoke_reason, l.audit_id FROM resource_tokens t LEFT JOIN leases l ON l.lease_id = t.lease_id \
     WHERE t.resource > $1 ORDER BY t.resource LIMIT $2";

pub(crate) struct MoveSource {
    connection: Connection,
    /// Lock of an SQLite file, which no server may have open.
    _lock: Option<File>,
    pub(crate) store_id: String,
    pub(crate) epoch: i64,
    pub(crate) token_floor: u64,
}

enum Connection {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

macro_rules! on {
    ($connection:expr, $it:ident => $query:expr) => {
        match $connection {
            Connection::Sqlite($it) => $query.await,
            Connection::Postgres($it) => $query.await,
        }
    };
}

from_row! {
    struct StateOfResource {
        resource: String,
        last_token: i64,
        locked_until: Option<i64>,
        lease_id: Option<String>,
        owner_id: Option<String>,
        issuer: Option<String>,
        fencing_token: Option<i64>,
        ttl_seconds: Option<i64>,
        metadata: Option<String>,
        acquired_at: Option<i64>,
        expires_at: Option<i64>,
        renewed_at: Option<i64>,
        renewals: Option<i64>,
        ended_at: Option<i64>,
        ended_how: Option<String>,
        revoked_by: Option<String>,
        revoke_reason: Option<String>,
        audit_id: Option<String>,
    }
}

impl MoveSource {
    /// Takes the lock of the file, and checks what start checks.
    ///
    /// # Errors
    /// See [`LeaseOpenError`].
    pub(crate) async fn open_sqlite(path: &Path) -> Result<Self, LeaseOpenError> {
        let (connection, lock) = sqlite::open_to_move(path).await?;
        Self::new(Connection::Sqlite(connection), Some(lock)).await
    }

    /// # Errors
    /// See [`LeaseOpenError`].
    pub(crate) async fn open_postgres(url: &str) -> Result<Self, LeaseOpenError> {
        Self::new(Connection::Postgres(postgres::open_to_move(url).await?), None).await
    }

    async fn new(mut connection: Connection, lock: Option<File>) -> Result<Self, LeaseOpenError> {
        let meta = on!(&mut connection, it => sqlx::query_as(META).fetch_one(it));
        let (store_id, epoch, token_floor): (String, i64, i64) = meta.map_err(LeaseOpenError::Store)?;
        Ok(Self {
            connection,
            _lock: lock,
            store_id,
            epoch,
            token_floor: token_floor.cast_unsigned(),
        })
    }

    /// Marks the store: from then on no server starts on it or changes its leases. First waits for servers that have just stopped.
    ///
    /// # Errors
    /// `Running`: the store is not marked. `Moved`: to another store.
    pub(crate) async fn mark(&mut self, target: &str) -> Result<(), LeaseOpenError> {
        let read: Option<String> =
            on!(&mut self.connection, connection => sqlx::query_scalar(moved::READ).fetch_one(connection))
                .map_err(LeaseOpenError::Store)?;
        if let Some(to) = read.as_ref().filter(|to| *to != target) {
            return Err(LeaseOpenError::Moved { to: to.clone() });
        }
        // Before the mark, which would stop the grants of a server that runs.
        self.require_stopped().await?;
        self.set_mark(Some(target)).await?;
        let stopped = self.require_stopped().await;
        if matches!(stopped, Err(LeaseOpenError::Running)) {
            self.set_mark(read.as_deref()).await?;
        }
        stopped?;
        match &mut self.connection {
            Connection::Sqlite(_) => Ok(()),
            Connection::Postgres(connection) => postgres::refuse_writes(connection).await,
        }
    }

    async fn set_mark(&mut self, to: Option<&str>) -> Result<(), LeaseOpenError> {
        match &mut self.connection {
            Connection::Sqlite(connection) => sqlx::query(MARK).bind(to).execute(connection).await.map(drop),
            Connection::Postgres(connection) => {
                sqlx::query(MARK).bind(to).execute(connection).await.map(drop)
            }
        }
        .map_err(LeaseOpenError::Store)
    }

    /// Waits for servers that have just stopped. An SQLite file is locked, so no server has it.
    ///
    /// # Errors
    /// `Running`; the store does not answer.
    async fn require_stopped(&mut self) -> Result<(), LeaseOpenError> {
        let Connection::Postgres(connection) = &mut self.connection else {
            return Ok(());
        };
        for _ in 0..REPLICAS_POLLS {
            if postgres::live_replicas(connection).await? == 0 {
                return Ok(());
            }
            tokio::time::sleep(REPLICAS_POLL).await;
        }
        Err(LeaseOpenError::Running)
    }

    /// The store's time now.
    ///
    /// # Errors
    /// The store does not answer.
    pub(crate) async fn now(&mut self, wall_ms: i64) -> Result<StoreTime, LeaseOpenError> {
        let ms = match &mut self.connection {
            Connection::Sqlite(connection) => sqlite::time_ms(connection, wall_ms)
                .await
                .map_err(LeaseOpenError::Store)?,
            Connection::Postgres(connection) => postgres::time_ms(connection).await?,
        };
        Ok(StoreTime::from_ms(ms))
    }

    /// Resources that were ever locked.
    ///
    /// # Errors
    /// The store does not answer.
    pub(crate) async fn resources(&mut self) -> Result<u64, LeaseOpenError> {
        let count: i64 = on!(&mut self.connection, it => sqlx::query_scalar(COUNT).fetch_one(it))
            .map_err(LeaseOpenError::Store)?;
        Ok(count.cast_unsigned())
    }

    /// The next resources after a name, in order; empty at the end.
    ///
    /// # Errors
    /// `Corrupt`; the store does not answer.
    pub(crate) async fn states(&mut self, after: &str) -> Result<Vec<(Resource, ResourceState)>, StoreError> {
        let rows: Vec<StateOfResource> =
            on!(&mut self.connection, it => sqlx::query_as(STATES).bind(after).bind(PAGE).fetch_all(it))?;
        rows.into_iter().map(StateOfResource::into_state).collect()
    }
}

impl StateOfResource {
    fn into_state(self) -> Result<(Resource, ResourceState), StoreError> {
        let resource = Resource::from(self.resource.as_str());
        let (last_token, locked_until) = (self.last_token, self.locked_until);
        let lease = self.into_lease()?;
        let touched = |lease: &Lease| {
            let ended = lease.ending.as_ref().map_or(lease.renewed_at, |ending| ending.at);
            lease.renewed_at.max(ended)
        };
        let state = ResourceState {
            last_token: FencingToken::new(last_token.cast_unsigned()),
            touched_at: lease.as_ref().map_or(StoreTime::default(), touched),
            locked_until: locked_until.map(StoreTime::from_ms),
            lease,
        };
        Ok((resource, state))
    }

    /// `None`: the resource has no lease, or its last one was deleted after its retention.
    fn into_lease(self) -> Result<Option<Lease>, StoreError> {
        let Some(id) = &self.lease_id else {
            return Ok(None);
        };
        let incomplete = || StoreError::Corrupt(format!("lease {id}: a column is empty"));
        let row = LeaseRow {
            lease_id: domain::lease::LeaseId::parse(id).ok_or_else(incomplete)?,
            resource: self.resource,
            owner_id: self.owner_id.ok_or_else(incomplete)?,
            issuer: self.issuer.ok_or_else(incomplete)?,
            fencing_token: self.fencing_token.ok_or_else(incomplete)?.cast_unsigned(),
            ttl_seconds: self.ttl_seconds.ok_or_else(incomplete)?,
            metadata: self.metadata.ok_or_else(incomplete)?,
            acquired_at: self.acquired_at.ok_or_else(incomplete)?,
            expires_at: self.expires_at.ok_or_else(incomplete)?,
            renewed_at: self.renewed_at.ok_or_else(incomplete)?,
            renewals: self.renewals.ok_or_else(incomplete)?,
            ended_at: self.ended_at,
            ended_how: self.ended_how,
            revoked_by: self.revoked_by,
            revoke_reason: self.revoke_reason,
            audit_id: self.audit_id,
        };
        Ok(Some(row.into_lease()?.1))
    }
}
