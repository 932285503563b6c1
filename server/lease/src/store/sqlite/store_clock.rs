//! The store's clock: begins at the wall clock, is driven by the process's monotonic clock, and is never behind the last time
//! recorded in the file.
//!
//! While a server runs, its store time does not follow a wall clock that is set ahead, and does not count a suspension of the
//! machine; the next start adds both. It shifts the times of leases that have not ended, and of lock-delays and keys that
//! have not expired, by the same amount, so that each keeps its time left. Ended leases are shifted only where a key answers with them; the others are deleted
//! that much earlier.
//!
//! **Invariant:** store time never goes back.

use std::sync::atomic::{AtomicI64, Ordering};

use domain::lease::StoreTime;
use domain::tick::Tick;
use sqlx::SqliteConnection;

use super::sql;
use crate::store::retention::keys_expired_before;
use runtime::clock::Clock;

/// A smaller change of the difference between the two clocks is not recorded. Milliseconds.
const STEP_MS: i64 = 250;

pub(super) struct StoreClock {
    clock: Clock,
    at_start: StoreTime,
    started: Tick,
    /// How far the store's time was behind the wall clock when that was last recorded. Milliseconds.
    recorded_behind_ms: AtomicI64,
}

impl StoreClock {
    /// Continues the time of a file that no server has open.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub(super) async fn begin(writer: &mut SqliteConnection, clock: Clock) -> Result<Self, sqlx::Error> {
        let reading = clock.now();
        let wall_ms = reading.wall.timestamp_millis();
        let recorded = RecordedTime::read(writer).await?;
        let continued_ms = recorded.continued_ms(wall_ms);
        let at_start_ms = continued_ms.max(wall_ms);
        if recorded.behind_ms > 0 {
            shift_times(writer, continued_ms, at_start_ms).await?;
        }
        let moved_ms = at_start_ms - continued_ms;
        if moved_ms > 0 {
            tracing::info!(
                clock.moved_ms = moved_ms,
                "while the last server ran, the wall clock was set ahead or this machine was suspended: leases keep their time left"
            );
        }
        Ok(Self {
            clock,
            at_start: StoreTime::from_ms(at_start_ms),
            started: reading.tick,
            recorded_behind_ms: AtomicI64::new(0),
        })
    }

    pub(super) fn now(&self) -> (Tick, StoreTime) {
        let tick = self.clock.tick();
        (tick, self.at(tick))
    }

    fn at(&self, tick: Tick) -> StoreTime {
        self.at_start.plus(tick.since(self.started))
    }

    /// How far the store's time is behind the wall clock, in milliseconds, if that has changed since it was recorded.
    pub(super) fn unrecorded_behind_ms(&self) -> Option<i64> {
        let reading = self.clock.now();
        let behind_ms = (reading.wall.timestamp_millis() - self.at(reading.tick).ms()).max(0);
        let recorded_ms = self.recorded_behind_ms.load(Ordering::Relaxed);
        ((behind_ms - recorded_ms).abs() > STEP_MS).then_some(behind_ms)
    }

    /// Call after the commit.
    pub(super) fn set_recorded(&self, behind_ms: i64) {
        self.recorded_behind_ms.store(behind_ms, Ordering::Relaxed);
    }
}

/// The time of a file that no server has open, in milliseconds since 1970. It may be behind the wall clock.
///
/// # Errors
/// The file cannot be read.
pub(crate) async fn time_ms(reader: &mut SqliteConnection, wall_ms: i64) -> Result<i64, sqlx::Error> {
    Ok(RecordedTime::read(reader).await?.continued_ms(wall_ms))
}

struct RecordedTime {
    clock_ms: i64,
    behind_ms: i64,
}

impl RecordedTime {
    async fn read(reader: &mut SqliteConnection) -> Result<Self, sqlx::Error> {
        let query = sqlx::query_as(sql::RECORDED_TIME);
        let (clock_ms, behind_ms): (i64, i64) = query.fetch_one(reader).await?;
        Ok(Self { clock_ms, behind_ms })
    }

    /// The store's time, if the wall clock has not been set since the difference was recorded.
    fn continued_ms(&self, wall_ms: i64) -> i64 {
        self.clock_ms.max(wall_ms - self.behind_ms)
    }
}

/// Shifts the times of everything that has not expired at the store's time `from_ms`, in one transaction with the store's
/// time itself.
async fn shift_times(writer: &mut SqliteConnection, from_ms: i64, to_ms: i64) -> Result<(), sqlx::Error> {
    let shift_ms = to_ms - from_ms;
    let keys_from_ms = keys_expired_before(StoreTime::from_ms(from_ms)).ms();
    sqlx::query("BEGIN IMMEDIATE").execute(&mut *writer).await?;
    for (statement, live_after_ms) in [
        (sql::SHIFT_LEASES, from_ms),
        (sql::SHIFT_LOCK_DELAYS, from_ms),
        (sql::SHIFT_ENDED, keys_from_ms),
        (sql::SHIFT_KEYS, keys_from_ms),
    ] {
        let query = sqlx::query(statement).bind(live_after_ms).bind(shift_ms);
        query.execute(&mut *writer).await?;
    }
    sqlx::query(sql::SHIFT_CLOCK)
        .bind(to_ms)
        .execute(&mut *writer)
        .await?;
    sqlx::query("COMMIT").execute(&mut *writer).await?;
    Ok(())
}
