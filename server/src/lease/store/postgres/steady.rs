//! The store's clock on Postgres is the server's clock, steadied: when that is set back, all replicas add what it lost.
//!
//! Each reading is held against the one before and our own monotonic clock, before anything is decided by it. A step
//! back is added to `store_meta.clock_shift_ms`, once, whoever sees it first; when the server's clock is put right again,
//! as much is taken off. A clock that is set ahead of the true time is believed: nobody can tell that from a machine that
//! slept.
//!
//! **Invariant:** a batch that read the time of a step is rolled back and decides anew.

use std::sync::{Mutex, PoisonError};

use domain::lease::StoreTime;
use domain::observation::Tick;

use super::{PostgresStore, sql};
use crate::lease::store::StoreError;

/// What a clock that is steered, or read over a slow network, may be off without anybody having set it, in milliseconds.
pub(super) const STEP_MS: i64 = 250;

/// The store's time at some moment between two of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reading {
    sent: Tick,
    received: Tick,
    now: StoreTime,
}

impl Reading {
    /// What the store's clock shows at least in an answer to what is sent now.
    fn earliest(self, sent: Tick) -> StoreTime {
        self.now.plus(sent.since(self.received))
    }

    /// What it shows at most in an answer that is here now.
    fn latest(self, received: Tick) -> StoreTime {
        self.now.plus(received.since(self.sent))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Back,
    Ahead,
}

/// The last reading that fitted.
#[derive(Debug, Default)]
pub(super) struct Steady {
    last: Mutex<Option<Reading>>,
}

impl Steady {
    fn last(&self) -> Option<Reading> {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, reading: Reading) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(reading);
    }

    /// Keeps a reading that fits the one before, or says how it does not.
    fn note(&self, reading: Reading) -> Option<Step> {
        if let Some(last) = self.last() {
            if reading.now < last.earliest(reading.sent).plus(-STEP_MS) {
                return Some(Step::Back);
            }
            if reading.now > last.latest(reading.received).plus(STEP_MS) {
                return Some(Step::Ahead);
            }
        }
        self.keep(reading);
        None
    }
}

impl PostgresStore {
    /// The store's time out of an answer to what was sent at `sent`.
    ///
    /// # Errors
    /// `Conflict` when the clock had stepped: it is put right, and may be read again.
    pub(super) async fn steady(&self, sent: Tick, now: StoreTime) -> Result<(), StoreError> {
        let received = self.clock.tick();
        let reading = Reading { sent, received, now };
        let Some(step) = self.steady.note(reading) else {
            return Ok(());
        };
        let Some(last) = self.steady.last() else {
            return Ok(());
        };
        let sent = self.clock.tick();
        let earliest = last.earliest(sent);
        // What has to be beaten for a step. Either way the clock goes on from the earliest: better a lease lives a few
        // milliseconds longer than that it ends before its time.
        let (statement, bound) = match step {
            Step::Back => (sql::STEPPED_BACK, earliest.plus(-STEP_MS)),
            Step::Ahead => (sql::STEPPED_AHEAD, last.latest(sent).plus(STEP_MS)),
        };
        let done = sqlx::query(statement)
            .bind(earliest.ms())
            .bind(bound.ms())
            .execute(&self.readers)
            .await?;
        if done.rows_affected() > 0 {
            tracing::warn!(
                clock.earliest_ms = earliest.ms(),
                clock.shown_ms = now.ms(),
                "the clock of the lease store's Postgres was set: the store's own time goes on as before"
            );
        } else if step == Step::Ahead {
            // Another replica has taken it off already, or nothing is left to take off and it is that late: what it
            // shows now is the time, and not what the answer showed.
            let sent = self.clock.tick();
            let now: i64 = sqlx::query_scalar(sql::CLOCK).fetch_one(&self.readers).await?;
            self.steady.keep(Reading {
                sent,
                received: self.clock.tick(),
                now: StoreTime::from_ms(now),
            });
        }
        Err(StoreError::Conflict)
    }

    /// Reads once more when the clock had stepped meanwhile.
    pub(super) async fn reading<T, F>(&self, read: impl Fn() -> F + Send + Sync) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>> + Send,
    {
        match read().await {
            Err(StoreError::Conflict) => read().await,
            done => done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(sent: i64, received: i64, now: i64) -> Reading {
        Reading {
            sent: Tick(sent),
            received: Tick(received),
            now: StoreTime::from_ms(now),
        }
    }

    #[test]
    fn a_slow_answer_is_no_step() {
        // Read somewhere within an answer that took five seconds: any of its moments fits.
        for shown in [1_000_100, 1_002_000, 1_005_100] {
            let steady = Steady::default();
            assert_eq!(steady.note(reading(0, 0, 1_000_000)), None);
            assert_eq!(steady.note(reading(100, 5_100, shown)), None, "{shown}");
        }
    }

    #[test]
    fn a_process_that_was_stopped_sees_no_step() {
        // Stopped for a minute before it sent, and then for another before it looked at the answer.
        let steady = Steady::default();
        assert_eq!(steady.note(reading(0, 60_000, 1_000_000)), None);
        assert_eq!(steady.note(reading(60_000, 180_000, 1_120_000)), None);
        assert_eq!(steady.note(reading(180_000, 180_001, 1_180_000)), None);
    }

    #[test]
    fn a_clock_that_was_set_is_found_and_not_believed() {
        // A second back, and an hour ahead: both are held against the last reading that fitted.
        let steady = Steady::default();
        assert_eq!(steady.note(reading(0, 10, 1_000_000)), None);
        assert_eq!(steady.note(reading(100, 110, 999_100)), Some(Step::Back));
        assert_eq!(steady.note(reading(100, 110, 999_100)), Some(Step::Back));
        assert_eq!(steady.note(reading(200, 210, 4_600_200)), Some(Step::Ahead));
        assert_eq!(steady.note(reading(300, 310, 1_000_300)), None);
    }

    #[test]
    fn a_clock_that_is_steered_is_no_step() {
        // A fifth of a second either way.
        let steady = Steady::default();
        assert_eq!(steady.note(reading(0, 0, 1_000_000)), None);
        assert_eq!(steady.note(reading(1_000, 1_000, 1_000_800)), None);
        assert_eq!(steady.note(reading(2_000, 2_000, 1_002_000)), None);
    }
}
