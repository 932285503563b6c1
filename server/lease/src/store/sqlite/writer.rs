//! The single writer. A batch is decided on the cached state of its resources and written at once: BEGIN IMMEDIATE,
//! the rows, COMMIT. It blocks the lane's own thread (see `batch_loops`), because a thread switch per batch would
//! cost more than the rows of many operations.
//!
//! **Invariants:** after any error the writer is dropped, with its open transaction and its cache. Each statement
//! changes exactly the one row that was decided on, or the transaction fails.
//!
//! Idempotency keys are assumed to be new, because clients send each once: they are inserted and not looked up. A batch
//! with a bound key is rolled back and decided again on what was read.

use std::sync::Arc;

use domain::lease::StoreTime;
use domain::tick::Tick;
use parking_lot::Mutex;
use rusqlite::Connection;

use super::file_lock::FileLock;
use super::load::File;
use super::store_clock::StoreClock;
use super::unwritten_counters::{CountersWritten, UnwrittenCounters};
use super::{load, open, prune, sql, write};
use crate::batch::{BatchResult, run};
use crate::operation::Operation;
use crate::store::batch_request::BatchRequest;
use crate::store::retention::{PruneRange, keys_expired_before, rejections_recorded_before};
use crate::store::state_cache::StateCache;
use crate::store::{PruneProgress, StoreError};

pub(super) struct Writer {
    connection: Connection,
    /// The lock of the file: held for as long as a thread uses the connection, also past the end of the store.
    lock: Arc<FileLock>,
    known: StateCache,
    counters: Arc<Mutex<UnwrittenCounters>>,
    /// `None` until the file has been read.
    file: Option<File>,
}

/// Whether a batch reads the rows of its keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyReads {
    /// Unless one of them is known to be bound.
    Skipped,
    All,
}

/// A decided batch of which only the keys are written.
struct Decided {
    read_at: Tick,
    now: StoreTime,
    file: File,
    ran: BatchResult,
    counters: CountersWritten,
}

/// A committed batch.
pub(super) struct Committed {
    pub(super) now: StoreTime,
    pub(super) read_at: Tick,
    pub(super) ran: BatchResult,
    /// Whether the range was deleted with it.
    pub(super) is_pruned: bool,
}

impl Writer {
    pub(super) fn new(
        connection: Connection,
        lock: Arc<FileLock>,
        counters: Arc<Mutex<UnwrittenCounters>>,
    ) -> Self {
        Self {
            connection,
            lock,
            known: StateCache::new(),
            counters,
            file: None,
        }
    }

    /// `journal_mode` and `synchronous` of this session.
    pub(super) fn settings(&self) -> rusqlite::Result<(String, i64)> {
        open::settings(&self.connection)
    }

    /// Applies a batch and returns the writer, except after an error. Blocks until the batch is on disk. A batch that
    /// writes also deletes a range of ended leases.
    pub(super) fn apply(
        mut self,
        operations: &[Operation],
        replica: &Arc<str>,
        clock: &StoreClock,
        range: Option<&PruneRange>,
    ) -> Result<(Self, Committed), StoreError> {
        begin(&self.connection, self.file)?;
        let decided = match self.decide(operations, replica, clock, KeyReads::Skipped)? {
            Some(decided) => decided,
            None => {
                self.connection.prepare_cached("ROLLBACK")?.execute([])?;
                begin(&self.connection, self.file)?;
                let decided = self.decide(operations, replica, clock, KeyReads::All)?;
                decided
                    .ok_or_else(|| StoreError::Corrupt("a key that was read is not the stored one".into()))?
            }
        };
        let Decided {
            read_at,
            now,
            file,
            mut ran,
            counters,
        } = decided;
        let is_written = !ran.changes.is_empty();
        let plan = is_written.then(|| self.counters.lock().plan(&ran.changes.resources, counters));
        if let Some(plan) = &plan {
            write::write(&self.connection, &ran.changes, plan, replica, now)?;
            if let Some(range) = range {
                prune::delete_leases(&self.connection, range)?;
            }
            if !ran.changes.keys.is_empty() {
                // More than were bound, so that keys do not accumulate.
                let count_max = ran.changes.keys.len() * 2;
                prune::delete_keys(&self.connection, keys_expired_before(now), count_max)?;
            }
        }
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        let mut unwritten = self.counters.lock();
        if counters == CountersWritten::All {
            unwritten.clear();
        }
        if let Some(plan) = plan {
            unwritten.commit(plan, now);
        }
        drop(unwritten);
        self.file = Some(file);
        self.known.put(std::mem::take(&mut ran.after));
        let committed = Committed {
            now,
            read_at,
            ran,
            is_pruned: is_written,
        };
        Ok((self, committed))
    }

    /// Runs a batch, in the open transaction, and writes its keys. `None` when one that was not read is bound.
    fn decide(
        &mut self,
        operations: &[Operation],
        replica: &Arc<str>,
        clock: &StoreClock,
        reads: KeyReads,
    ) -> Result<Option<Decided>, StoreError> {
        let (mut loaded, mut missing) = self.known.recall(BatchRequest::from_operations(operations));
        let are_keys_new = reads == KeyReads::Skipped && !missing.has_bound_keys;
        if are_keys_new {
            missing.keys.clear();
        }
        let mut counters = CountersWritten::No;
        let file = match self.file {
            Some(file) if missing.is_empty() => {
                loaded.floor = file.floor;
                file
            }
            _ => {
                self.write_all_counters()?;
                counters = CountersWritten::All;
                let file;
                (file, loaded) = load::load(&self.connection, missing, loaded)?;
                file
            }
        };
        // Read while the file is locked.
        let (read_at, now) = clock.now();
        loaded.now = now;
        let ran = run(loaded, operations, replica)?;
        let replaced_until = if are_keys_new {
            keys_expired_before(now)
        } else {
            StoreTime::from_ms(i64::MAX)
        };
        let is_bound = write::write_keys(&self.connection, &ran.changes, replaced_until)?;
        Ok(is_bound.then_some(Decided {
            read_at,
            now,
            file,
            ran,
            counters,
        }))
    }

    /// In the open transaction, before a read of `resource_tokens`.
    fn write_all_counters(&self) -> Result<(), StoreError> {
        if self.file.is_some() {
            let rows = self.counters.lock().rows();
            write::write_counters(&self.connection, &rows)?;
        } else {
            let mut restore = self.connection.prepare_cached(sql::RESTORE_COUNTERS)?;
            restore.execute([])?;
        }
        write::write_unwritten_from(&self.connection, None)
    }

    /// Writes all counters, so that the closed file has them.
    pub(super) fn close(self) -> Result<(), StoreError> {
        begin(&self.connection, self.file)?;
        self.write_all_counters()?;
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }

    /// Writes some of the counters that wait. Deletes these ranges of ended leases, and some of the idempotency keys and
    /// fencing rejections past their retention. Records how far the store's time is behind the wall clock, in
    /// milliseconds, if that has changed.
    pub(super) async fn maintain(
        self,
        leases: Vec<PruneRange>,
        now: StoreTime,
        behind_ms: Option<i64>,
    ) -> Result<(Self, PruneProgress), StoreError> {
        let Self {
            connection,
            lock,
            known,
            counters,
            file,
        } = self;
        let plan = counters.lock().plan_idle();
        let work = move |connection: &mut Connection| {
            connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
            if let Some(behind_ms) = behind_ms {
                connection
                    .prepare_cached(sql::CLOCK_BEHIND)?
                    .execute([behind_ms])?;
            }
            for range in &leases {
                prune::delete_leases(connection, range)?;
            }
            let is_current = is_unchanged(connection, file)?;
            if is_current {
                write::write_counters(connection, &plan.rows)?;
                write::write_unwritten_from(connection, plan.unwritten_from)?;
            }
            let keys = prune::delete_keys(connection, keys_expired_before(now), prune::IDLE_ROWS)?;
            let rejections = prune::delete_rejections(connection, rejections_recorded_before(now))?;
            connection.prepare_cached("COMMIT")?.execute([])?;
            Ok((keys.max(rejections), is_current.then_some(plan)))
        };
        let ((connection, lock), (deleted, plan)) = run_blocking(connection, lock, work).await?;
        if let Some(plan) = plan {
            counters.lock().commit(plan, now);
        }
        let writer = Self {
            connection,
            lock,
            known,
            counters,
            file,
        };
        // Some of the numbers may be unused.
        let progress = if deleted * 2 < prune::IDLE_ROWS {
            PruneProgress::Done
        } else {
            PruneProgress::More
        };
        Ok((writer, progress))
    }
}

/// Begins a transaction and fails if another connection has written since the last read.
fn begin(connection: &Connection, known: Option<File>) -> Result<(), StoreError> {
    connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    if known.is_none() || is_unchanged(connection, known)? {
        return Ok(());
    }
    Err(StoreError::Conflict)
}

/// Whether the file was read, and no other connection has written it since.
fn is_unchanged(connection: &Connection, known: Option<File>) -> Result<bool, StoreError> {
    Ok(match known {
        Some(known) => load::data_version(connection)? == known.data_version,
        None => false,
    })
}

/// Runs blocking work on a blocking thread. After an error, or without a receiver, the connection is dropped, and then the lock.
async fn run_blocking<T: Send + 'static>(
    mut connection: Connection,
    lock: Arc<FileLock>,
    work: impl FnOnce(&mut Connection) -> Result<T, StoreError> + Send + 'static,
) -> Result<((Connection, Arc<FileLock>), T), StoreError> {
    let task = tokio::task::spawn_blocking(move || {
        let value = work(&mut connection)?;
        Ok(((connection, lock), value))
    });
    let ended =
        |error: tokio::task::JoinError| StoreError::Corrupt(format!("the writer's thread ended: {error}"));
    task.await.map_err(ended)?
}
