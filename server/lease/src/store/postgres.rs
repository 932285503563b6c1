//! Leases in Postgres, for any number of replicas: set-based statements, the server's clock, and
//! optimistic writes that fail if a row has changed since it was read (see `apply`).
//!
//! Each lane has its own connection, and a connection in doubt is closed instead of returned:
//! the remains of a cancelled request cannot affect the next one. Other replicas are notified
//! with NOTIFY; the tables are the truth.

mod apply;
mod epoch;
mod load;
mod monotonic_clock;
mod move_guard;
mod notify;
mod open;
mod optimistic_cache;
mod prune;
mod save;
mod shard;
mod sql;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use domain::duration::millis;
use domain::lease::scope::NameRange;
use domain::lease::{Lease, LeaseId, StoreTime};
use domain::names::{OwnerId, Resource};
use futures::future::BoxFuture;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgListener};
use sqlx::{ConnectOptions as _, PgPool};
use tokio::sync::{Mutex, Notify};

use self::apply::ConflictBackoff;
use self::load::texts;
use self::monotonic_clock::MonotonicClock;
use self::notify::PendingNotices;
use self::optimistic_cache::OptimisticCache;
use super::retention::{LeaseRetention, PruneCursors};
use super::rows::held_rows;
use super::rows::{LeaseRow, StateRow, from_json};
use super::{
    HeldRow, Lane, PruneProgress, Read, RejectionCount, RejectionQuery, RejectionRange, RejectionRow,
    ResourceView, StaleWrite, Store, StoreError, StoreFuture, StoreNotification, WaiterView,
};
use crate::operation::{Applied, Operation, QueueHead};
use runtime::clock::Clock;

pub(crate) use move_guard::refuse_writes;
pub use open::{inspect_store, raise_epoch};
pub(crate) use open::{live_replicas, migrate, open_to_move, time_ms};
pub(crate) use shard::find_shard;

/// Below 2 s, the limit within which clients must learn of an outage.
const REPLY_TIMEOUT: Duration = Duration::from_millis(1_500);
/// Waiters and heartbeats of replicas that are gone are deleted on every sixteenth call of `run_maintenance`.
const CLEAN_EVERY: u64 = 16;

/// A heartbeat or a deletion need not survive a crash, so its commit does not wait for the disk.
const NOT_DURABLE: [(&str, &str); 1] = [("synchronous_commit", "off")];

pub struct PostgresStore {
    options: PgConnectOptions,
    urgent: Mutex<Option<PgConnection>>,
    main: Vec<Mutex<Option<PgConnection>>>,
    listener: Mutex<Option<PgListener>>,
    /// Separate connection, so that readers do not delay a heartbeat.
    heartbeat: Mutex<Option<PgConnection>>,
    /// Separate connection, for deletions.
    janitor: Mutex<Option<PgConnection>>,
    notices: parking_lot::Mutex<PendingNotices>,
    notices_added: Notify,
    prune_cursors: parking_lot::Mutex<PruneCursors>,
    readers: PgPool,
    replica: Arc<str>,
    identity: String,
    clock: Clock,
    monotonic: MonotonicClock,
    backoff: ConflictBackoff,
    cache: parking_lot::Mutex<OptimisticCache>,
    /// Whether other replicas are alive and need notifications.
    others: AtomicBool,
    maintenance_runs: AtomicU64,
}

/// Limits the wait for the server, which may accept connections and not answer.
async fn with_timeout<T>(work: impl Future<Output = Result<T, StoreError>> + Send) -> Result<T, StoreError> {
    let no_answer = StoreError::NoAnswer(millis(REPLY_TIMEOUT).unsigned_abs());
    tokio::time::timeout(REPLY_TIMEOUT, work)
        .await
        .unwrap_or(Err(no_answer))
}

impl Store for PostgresStore {
    fn apply<'a>(&'a self, lane: Lane, operations: &'a [Operation]) -> StoreFuture<'a, Applied> {
        // On timeout the connection is dropped together with its open transaction.
        Box::pin(with_timeout(self.write(lane, operations)))
    }

    fn has_one_writer(&self) -> bool {
        false
    }

    fn main_lanes(&self) -> usize {
        self.main.len()
    }

    fn resource<'a>(&'a self, resource: &'a Resource) -> StoreFuture<'a, Read<ResourceView>> {
        Box::pin(with_timeout(self.retry_after_step(move || async move {
            let read_at = self.clock.tick();
            let (now, text): (i64, Option<String>) = sqlx::query_as(sql::STATE)
                .bind(resource.text())
                .fetch_one(&self.readers)
                .await?;
            let mut value = ResourceView::default();
            let mut is_queued = false;
            if let Some(text) = text {
                let held = from_json::<StateRow>(&text)?.into_held()?.1;
                is_queued = !held.queue.is_empty();
                value.state = held.state;
            }
            if is_queued {
                let queue: Vec<(String, i64)> = sqlx::query_as(sql::QUEUE)
                    .bind(resource.text())
                    .fetch_all(&self.readers)
                    .await?;
                let waiter = |(owner, since): (String, i64)| WaiterView {
                    owner: OwnerId::new(owner),
                    since: StoreTime::from_ms(since),
                };
                value.waiters = queue.into_iter().map(waiter).collect();
            }
            let now = StoreTime::from_ms(now);
            self.check_clock(read_at, now).await?;
            Ok(Read { now, read_at, value })
        })))
    }

    fn leases<'a>(&'a self, ids: &'a [LeaseId]) -> StoreFuture<'a, Read<Vec<(Resource, Lease)>>> {
        Box::pin(with_timeout(self.retry_after_step(move || async move {
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
            self.check_clock(read_at, now).await?;
            Ok(Read { now, read_at, value })
        })))
    }

    fn held_leases<'a>(
        &'a self,
        range: &'a NameRange,
        after: Option<&'a Resource>,
        limit: u32,
    ) -> StoreFuture<'a, Read<Vec<HeldRow>>> {
        Box::pin(with_timeout(self.retry_after_step(move || async move {
            let read_at = self.clock.tick();
            let query = sqlx::query_as(sql::HELD)
                .bind(range.from.clone())
                .bind(range.to.clone())
                .bind(after.map(Resource::text))
                .bind(i64::from(limit));
            let (now, text): (i64, String) = query.fetch_one(&self.readers).await?;
            let value = held_rows(&text)?;
            let now = StoreTime::from_ms(now);
            self.check_clock(read_at, now).await?;
            Ok(Read { now, read_at, value })
        })))
    }

    fn held_by_names<'a>(&'a self, names: &'a [Resource]) -> StoreFuture<'a, Read<Vec<HeldRow>>> {
        Box::pin(with_timeout(self.retry_after_step(move || async move {
            let read_at = self.clock.tick();
            let names: Vec<String> = names.iter().map(Resource::text).collect();
            let query = sqlx::query_as(sql::HELD_OF).bind(names);
            let (now, text): (i64, String) = query.fetch_one(&self.readers).await?;
            let value = held_rows(&text)?;
            let now = StoreTime::from_ms(now);
            self.check_clock(read_at, now).await?;
            Ok(Read { now, read_at, value })
        })))
    }

    fn expired_leases(&self, limit: u32) -> StoreFuture<'_, Read<Vec<Resource>>> {
        Box::pin(with_timeout(async move {
            let read_at = self.clock.tick();
            let query = sqlx::query_as(sql::EXPIRED).bind(i64::from(limit));
            let (now, names): (i64, Vec<String>) = query.fetch_one(&self.readers).await?;
            let value = names.iter().map(|name| Resource::from(name.as_str())).collect();
            let now = StoreTime::from_ms(now);
            Ok(Read { now, read_at, value })
        }))
    }

    fn heads<'a>(&'a self, resources: &'a [Resource]) -> StoreFuture<'a, Read<Vec<QueueHead>>> {
        Box::pin(with_timeout(async move {
            let read_at = self.clock.tick();
            let names: Vec<String> = resources.iter().map(Resource::text).collect();
            let rows: Vec<(i64, String, String, String, i64)> = sqlx::query_as(sql::HEADS)
                .bind(names)
                .fetch_all(&self.readers)
                .await?;
            let now = StoreTime::from_ms(rows.first().map_or(0, |row| row.0));
            let head = |(_, resource, waiter, replica, in_ms): (i64, String, String, String, i64)| {
                Some(QueueHead {
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

    fn rejections<'a>(&'a self, filter: &'a RejectionQuery) -> StoreFuture<'a, Vec<RejectionRow>> {
        Box::pin(with_timeout(async move {
            let query = sqlx::query_as(sql::REJECTIONS_OF)
                .bind(filter.resource.as_ref().map(Resource::text))
                .bind(filter.from.ms())
                .bind(filter.until.ms())
                .bind(i64::from(filter.most))
                .bind(filter.names.as_ref().map(|names| names.from.as_str()))
                .bind(filter.names.as_ref().and_then(|names| names.to.as_deref()));
            let rows: Vec<super::RejectionTuple> = query.fetch_all(&self.readers).await?;
            Ok(rows.into_iter().map(RejectionRow::from).collect())
        }))
    }

    fn rejection_counts<'a>(&'a self, range: &'a RejectionRange) -> StoreFuture<'a, Vec<RejectionCount>> {
        Box::pin(with_timeout(async move {
            Ok(super::rejections::counts(&self.readers, range).await?)
        }))
    }

    fn last_rejection_before(&self, recorded: StoreTime) -> StoreFuture<'_, i64> {
        Box::pin(with_timeout(async move {
            Ok(super::rejections::last_before(&self.readers, recorded).await?)
        }))
    }

    fn stale_writes(&self, since: StoreTime) -> StoreFuture<'_, Vec<StaleWrite>> {
        Box::pin(with_timeout(async move {
            let query = sqlx::query_as(sql::STALE_WRITES).bind(since.ms());
            let rows: Vec<super::StaleWriteTuple> = query.fetch_all(&self.readers).await?;
            Ok(rows.into_iter().map(StaleWrite::from).collect())
        }))
    }

    fn run_maintenance<'a>(&'a self, retention: &'a LeaseRetention) -> StoreFuture<'a, PruneProgress> {
        Box::pin(with_timeout(async move {
            let others: i64 = sqlx::query_scalar(sql::REPLICAS)
                .bind(&*self.replica)
                .fetch_one(&self.readers)
                .await?;
            self.others.store(others > 0, Ordering::Relaxed);
            let sent = self.clock.tick();
            let now: i64 = sqlx::query_scalar(sql::CLOCK).fetch_one(&self.readers).await?;
            match self.check_clock(sent, StoreTime::from_ms(now)).await {
                // The clock had stepped and is corrected now, which is the purpose of this
                // check. This reading is wrong: nothing is saved or deleted by it.
                Err(StoreError::Conflict) => return Ok(PruneProgress::Done),
                checked => checked?,
            }
            let runs = self.maintenance_runs.fetch_add(1, Ordering::Relaxed);
            let is_clean_run = runs.is_multiple_of(CLEAN_EVERY);
            let save = sqlx::query(sql::SAVE_CLOCK).bind(now).bind(is_clean_run);
            save.execute(&self.readers).await?;
            if is_clean_run {
                for statement in [sql::DELETE_WAITERS, sql::DELETE_REPLICAS] {
                    sqlx::query(statement).execute(&self.readers).await?;
                }
            }
            self.prune(retention, StoreTime::from_ms(now)).await
        }))
    }

    fn send_heartbeat(&self) -> StoreFuture<'_, ()> {
        Box::pin(with_timeout(async move {
            let mut slot = self.heartbeat.lock().await;
            // Removed from the slot while in use: after an error or a timeout the connection is
            // dropped.
            let mut connection = match slot.take() {
                Some(connection) => connection,
                None => self.connect_not_durable().await?,
            };
            let heartbeat = sqlx::query(sql::HEARTBEAT).bind(&*self.replica);
            heartbeat.execute(&mut connection).await?;
            *slot = Some(connection);
            Ok(())
        }))
    }

    fn next_notification(&self) -> BoxFuture<'_, StoreNotification> {
        Box::pin(async move {
            if let Ok(notification) = self.receive().await {
                return notification;
            }
            *self.listener.lock().await = None;
            tokio::time::sleep(Duration::from_millis(300)).await;
            StoreNotification {
                missed: true,
                ..StoreNotification::default()
            }
        })
    }

    fn send_notifications(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.send_notices())
    }

    fn replica(&self) -> &Arc<str> {
        &self.replica
    }

    fn version(&self) -> StoreFuture<'_, String> {
        Box::pin(with_timeout(async move {
            let version: String = sqlx::query_scalar("SHOW server_version")
                .fetch_one(&self.readers)
                .await?;
            Ok(format!("PostgreSQL {version}"))
        }))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            // So that the other replicas need not wait for the heartbeat timeout.
            let leave = "DELETE FROM lease_waiters WHERE replica_id = $1";
            let _ = with_timeout(async {
                sqlx::query(leave)
                    .bind(&*self.replica)
                    .execute(&self.readers)
                    .await?;
                let delete = sqlx::query("DELETE FROM lease_replicas WHERE replica_id = $1");
                delete.bind(&*self.replica).execute(&self.readers).await?;
                Ok(())
            })
            .await;
            *self.heartbeat.lock().await = None;
            *self.janitor.lock().await = None;
            *self.listener.lock().await = None;
            let _ = tokio::time::timeout(REPLY_TIMEOUT, self.readers.close()).await;
            *self.urgent.lock().await = None;
            for slot in &self.main {
                *slot.lock().await = None;
            }
        })
    }
}

impl PostgresStore {
    /// Token floor of the store as this process last read it; 0 before that.
    fn known_floor(&self) -> i64 {
        self.cache.lock().floor().unwrap_or(0)
    }

    async fn connect_not_durable(&self) -> Result<PgConnection, StoreError> {
        Ok(self.options.clone().options(NOT_DURABLE).connect().await?)
    }
}
