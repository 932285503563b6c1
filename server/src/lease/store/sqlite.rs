//! Leases in one SQLite file: one writer, `BEGIN IMMEDIATE`, WAL, `synchronous=FULL`; readers beside it.
//!
//! The store's clock is ours: anchored to the wall clock at start, driven by the monotonic clock, never behind what the
//! file has seen. A wall clock that jumps changes nothing until the next start, and then not backwards.

mod load;
mod open;
mod sql;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use domain::lease::scope::NameRange;
use domain::lease::{Lease, LeaseId, StoreTime};
use domain::names::{OwnerId, Resource};
use domain::observation::Tick;
use futures::future::BoxFuture;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{Connection as _, SqlitePool};
use tokio::sync::Mutex;

use self::load::load;
use super::rows::{LeaseRow, Param, StateRow, from_json, held_rows, to_json, writes};
use super::witness::Witness;
use super::{Answer, HeldRow, Lane, News, Read, RejectionRow, ResourceView, Store, StoreError, WaiterView};
use crate::clock::Clock;
use crate::lease::batch::{Changes, run};
use crate::lease::operation::{Applied, Head, Operation};

pub use open::raise_epoch;

pub struct SqliteStore {
    path: PathBuf,
    options: SqliteConnectOptions,
    /// None after an error: the next batch opens it anew, so that no half of a transaction is ever left in it.
    writer: Mutex<Option<SqliteConnection>>,
    readers: SqlitePool,
    clock: StoreClock,
    replica: Arc<str>,
    witness: Mutex<Witness>,
    grants: AtomicI64,
    /// Held for as long as we serve this file.
    _lock: std::fs::File,
}

/// The store's clock, by our monotonic one.
struct StoreClock {
    clock: Clock,
    at_start: StoreTime,
    started: Tick,
}

impl StoreClock {
    fn now(&self) -> (Tick, StoreTime) {
        let tick = self.clock.tick();
        (tick, self.at_start.plus(tick.since(self.started)))
    }
}

impl SqliteStore {
    async fn write(&self, operations: &[Operation]) -> Result<Applied, StoreError> {
        let mut slot = self.writer.lock().await;
        // Out of the slot while it is used: whatever goes wrong, a connection in doubt is closed, not kept.
        let mut connection = match slot.take() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        let applied = self.transaction(&mut connection, operations).await?;
        *slot = Some(connection);
        Ok(applied)
    }

    async fn transaction(
        &self,
        connection: &mut SqliteConnection,
        operations: &[Operation],
    ) -> Result<Applied, StoreError> {
        sqlx::query("BEGIN IMMEDIATE").execute(&mut *connection).await?;
        let (read_at, now) = self.clock.now();
        let loaded = load(connection, operations, now).await?;
        let ran = run(loaded, operations, &self.replica)?;
        if !ran.changes.is_empty() {
            self.save(connection, &ran.changes, now).await?;
        }
        sqlx::query("COMMIT").execute(&mut *connection).await?;
        let grants = i64::try_from(ran.changes.grants).unwrap_or(0);
        self.grants.fetch_add(grants, Ordering::Relaxed);
        Ok(Applied {
            now,
            read_at,
            done: ran.done,
            heads: ran.heads,
            changed: ran.changed,
        })
    }

    async fn save(
        &self,
        connection: &mut SqliteConnection,
        changes: &Changes,
        now: StoreTime,
    ) -> Result<(), StoreError> {
        let writes = writes(changes, &self.replica, now)?;
        exactly(connection, sql::COUNTERS, writes.counters).await?;
        exactly(connection, sql::CHANGED, writes.changed).await?;
        exactly(connection, sql::BORN, writes.born).await?;
        exactly(connection, sql::KEYS, writes.keys).await?;
        any(connection, sql::UNBOUND, writes.unbound).await?;
        // One may leave and join again in the same batch.
        any(connection, sql::LEFT, writes.left).await?;
        exactly(connection, sql::JOINED, writes.joined).await?;
        exactly(connection, sql::REJECTIONS, writes.rejections).await?;
        let grants = i64::try_from(changes.grants).unwrap_or(0);
        let query = sqlx::query(sql::TICK).bind(now.ms()).bind(grants);
        query.execute(&mut *connection).await?;
        Ok(())
    }
}

/// A statement that must touch each of its rows: anything else means that the store is not what was read.
async fn exactly(
    connection: &mut SqliteConnection,
    sql: &'static str,
    param: Option<Param>,
) -> Result<(), StoreError> {
    let Some(param) = param else { return Ok(()) };
    let done = sqlx::query(sql).bind(param.json).execute(connection).await?;
    if done.rows_affected() == param.rows {
        return Ok(());
    }
    Err(StoreError::Corrupt(format!(
        "{} rows to write, {} written",
        param.rows,
        done.rows_affected()
    )))
}

async fn any(
    connection: &mut SqliteConnection,
    sql: &'static str,
    param: Option<Param>,
) -> Result<(), StoreError> {
    if let Some(param) = param {
        sqlx::query(sql).bind(param.json).execute(connection).await?;
    }
    Ok(())
}

impl Store for SqliteStore {
    fn apply<'a>(&'a self, _lane: Lane, operations: &'a [Operation]) -> Answer<'a, Applied> {
        Box::pin(self.write(operations))
    }

    fn has_one_writer(&self) -> bool {
        true
    }

    fn resource<'a>(&'a self, resource: &'a Resource) -> Answer<'a, Read<ResourceView>> {
        Box::pin(async move {
            let (read_at, now) = self.clock.now();
            let names = to_json(&[resource.text()])?;
            let (_, text): (i64, String) = sqlx::query_as(sql::STATES)
                .bind(names)
                .fetch_one(&self.readers)
                .await?;
            let rows: Vec<StateRow> = from_json(&text)?;
            let mut value = ResourceView::default();
            if let Some(row) = rows.into_iter().next() {
                value.state = row.into_held()?.1.state;
            }
            let line: Vec<(String, i64)> = sqlx::query_as(sql::LINE)
                .bind(resource.text())
                .fetch_all(&self.readers)
                .await?;
            value.waiters = line.into_iter().map(waiter).collect();
            Ok(Read { now, read_at, value })
        })
    }

    fn leases<'a>(&'a self, ids: &'a [LeaseId]) -> Answer<'a, Read<Vec<(Resource, Lease)>>> {
        Box::pin(async move {
            let (read_at, now) = self.clock.now();
            let text: String = sqlx::query_scalar(sql::LEASES)
                .bind(to_json(ids)?)
                .fetch_one(&self.readers)
                .await?;
            let rows: Vec<LeaseRow> = from_json(&text)?;
            let value = rows
                .into_iter()
                .map(LeaseRow::into_lease)
                .collect::<Result<_, _>>()?;
            Ok(Read { now, read_at, value })
        })
    }

    fn held<'a>(
        &'a self,
        range: &'a NameRange,
        after: Option<&'a Resource>,
        limit: u32,
    ) -> Answer<'a, Read<Vec<HeldRow>>> {
        Box::pin(async move {
            let (read_at, now) = self.clock.now();
            let query = sqlx::query_scalar(sql::HELD)
                .bind(range.from.clone())
                .bind(range.to.clone())
                .bind(after.map(Resource::text))
                .bind(now.ms())
                .bind(i64::from(limit));
            let text: String = query.fetch_one(&self.readers).await?;
            let value = held_rows(&text)?;
            Ok(Read { now, read_at, value })
        })
    }

    fn run_out(&self, limit: u32) -> Answer<'_, Vec<Resource>> {
        Box::pin(async move {
            let (_, now) = self.clock.now();
            let query = sqlx::query_scalar(sql::RUN_OUT)
                .bind(now.ms())
                .bind(i64::from(limit));
            let names: Vec<String> = query.fetch_all(&self.readers).await?;
            Ok(names.iter().map(|name| Resource::from(name.as_str())).collect())
        })
    }

    fn heads<'a>(&'a self, _resources: &'a [Resource]) -> Answer<'a, Read<Vec<Head>>> {
        // Nobody else writes here: every head was named by a batch of ours.
        let (read_at, now) = self.clock.now();
        let value = Vec::new();
        Box::pin(async move { Ok(Read { now, read_at, value }) })
    }

    fn rejections<'a>(&'a self, resource: Option<&'a Resource>) -> Answer<'a, Vec<RejectionRow>> {
        Box::pin(async move {
            let query = sqlx::query_as(sql::REJECTIONS_OF).bind(resource.map(Resource::text));
            let rows: Vec<super::RejectionTuple> = query.fetch_all(&self.readers).await?;
            Ok(rows.into_iter().map(RejectionRow::from).collect())
        })
    }

    fn tend(&self) -> Answer<'_, ()> {
        Box::pin(async move {
            self.testify().await;
            let (_, now) = self.clock.now();
            let mut slot = self.writer.lock().await;
            if let Some(connection) = slot.as_mut() {
                sqlx::query(sql::PRUNE_LEASES)
                    .bind(super::oldest_kept(now).to_string())
                    .execute(&mut *connection)
                    .await?;
                let query = sqlx::query(sql::PRUNE_KEYS).bind(super::keys_kept_from(now).ms());
                query.execute(&mut *connection).await?;
            }
            Ok(())
        })
    }

    fn news(&self) -> BoxFuture<'_, News> {
        Box::pin(std::future::pending())
    }

    fn replica(&self) -> &Arc<str> {
        &self.replica
    }

    fn version(&self) -> Answer<'_, String> {
        Box::pin(async move {
            let version: String = sqlx::query_scalar("SELECT sqlite_version()")
                .fetch_one(&self.readers)
                .await?;
            Ok(format!("SQLite {version}"))
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.testify().await;
            self.readers.close().await;
            if let Some(writer) = self.writer.lock().await.take() {
                let _ = writer.close().await;
            }
        })
    }
}

impl SqliteStore {
    /// Writes the witness when there were grants since.
    async fn testify(&self) {
        let mut witness = self.witness.lock().await;
        let grants = self.grants.load(Ordering::Relaxed);
        if witness.grants == grants {
            return;
        }
        witness.grants = grants;
        if let Err(error) = witness.write(&self.path) {
            tracing::warn!(%error, "could not write the witness beside the store");
        }
    }
}

fn waiter((owner, since): (String, i64)) -> WaiterView {
    WaiterView {
        owner: OwnerId::new(owner),
        since: StoreTime::from_ms(since),
    }
}
