//! How a batch is applied: decided on what is remembered, or looked at without locks, and written if nothing of it has
//! changed since. One or two round trips, and nobody waits for a process that stops between them. What met somebody else is
//! done again behind row locks.
//!
//! **Invariant:** nothing is answered before its commit: each statement without locks is a transaction of its own, and sqlx
//! reads an answer to its end, which comes after the commit. What is remembered alone answers nothing.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError};

use domain::lease::StoreTime;
use domain::observation::Tick;
use sqlx::postgres::PgConnection;

use super::PostgresStore;
use super::load::{Looked, Seen, Wanted};
use super::remembered::{After, Remembered};
use super::save::{Outcome, save};
use super::steady::STEP_MS;
use crate::lease::batch::{Ran, run};
use crate::lease::operation::{Applied, Operation};
use crate::lease::store::asked::Asked;
use crate::lease::store::{Lane, StoreError};

/// So many batches go behind locks at once after one has met somebody: where several replicas want the same resources, to
/// try without is wasted.
const WARY: u32 = 16;

/// How many batches are still to go behind locks.
#[derive(Debug, Default)]
pub(super) struct Wary(AtomicU32);

impl Wary {
    fn met_somebody(&self) {
        self.0.store(WARY, Ordering::Relaxed);
    }

    /// Whether the next batch is to go behind locks.
    fn take(&self) -> bool {
        let less = |left: u32| left.checked_sub(1);
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
            .is_ok()
    }
}

impl PostgresStore {
    pub(super) async fn write(&self, lane: Lane, operations: &[Operation]) -> Result<Applied, StoreError> {
        let mut slot = match lane {
            Lane::Urgent => self.urgent.lock().await,
            Lane::Main => self.free().await,
        };
        let mut connection = match slot.take() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        let applied = self.batch(&mut connection, operations).await?;
        *slot = Some(connection);
        Ok(applied)
    }

    /// A connection of the main lanes that nobody uses: there are as many as lanes.
    async fn free(&self) -> tokio::sync::MutexGuard<'_, Option<PgConnection>> {
        let free = self.main.iter().find_map(|slot| slot.try_lock().ok());
        match free {
            Some(slot) => slot,
            None => self.main[0].lock().await,
        }
    }

    async fn batch(
        &self,
        connection: &mut PgConnection,
        operations: &[Operation],
    ) -> Result<Applied, StoreError> {
        if !self.wary.take() {
            match self.without_locks(connection, operations).await {
                Err(StoreError::Conflict) => self.wary.met_somebody(),
                done => return done,
            }
        }
        let wanted = Wanted::of(&Asked::of(operations));
        sqlx::query("BEGIN").execute(&mut *connection).await?;
        wanted.lock(connection).await?;
        let looked = self.look(connection, &wanted).await?;
        let decided = Decided::of(looked, operations, &self.replica)?;
        let (applied, after) = self.settle(connection, decided, None).await?;
        sqlx::query("COMMIT").execute(&mut *connection).await?;
        self.remembered().keep(after);
        Ok(applied)
    }

    async fn without_locks(
        &self,
        connection: &mut PgConnection,
        operations: &[Operation],
    ) -> Result<Applied, StoreError> {
        let asked = Asked::of(operations);
        let recalled = self.remembered().recall(asked, self.clock.tick(), &self.steady);
        let recalled = recalled.map(|looked| Decided::of(looked, operations, &self.replica));
        let decided = match recalled.transpose()? {
            Some(decided) if !decided.ran.changes.is_empty() => decided,
            // Nothing to write is nothing to be held against: whoever is only refused hears it from the tables.
            _ => {
                let wanted = Wanted::of(&Asked::of(operations));
                let looked = self.look(connection, &wanted).await?;
                Decided::of(looked, operations, &self.replica)?
            }
        };
        // Within a step of the clock what was decided is as good as what would be decided now.
        let (applied, after) = self.settle(connection, decided, Some(STEP_MS)).await?;
        self.remembered().keep(after);
        Ok(applied)
    }

    async fn look(&self, connection: &mut PgConnection, wanted: &Wanted) -> Result<Looked, StoreError> {
        let looked = wanted.look(connection, &self.clock).await?;
        self.steady(looked.read_at, looked.loaded.now).await?;
        Ok(looked)
    }

    /// Writes what was decided, if there is anything to write.
    async fn settle(
        &self,
        connection: &mut PgConnection,
        decided: Decided,
        patience_ms: Option<i64>,
    ) -> Result<(Applied, After), StoreError> {
        let Decided {
            read_at,
            now,
            mut seen,
            mut ran,
        } = decided;
        let after = After {
            floor: seen.floor,
            more: std::mem::take(&mut seen.more),
            states: std::mem::take(&mut ran.after),
        };
        if !ran.changes.is_empty() {
            let outcome = Outcome {
                seen,
                changes: &ran.changes,
                replica: &self.replica,
                decided_at: now,
                patience_ms,
                notice: self.notice(&ran)?,
            };
            let sent = self.clock.tick();
            let shown_at = save(connection, outcome).await?;
            self.steady.showed(sent, self.clock.tick(), shown_at);
        }
        Ok((ran.applied(now, read_at), after))
    }

    fn remembered(&self) -> MutexGuard<'_, Remembered> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A batch that waits to be written.
struct Decided {
    read_at: Tick,
    now: StoreTime,
    seen: Seen,
    ran: Ran,
}

impl Decided {
    fn of(looked: Looked, operations: &[Operation], replica: &Arc<str>) -> Result<Self, StoreError> {
        Ok(Self {
            read_at: looked.read_at,
            now: looked.loaded.now,
            seen: looked.seen,
            ran: run(looked.loaded, operations, replica)?,
        })
    }
}

#[cfg(test)]
mod tests;
