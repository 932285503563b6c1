//! Leases in one SQLite file: one writer, `BEGIN IMMEDIATE`, WAL, `synchronous=FULL`; separate
//! readers.
//!
//! The store's clock is the process's: see `store_clock`.

mod file_lock;
mod load;
mod open;
mod prune;
mod sql;
mod store_clock;
mod unwritten_counters;
mod wal_limit;
mod write;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use domain::lease::scope::NameRange;
use domain::lease::{Lease, LeaseId, StoreTime};
use domain::names::{OwnerId, Resource};
use futures::future::BoxFuture;
use sqlx::SqlitePool;
use tokio::sync::Mutex;

use self::file_lock::FileLock;
use self::prune::PruneQueue;
use self::store_clock::StoreClock;
use self::unwritten_counters::UnwrittenCounters;
use self::writer::{Committed, Writer};
use super::retention::LeaseRetention;
use super::rows::{LeaseRow, StateRow, from_json, held_rows, to_json};
use super::witness_file::WitnessFile;
use super::{
    HeldRow, Lane, PruneProgress, Read, RejectionCount, RejectionQuery, RejectionRange, RejectionRow,
    ResourceView, StaleWrite, Store, StoreError, StoreFuture, StoreNotification, WaiterView,
};
use crate::operation::{Applied, Operation, QueueHead};

pub(crate) use file_lock::lock_file;
pub(crate) use open::open_to_move;
pub use open::{inspect_store, migrate_file, raise_epoch};
pub(crate) use store_clock::time_ms;

pub struct SqliteStore {
    path: PathBuf,
    writer: Mutex<WriterSlot>,
    readers: SqlitePool,
    clock: StoreClock,
    counters: Arc<parking_lot::Mutex<UnwrittenCounters>>,
    replica: Arc<str>,
    witness: Mutex<WitnessFile>,
    grants: AtomicI64,
    prune_queue: parking_lot::Mutex<PruneQueue>,
}

/// The access of this process to the file.
struct WriterSlot {
    /// `None` after an error: the next batch opens a new writer, so that no partial transaction is left in it.
    writer: Option<Writer>,
    /// **Invariant:** this process writes the file only while it holds this lock. `None` once the store is closed.
    lock: Option<Arc<FileLock>>,
}

impl WriterSlot {
    /// Removes the writer while it is in use: after an error it is dropped.
    ///
    /// # Errors
    /// The store is closed, or the file cannot be opened.
    fn take(
        &mut self,
        path: &Path,
        counters: &Arc<parking_lot::Mutex<UnwrittenCounters>>,
    ) -> Result<Writer, StoreError> {
        let Some(lock) = &self.lock else {
            return Err(StoreError::Down(sqlx::Error::PoolClosed));
        };
        match self.writer.take() {
            Some(writer) => Ok(writer),
            None => Ok(Writer::new(open::writer(path)?, lock.clone(), counters.clone())),
        }
    }
}

impl SqliteStore {
    async fn write(&self, operations: &[Operation]) -> Result<Applied, StoreError> {
        let mut slot = self.writer.lock().await;
        let Committed {
            now, read_at, ran, ..
        } = match self.write_once(&mut slot, operations) {
            // Another connection has written the file: retry once with an empty cache.
            Err(StoreError::Conflict) => self.write_once(&mut slot, operations)?,
            done => done?,
        };
        let grants = i64::try_from(ran.changes.grants).unwrap_or(0);
        self.grants.fetch_add(grants, Ordering::Relaxed);
        Ok(ran.applied(now, read_at))
    }

    fn write_once(&self, slot: &mut WriterSlot, operations: &[Operation]) -> Result<Committed, StoreError> {
        let writer = slot.take(&self.path, &self.counters)?;
        let range = self.prune_queue.lock().take();
        let applied = writer.apply(operations, &self.replica, &self.clock, range.as_ref());
        let is_deleted = matches!(&applied, Ok((_, committed)) if committed.is_pruned);
        self.prune_queue.lock().finish(range, is_deleted);
        if applied.is_err() {
            self.counters.lock().set_incomplete();
        }
        let (writer, committed) = applied?;
        slot.writer = Some(writer);
        Ok(committed)
    }
}

impl Store for SqliteStore {
    fn apply<'a>(&'a self, _lane: Lane, operations: &'a [Operation]) -> StoreFuture<'a, Applied> {
        Box::pin(self.write(operations))
    }

    fn has_one_writer(&self) -> bool {
        true
    }

    fn resource<'a>(&'a self, resource: &'a Resource) -> StoreFuture<'a, Read<ResourceView>> {
        Box::pin(async move {
            let (read_at, now) = self.clock.now();
            let (token, lease) = self.unwritten_grant(resource).await?.unzip();
            let row: Option<String> = sqlx::query_scalar(sql::STATE)
                .bind(resource.text())
                .bind(token)
                .bind(lease)
                .fetch_optional(&self.readers)
                .await?;
            let mut value = ResourceView::default();
            let mut is_queued = false;
            if let Some(row) = row {
                let held = from_json::<StateRow>(&row)?.into_held()?.1;
                is_queued = !held.queue.is_empty();
                value.state = held.state;
            }
            if is_queued {
                let queue: Vec<(String, i64)> = sqlx::query_as(sql::QUEUE)
                    .bind(resource.text())
                    .fetch_all(&self.readers)
                    .await?;
                value.waiters = queue.into_iter().map(waiter).collect();
            }
            Ok(Read { now, read_at, value })
        })
    }

    fn leases<'a>(&'a self, ids: &'a [LeaseId]) -> StoreFuture<'a, Read<Vec<(Resource, Lease)>>> {
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

    fn held_leases<'a>(
        &'a self,
        range: &'a NameRange,
        after: Option<&'a Resource>,
        limit: u32,
    ) -> StoreFuture<'a, Read<Vec<HeldRow>>> {
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

    fn held_by_names<'a>(&'a self, names: &'a [Resource]) -> StoreFuture<'a, Read<Vec<HeldRow>>> {
        Box::pin(async move {
            let (read_at, now) = self.clock.now();
            let names: Vec<String> = names.iter().map(Resource::text).collect();
            let query = sqlx::query_scalar(sql::HELD_OF)
                .bind(to_json(&names)?)
                .bind(now.ms());
            let text: String = query.fetch_one(&self.readers).await?;
            let value = held_rows(&text)?;
            Ok(Read { now, read_at, value })
        })
    }

    fn expired_leases(&self, limit: u32) -> StoreFuture<'_, Read<Vec<Resource>>> {
        Box::pin(async move {
            let (read_at, now) = self.clock.now();
            let query = sqlx::query_scalar(sql::EXPIRED)
                .bind(now.ms())
                .bind(i64::from(limit));
            let names: Vec<String> = query.fetch_all(&self.readers).await?;
            let value = names.iter().map(|name| Resource::from(name.as_str())).collect();
            Ok(Read { now, read_at, value })
        })
    }

    fn heads<'a>(&'a self, _resources: &'a [Resource]) -> StoreFuture<'a, Read<Vec<QueueHead>>> {
        // A single process: its own batches publish the head of every queue.
        let (read_at, now) = self.clock.now();
        let value = Vec::new();
        Box::pin(async move { Ok(Read { now, read_at, value }) })
    }

    fn rejections<'a>(&'a self, filter: &'a RejectionQuery) -> StoreFuture<'a, Vec<RejectionRow>> {
        Box::pin(async move {
            let query = sqlx::query_as(sql::REJECTIONS_OF)
                .bind(filter.resource.as_ref().map(Resource::text))
                .bind(filter.from.ms())
                .bind(filter.until.ms())
                .bind(i64::from(filter.most))
                .bind(filter.names.as_ref().map(|names| names.from.as_str()))
                .bind(filter.names.as_ref().and_then(|names| names.to.as_deref()));
            let rows: Vec<super::RejectionTuple> = query.fetch_all(&self.readers).await?;
            Ok(rows.into_iter().map(RejectionRow::from).collect())
        })
    }

    fn rejection_counts<'a>(&'a self, range: &'a RejectionRange) -> StoreFuture<'a, Vec<RejectionCount>> {
        Box::pin(async move { Ok(super::rejections::counts(&self.readers, range).await?) })
    }

    fn last_rejection_before(&self, recorded: StoreTime) -> StoreFuture<'_, i64> {
        Box::pin(async move { Ok(super::rejections::last_before(&self.readers, recorded).await?) })
    }

    fn stale_writes(&self, since: StoreTime) -> StoreFuture<'_, Vec<StaleWrite>> {
        Box::pin(async move {
            let query = sqlx::query_as(sql::STALE_WRITES).bind(since.ms());
            let rows: Vec<super::StaleWriteTuple> = query.fetch_all(&self.readers).await?;
            Ok(rows.into_iter().map(StaleWrite::from).collect())
        })
    }

    fn run_maintenance<'a>(&'a self, retention: &'a LeaseRetention) -> StoreFuture<'a, PruneProgress> {
        Box::pin(async move {
            self.write_witness().await;
            let (_, now) = self.clock.now();
            prune::read_ahead(&self.readers, &self.prune_queue, retention, now).await?;
            let mut slot = self.writer.lock().await;
            let mut keys = PruneProgress::Done;
            if let Some(writer) = slot.writer.take() {
                let ranges = self.prune_queue.lock().take_idle();
                let behind_ms = self.clock.unrecorded_behind_ms();
                match writer.maintain(ranges.clone(), now, behind_ms).await {
                    Ok((writer, progress)) => {
                        slot.writer = Some(writer);
                        keys = progress;
                        if let Some(behind_ms) = behind_ms {
                            self.clock.set_recorded(behind_ms);
                        }
                    }
                    Err(error) => {
                        self.counters.lock().set_incomplete();
                        self.prune_queue.lock().put_back(ranges);
                        return Err(error);
                    }
                }
            }
            Ok(match self.prune_queue.lock().progress() {
                PruneProgress::Done => keys,
                PruneProgress::More => PruneProgress::More,
            })
        })
    }

    fn send_heartbeat(&self) -> StoreFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    fn next_notification(&self) -> BoxFuture<'_, StoreNotification> {
        Box::pin(std::future::pending())
    }

    fn send_notifications(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    fn replica(&self) -> &Arc<str> {
        &self.replica
    }

    fn version(&self) -> StoreFuture<'_, String> {
        Box::pin(async move {
            let version: String = sqlx::query_scalar("SELECT sqlite_version()")
                .fetch_one(&self.readers)
                .await?;
            Ok(format!("SQLite {version}"))
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.write_witness().await;
            self.readers.close().await;
            let mut slot = self.writer.lock().await;
            // Closing the last connection checkpoints the WAL into the file.
            if let Some(writer) = slot.writer.take()
                && let Err(error) = writer.close()
            {
                tracing::debug!(%error, "the next start will write the counters of the last grants");
            }
            slot.lock = None;
        })
    }
}

impl SqliteStore {
    /// Token and lease of the newest grant of a resource, if its counter may not be written.
    async fn unwritten_grant(&self, resource: &Resource) -> Result<Option<(i64, String)>, StoreError> {
        let known = self.counters.lock().read(resource);
        if let Ok(counter) = known {
            return Ok(counter.map(|it| (it.token.cast_signed(), it.lease.to_string())));
        }
        let query = sqlx::query_as(sql::UNWRITTEN_GRANT).bind(resource.text());
        Ok(query.fetch_optional(&self.readers).await?)
    }

    /// Writes the witness file if there were grants since the last write.
    async fn write_witness(&self) {
        let mut witness = self.witness.lock().await;
        let grants = self.grants.load(Ordering::Relaxed);
        if witness.grants == grants {
            return;
        }
        witness.grants = grants;
        if let Err(error) = witness.write(&self.path) {
            tracing::warn!(%error, "could not write the witness file of the store");
        }
    }
}

fn waiter((owner, since): (String, i64)) -> WaiterView {
    WaiterView {
        owner: OwnerId::new(owner),
        since: StoreTime::from_ms(since),
    }
}
