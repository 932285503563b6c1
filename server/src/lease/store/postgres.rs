//! Leases in Postgres, for any number of replicas: set-based statements, the server's clock, and writes that hold only if
//! nothing has changed since the reading (see `apply`).
//!
//! Each lane has a connection of its own, and a connection in doubt is closed, never returned: what a cancelled request
//! leaves behind cannot meet the next one. Other replicas are told by NOTIFY; the tables are the truth.

mod apply;
mod load;
mod notice;
mod open;
mod remembered;
mod save;
mod sql;
mod steady;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use domain::lease::scope::NameRange;
use domain::lease::{Lease, LeaseId, StoreTime};
use domain::names::{OwnerId, Resource};
use futures::future::BoxFuture;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgListener};
use sqlx::{ConnectOptions as _, PgPool};
use tokio::sync::Mutex;

use self::apply::Wary;
use self::load::texts;
use self::remembered::Remembered;
use self::steady::Steady;
use super::rows::held_rows;
use super::rows::{LeaseRow, StateRow, from_json};
use super::{
    Answer, HeldRow, Lane, News, Read, RejectionCount, RejectionRange, RejectionRow, RejectionsAsked,
    ResourceView, StaleWrite, Store, StoreError, WaiterView,
};
use crate::clock::Clock;
use crate::lease::operation::{Applied, Head, Operation};

pub use open::{examine, migrate, raise_epoch};

/// Within the 2 s that an outage may take to be told.
const PATIENCE: Duration = Duration::from_millis(1_500);
/// Cleaning is done each so many calls of `tend`.
const CLEAN_EVERY: u64 = 16;

/// A heartbeat need not survive a crash, so its commit does not wait for the disk.
const NOT_DURABLE: [(&str, &str); 1] = [("synchronous_commit", "off")];

pub struct PostgresStore {
    options: PgConnectOptions,
    urgent: Mutex<Option<PgConnection>>,
    main: Vec<Mutex<Option<PgConnection>>>,
    listener: Mutex<Option<PgListener>>,
    /// Of its own, so that readers do not delay a heartbeat.
    heartbeat: Mutex<Option<PgConnection>>,
    readers: PgPool,
    replica: Arc<str>,
    identity: String,
    clock: Clock,
    steady: Steady,
    wary: Wary,
    remembered: std::sync::Mutex<Remembered>,
    /// Whether other replicas are there to be told.
    others: AtomicBool,
    tended: AtomicU64,
}

/// Bounds what waits for the server: it may be there and not answer.
async fn bounded<T>(work: impl Future<Output = Result<T, StoreError>> + Send) -> Result<T, StoreError> {
    let late = StoreError::NoAnswer(u64::try_from(PATIENCE.as_millis()).unwrap_or(u64::MAX));
    tokio::time::timeout(PATIENCE, work).await.unwrap_or(Err(late))
}

impl Store for PostgresStore {
    fn apply<'a>(&'a self, lane: Lane, operations: &'a [Operation]) -> Answer<'a, Applied> {
        // Cut off at the end of its patience, the connection is dropped with whatever is open in it.
        Box::pin(bounded(self.write(lane, operations)))
    }

    fn has_one_writer(&self) -> bool {
        false
    }

    fn main_lanes(&self) -> usize {
        self.main.len()
    }

    fn resource<'a>(&'a self, resource: &'a Resource) -> Answer<'a, Read<ResourceView>> {
        Box::pin(bounded(self.reading(move || async move {
            let read_at = self.clock.tick();
            let (now, text): (i64, Option<String>) = sqlx::query_as(sql::STATE)
                .bind(resource.text())
                .fetch_one(&self.readers)
                .await?;
            let mut value = ResourceView::default();
            let mut queued = false;
            if let Some(text) = text {
                let held = from_json::<StateRow>(&text)?.into_held()?.1;
                queued = !held.queue.is_empty();
                value.state = held.state;
            }
            if queued {
                let line: Vec<(String, i64)> = sqlx::query_as(sql::LINE)
                    .bind(resource.text())
                    .fetch_all(&self.readers)
                    .await?;
                let waiter = |(owner, since): (String, i64)| WaiterView {
                    owner: OwnerId::new(owner),
                    since: StoreTime::from_ms(since),
                };
                value.waiters = line.into_iter().map(waiter).collect();
            }
            let now = StoreTime::from_ms(now);
            self.steady(read_at, now).await?;
            Ok(Read { now, read_at, value })
        })))
    }

    fn leases<'a>(&'a self, ids: &'a [LeaseId]) -> Answer<'a, Read<Vec<(Resource, Lease)>>> {
        Box::pin(bounded(self.reading(move || async move {
            let read_at = self.clock.tick();
            let (now, text): (i64, String) = sqlx::query_as(sql::LEASES)
                .bind(texts(ids))
                .fetch_one(&self.readers)
                .await?;
            let rows: Vec<LeaseRow> = from_json(&text)?;
            let value = rows
                .into_iter()
                .map(LeaseRow::into_lease)
                .collect::<Result<_, _>>()?;
            let now = StoreTime::from_ms(now);
            self.steady(read_at, now).await?;
            Ok(Read { now, read_at, value })
        })))
    }

    fn held<'a>(
        &'a self,
        range: &'a NameRange,
        after: Option<&'a Resource>,
        limit: u32,
    ) -> Answer<'a, Read<Vec<HeldRow>>> {
        Box::pin(bounded(self.reading(move || async move {
            let read_at = self.clock.tick();
            let query = sqlx::query_as(sql::HELD)
                .bind(range.from.clone())
                .bind(range.to.clone())
                .bind(after.map(Resource::text))
                .bind(i64::from(limit));
            let (now, text): (i64, String) = query.fetch_one(&self.readers).await?;
            let value = held_rows(&text)?;
            let now = StoreTime::from_ms(now);
            self.steady(read_at, now).await?;
            Ok(Read { now, read_at, value })
        })))
    }

    fn held_of<'a>(&'a self, names: &'a [Resource]) -> Answer<'a, Read<Vec<HeldRow>>> {
        Box::pin(bounded(self.reading(move || async move {
            let read_at = self.clock.tick();
            let names: Vec<String> = names.iter().map(Resource::text).collect();
            let query = sqlx::query_as(sql::HELD_OF).bind(names);
            let (now, text): (i64, String) = query.fetch_one(&self.readers).await?;
            let value = held_rows(&text)?;
            let now = StoreTime::from_ms(now);
            self.steady(read_at, now).await?;
            Ok(Read { now, read_at, value })
        })))
    }

    fn run_out(&self, limit: u32) -> Answer<'_, Vec<Resource>> {
        Box::pin(bounded(async move {
            let query = sqlx::query_scalar(sql::RUN_OUT).bind(i64::from(limit));
            let names: Vec<String> = query.fetch_all(&self.readers).await?;
            Ok(names.iter().map(|name| Resource::from(name.as_str())).collect())
        }))
    }

    fn heads<'a>(&'a self, resources: &'a [Resource]) -> Answer<'a, Read<Vec<Head>>> {
        Box::pin(bounded(async move {
            let read_at = self.clock.tick();
            let names: Vec<String> = resources.iter().map(Resource::text).collect();
            let rows: Vec<(i64, String, String, String, i64)> = sqlx::query_as(sql::HEADS)
                .bind(names)
                .fetch_all(&self.readers)
                .await?;
            let now = StoreTime::from_ms(rows.first().map_or(0, |row| row.0));
            let head = |(_, resource, waiter, replica, in_ms): (i64, String, String, String, i64)| {
                Some(Head {
                    resource: Resource::from(resource.as_str()),
                    waiter: LeaseId::parse(&waiter)?,
                    replica: replica.into(),
                    in_ms,
                })
            };
            let value = rows.into_iter().filter_map(head).collect();
            Ok(Read { now, read_at, value })
        }))
    }

    fn rejections<'a>(&'a self, asked: &'a RejectionsAsked) -> Answer<'a, Vec<RejectionRow>> {
        Box::pin(bounded(async move {
            let query = sqlx::query_as(sql::REJECTIONS_OF)
                .bind(asked.resource.as_ref().map(Resource::text))
                .bind(asked.from.ms())
                .bind(asked.until.ms())
                .bind(i64::from(asked.most))
                .bind(asked.names.as_ref().map(|names| names.from.as_str()))
                .bind(asked.names.as_ref().and_then(|names| names.to.as_deref()));
            let rows: Vec<super::RejectionTuple> = query.fetch_all(&self.readers).await?;
            Ok(rows.into_iter().map(RejectionRow::from).collect())
        }))
    }

    fn rejection_counts<'a>(&'a self, range: &'a RejectionRange) -> Answer<'a, Vec<RejectionCount>> {
        Box::pin(bounded(async move {
            Ok(super::rejections::counts(&self.readers, range).await?)
        }))
    }

    fn last_rejection_before(&self, recorded: StoreTime) -> Answer<'_, i64> {
        Box::pin(bounded(async move {
            Ok(super::rejections::last_before(&self.readers, recorded).await?)
        }))
    }

    fn stale_writes(&self, since: StoreTime) -> Answer<'_, Vec<StaleWrite>> {
        Box::pin(bounded(async move {
            let query = sqlx::query_as(sql::STALE_WRITES).bind(since.ms());
            let rows: Vec<super::StaleWriteTuple> = query.fetch_all(&self.readers).await?;
            Ok(rows.into_iter().map(StaleWrite::from).collect())
        }))
    }

    fn tend(&self) -> Answer<'_, ()> {
        Box::pin(bounded(async move {
            let others: i64 = sqlx::query_scalar(sql::REPLICAS)
                .bind(&*self.replica)
                .fetch_one(&self.readers)
                .await?;
            self.others.store(others > 0, Ordering::Relaxed);
            let sent = self.clock.tick();
            let now: i64 = sqlx::query_scalar(sql::CLOCK).fetch_one(&self.readers).await?;
            match self.steady(sent, StoreTime::from_ms(now)).await {
                // It was set, and is put right: that is what looking was for.
                Err(StoreError::Conflict) => {}
                looked => looked?,
            }
            if !self
                .tended
                .fetch_add(1, Ordering::Relaxed)
                .is_multiple_of(CLEAN_EVERY)
            {
                return Ok(());
            }
            let statements = [
                sql::CLOCK_SEEN,
                sql::FORGET_WAITERS,
                sql::FORGET_REPLICAS,
                sql::PRUNE_KEYS,
            ];
            for statement in statements {
                sqlx::query(statement).execute(&self.readers).await?;
            }
            let oldest = super::oldest_kept(StoreTime::from_ms(now));
            sqlx::query(sql::PRUNE_LEASES)
                .bind(oldest.to_string())
                .execute(&self.readers)
                .await?;
            Ok(())
        }))
    }

    fn beat(&self) -> Answer<'_, ()> {
        Box::pin(bounded(async move {
            let mut slot = self.heartbeat.lock().await;
            // Out of the slot while it is used: a connection in doubt is closed.
            let mut connection = match slot.take() {
                Some(connection) => connection,
                None => self.options.clone().options(NOT_DURABLE).connect().await?,
            };
            let here = sqlx::query(sql::HERE).bind(&*self.replica);
            here.execute(&mut connection).await?;
            *slot = Some(connection);
            Ok(())
        }))
    }

    fn news(&self) -> BoxFuture<'_, News> {
        Box::pin(async move {
            if let Ok(news) = self.hear().await {
                return news;
            }
            *self.listener.lock().await = None;
            tokio::time::sleep(Duration::from_millis(300)).await;
            News {
                missed: true,
                ..News::default()
            }
        })
    }

    fn replica(&self) -> &Arc<str> {
        &self.replica
    }

    fn version(&self) -> Answer<'_, String> {
        Box::pin(bounded(async move {
            let version: String = sqlx::query_scalar("SHOW server_version")
                .fetch_one(&self.readers)
                .await?;
            Ok(format!("PostgreSQL {version}"))
        }))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            // The others need not wait until we are missed.
            let leave = "DELETE FROM lease_waiters WHERE replica_id = $1";
            let _ = bounded(async {
                sqlx::query(leave)
                    .bind(&*self.replica)
                    .execute(&self.readers)
                    .await?;
                let gone = sqlx::query("DELETE FROM lease_replicas WHERE replica_id = $1");
                gone.bind(&*self.replica).execute(&self.readers).await?;
                Ok(())
            })
            .await;
            *self.heartbeat.lock().await = None;
            *self.listener.lock().await = None;
            let _ = tokio::time::timeout(PATIENCE, self.readers.close()).await;
            *self.urgent.lock().await = None;
            for slot in &self.main {
                *slot.lock().await = None;
            }
        })
    }
}
