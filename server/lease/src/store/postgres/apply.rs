//! How a batch is applied: based on the optimistic cache, or on a read without locks, and
//! written only if none of the rows has changed since. One or two round trips, and no replica
//! waits for a process that pauses in between. After a conflict the batch is repeated under row
//! locks.
//!
//! **Invariant:** no result is returned before its commit: each statement without locks is a
//! transaction of its own, and sqlx reads a response to its end, which follows the commit. A
//! result never comes from the cache alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use domain::lease::StoreTime;
use domain::tick::Tick;
use parking_lot::MutexGuard;
use sqlx::postgres::PgConnection;

use super::PostgresStore;
use super::load::{LoadRequest, LoadedRows, LoadedState};
use super::monotonic_clock::STEP_MS;
use super::optimistic_cache::{OptimisticCache, StateAfter};
use super::save::{SaveRequest, save};
use crate::batch::{BatchResult, run};
use crate::operation::{Applied, Operation};
use crate::store::batch_request::BatchRequest;
use crate::store::{Lane, StoreError};

/// Number of batches that use row locks directly after a conflict: where several replicas want
/// the same resources, optimistic attempts are wasted.
const LOCKED_BATCHES: u32 = 16;

/// Remaining batches that use row locks.
#[derive(Debug, Default)]
pub(super) struct ConflictBackoff(AtomicU32);

impl ConflictBackoff {
    fn record_conflict(&self) {
        self.0.store(LOCKED_BATCHES, Ordering::Relaxed);
    }

    /// Whether the next batch should use row locks.
    fn take(&self) -> bool {
        let decrement = |left: u32| left.checked_sub(1);
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, decrement)
            .is_ok()
    }
}

impl PostgresStore {
    pub(super) async fn write(&self, lane: Lane, operations: &[Operation]) -> Result<Applied, StoreError> {
        let mut slot = match lane {
            Lane::Urgent => self.urgent.lock().await,
            Lane::Main => self.free_connection().await,
        };
        let mut connection = match slot.take() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        let applied = self.apply_batch(&mut connection, operations).await?;
        self.enqueue_notice(&applied);
        *slot = Some(connection);
        Ok(applied)
    }

    /// An unused connection of the main lanes; there are as many as lanes.
    async fn free_connection(&self) -> tokio::sync::MutexGuard<'_, Option<PgConnection>> {
        let free = self.main.iter().find_map(|slot| slot.try_lock().ok());
        match free {
            Some(slot) => slot,
            None => self.main[0].lock().await,
        }
    }

    async fn apply_batch(
        &self,
        connection: &mut PgConnection,
        operations: &[Operation],
    ) -> Result<Applied, StoreError> {
        if !self.backoff.take() {
            match self.write_optimistically(connection, operations).await {
                Err(StoreError::Conflict) => self.backoff.record_conflict(),
                result => return result,
            }
        }
        let request = LoadRequest::from_request(&BatchRequest::from_operations(operations));
        sqlx::query("BEGIN").execute(&mut *connection).await?;
        request.lock(connection).await?;
        let rows = self.load(connection, &request).await?;
        let pending = PendingWrite::new(rows, operations, &self.replica)?;
        let (applied, after) = self.save_pending(connection, pending, None).await?;
        sqlx::query("COMMIT").execute(&mut *connection).await?;
        self.cache().put(after);
        Ok(applied)
    }

    async fn write_optimistically(
        &self,
        connection: &mut PgConnection,
        operations: &[Operation],
    ) -> Result<Applied, StoreError> {
        let batch_request = BatchRequest::from_operations(operations);
        let recalled = self
            .cache()
            .recall(batch_request, self.clock.tick(), &self.monotonic);
        let recalled = recalled.map(|rows| PendingWrite::new(rows, operations, &self.replica));
        // A batch without changes is not checked by a write, so a refusal must come from the tables.
        if let Some(pending) = recalled.transpose()?
            && !pending.ran.changes.is_empty()
        {
            let are_keys_new = pending.seen.are_keys_new;
            match self.save_decided(connection, pending).await {
                // One of the keys may be bound: read them.
                Err(StoreError::Conflict) if are_keys_new => {}
                result => return result,
            }
        }
        let request = LoadRequest::from_request(&BatchRequest::from_operations(operations));
        let rows = self.load(connection, &request).await?;
        let pending = PendingWrite::new(rows, operations, &self.replica)?;
        self.save_decided(connection, pending).await
    }

    /// Writes a batch that was decided without locks. Within a clock step a decision is as good as one made now.
    async fn save_decided(
        &self,
        connection: &mut PgConnection,
        pending: PendingWrite,
    ) -> Result<Applied, StoreError> {
        let (applied, after) = self.save_pending(connection, pending, Some(STEP_MS)).await?;
        self.cache().put(after);
        Ok(applied)
    }

    async fn load(
        &self,
        connection: &mut PgConnection,
        request: &LoadRequest,
    ) -> Result<LoadedRows, StoreError> {
        let rows = request.load(connection, &self.clock).await?;
        self.check_clock(rows.read_at, rows.loaded.now).await?;
        Ok(rows)
    }

    /// Writes the changes of a batch, if there are any.
    async fn save_pending(
        &self,
        connection: &mut PgConnection,
        pending: PendingWrite,
        max_age_ms: Option<i64>,
    ) -> Result<(Applied, StateAfter), StoreError> {
        let PendingWrite {
            read_at,
            now,
            mut seen,
            mut ran,
        } = pending;
        let after = StateAfter {
            floor: seen.floor,
            more: std::mem::take(&mut seen.more),
            states: std::mem::take(&mut ran.after),
        };
        if !ran.changes.is_empty() {
            let request = SaveRequest {
                seen,
                changes: &ran.changes,
                replica: &self.replica,
                decided_at: now,
                max_age_ms,
            };
            let sent = self.clock.tick();
            let shown_at = save(connection, request).await?;
            self.monotonic.record_shown(sent, self.clock.tick(), shown_at);
        }
        Ok((ran.applied(now, read_at), after))
    }

    fn cache(&self) -> MutexGuard<'_, OptimisticCache> {
        self.cache.lock()
    }
}

/// A batch that was run and is not yet written.
struct PendingWrite {
    read_at: Tick,
    now: StoreTime,
    seen: LoadedState,
    ran: BatchResult,
}

impl PendingWrite {
    fn new(rows: LoadedRows, operations: &[Operation], replica: &Arc<str>) -> Result<Self, StoreError> {
        Ok(Self {
            read_at: rows.read_at,
            now: rows.loaded.now,
            seen: rows.seen,
            ran: run(rows.loaded, operations, replica)?,
        })
    }
}

#[cfg(test)]
mod tests;
