//! The store's clock on Postgres: the server's clock made monotonic. When it is set back, all
//! replicas add the difference.
//!
//! Each reading is compared with the previous one and with our own monotonic clock before a batch uses it. A step back is added
//! to `store_meta.clock_offset_ms` once, by the first replica that detects it; when the server's clock is corrected later, the
//! shift is reduced accordingly. A clock set ahead is accepted, because that cannot be distinguished from a machine that was
//! suspended. A process that made no reading in the meantime never removes a shift that was added after its last reading. Nor
//! does it remove one while another process has saved a time that is ahead of its own clock, because then its own machine was
//! suspended.
//!
//! **Invariant:** a batch that read the time of a step is rolled back and repeated.

use domain::lease::StoreTime;
use domain::tick::Tick;
use parking_lot::Mutex;

use super::{PostgresStore, sql};
use crate::store::StoreError;

/// Tolerance in milliseconds for a slewed clock or a slow network; larger differences are steps.
pub(super) const STEP_MS: i64 = 250;

/// The store's time at some moment between two readings of our clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reading {
    sent: Tick,
    received: Tick,
    now: StoreTime,
}

impl Reading {
    /// Earliest store time possible in the answer to a query sent at `sent`.
    fn earliest(self, sent: Tick) -> StoreTime {
        self.now.plus(sent.since(self.received))
    }

    /// Latest store time possible in an answer received at `received`.
    fn latest(self, received: Tick) -> StoreTime {
        self.now.plus(received.since(self.sent))
    }

    /// Uncertainty of the reading in milliseconds.
    fn width_ms(self) -> i64 {
        self.received.since(self.sent)
    }

    /// Whether this reading is at least as precise as an earlier one, allowing for a clock drift
    /// of 1/1000 of the age of the earlier one.
    fn is_more_precise_than(self, before: Self) -> bool {
        let age_ms = self.received.since(before.received);
        self.width_ms() <= before.width_ms() + age_ms / 1_000
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Back,
    Ahead,
}

/// Keeps the most precise consistent reading. Two processes differ by at most the uncertainty of
/// their readings, which is less than a step, so a correction by one is never a step for the
/// other.
#[derive(Debug, Default)]
pub(super) struct MonotonicClock {
    last_reading: Mutex<Option<LastReading>>,
}

#[derive(Debug, Clone, Copy)]
struct LastReading {
    last: Reading,
    /// Latest store time of any consistent reading.
    seen: StoreTime,
}

impl MonotonicClock {
    fn last_reading(&self) -> Option<LastReading> {
        *self.last_reading.lock()
    }

    fn store(&self, last: Reading) {
        let last_reading = LastReading { last, seen: last.now };
        *self.last_reading.lock() = Some(last_reading);
    }

    fn advance_latest(&self, now: StoreTime) {
        if let Some(last_reading) = &mut *self.last_reading.lock() {
            last_reading.seen = last_reading.seen.max(now);
        }
    }

    /// Stores a consistent reading, or returns the detected step.
    fn observe(&self, reading: Reading) -> Option<Step> {
        if let Some(LastReading { last, .. }) = self.last_reading() {
            if reading.now < last.earliest(reading.sent).plus(-STEP_MS) {
                return Some(Step::Back);
            }
            if reading.now > last.latest(reading.received).plus(STEP_MS) {
                return Some(Step::Ahead);
            }
            if !reading.is_more_precise_than(last) {
                self.advance_latest(reading.now);
                return None;
            }
        }
        self.store(reading);
        None
    }
}

/// Age limit of a reading in milliseconds; a serving process reads the clock a few times a
/// second.
const AGE_MS_MAX: i64 = 5_000;

impl MonotonicClock {
    /// Upper estimate of the store time at `at`, a few milliseconds off at most; `None` if the
    /// last reading is too old. Both clocks have whole milliseconds, hence the 2.
    pub(super) fn estimate(&self, at: Tick) -> Option<StoreTime> {
        let LastReading { last, .. } = self.last_reading()?;
        (at.since(last.received) <= AGE_MS_MAX).then(|| last.latest(at).plus(2))
    }

    /// Records the store time that was returned by a write: the batch was decided within one
    /// step of it. A step is handled at the next reading.
    pub(super) fn record_shown(&self, sent: Tick, received: Tick, now: StoreTime) {
        let _step = self.observe(Reading { sent, received, now });
    }
}

impl PostgresStore {
    /// Checks the store time in the answer to a query sent at `sent`.
    ///
    /// A correction uses a reader's connection, because the caller's transaction is rolled back.
    /// Connections made here belong to the lane's thread and end with it.
    ///
    /// # Errors
    /// `Conflict` when the clock had stepped: it is corrected and may be read again.
    pub(super) async fn check_clock(&self, sent: Tick, now: StoreTime) -> Result<(), StoreError> {
        let received = self.clock.tick();
        let reading = Reading { sent, received, now };
        let Some(step) = self.monotonic.observe(reading) else {
            return Ok(());
        };
        let Some(LastReading { last, seen }) = self.monotonic.last_reading() else {
            return Ok(());
        };
        let sent = self.clock.tick();
        let earliest = last.earliest(sent);
        // Threshold of a step. In either direction the clock continues from the earliest
        // possible time: a lease may live a few milliseconds longer, never shorter.
        let (statement, bound) = match step {
            Step::Back => (sql::STEPPED_BACK, earliest.plus(-STEP_MS)),
            Step::Ahead => (sql::STEPPED_AHEAD, last.latest(sent).plus(STEP_MS)),
        };
        let query = sqlx::query(statement).bind(earliest.ms()).bind(bound.ms());
        let query = match step {
            Step::Back => query,
            Step::Ahead => query.bind(seen.ms()),
        };
        let result = query.execute(&self.readers).await?;
        if result.rows_affected() > 0 {
            tracing::warn!(
                clock.earliest_ms = earliest.ms(),
                clock.shown_ms = now.ms(),
                "the clock of the lease store's Postgres was set; the store time continues unchanged"
            );
        } else if step == Step::Ahead {
            // Another replica has already removed the shift, or has added it since our last
            // reading, or has gone on while we were suspended, or no shift is left and the time
            // really is that late: accept the current time instead of the one in the answer.
            let sent = self.clock.tick();
            let now: i64 = sqlx::query_scalar(sql::CLOCK).fetch_one(&self.readers).await?;
            self.monotonic.store(Reading {
                sent,
                received: self.clock.tick(),
                now: StoreTime::from_ms(now),
            });
        }
        Err(StoreError::Conflict)
    }

    /// Repeats a read once if the clock stepped during it.
    pub(super) async fn retry_after_step<T, F>(
        &self,
        read: impl Fn() -> F + Send + Sync,
    ) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>> + Send,
    {
        match read().await {
            Err(StoreError::Conflict) => read().await,
            result => result,
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
        // An answer that took five seconds may contain any time in between.
        for shown in [1_000_100, 1_002_000, 1_005_100] {
            let steady = MonotonicClock::default();
            assert_eq!(steady.observe(reading(0, 0, 1_000_000)), None);
            assert_eq!(steady.observe(reading(100, 5_100, shown)), None, "{shown}");
        }
    }

    #[test]
    fn a_paused_process_detects_no_step() {
        // Paused for a minute before sending, and for another before receiving.
        let steady = MonotonicClock::default();
        assert_eq!(steady.observe(reading(0, 60_000, 1_000_000)), None);
        assert_eq!(steady.observe(reading(60_000, 180_000, 1_120_000)), None);
        assert_eq!(steady.observe(reading(180_000, 180_001, 1_180_000)), None);
    }

    #[test]
    fn a_step_is_detected_and_rejected() {
        // One second back and one hour ahead, both compared with the last consistent reading.
        let steady = MonotonicClock::default();
        assert_eq!(steady.observe(reading(0, 10, 1_000_000)), None);
        assert_eq!(steady.observe(reading(100, 110, 999_100)), Some(Step::Back));
        assert_eq!(steady.observe(reading(100, 110, 999_100)), Some(Step::Back));
        assert_eq!(steady.observe(reading(200, 210, 4_600_200)), Some(Step::Ahead));
        assert_eq!(steady.observe(reading(300, 310, 1_000_300)), None);
    }

    #[test]
    fn a_precise_reading_is_kept_until_it_is_old() {
        // A slow process reads once within 2 ms, then within 400 ms: a correction by the second
        // would be that imprecise.
        let steady = MonotonicClock::default();
        assert_eq!(steady.observe(reading(0, 2, 1_000_000)), None);
        assert_eq!(steady.observe(reading(1_000, 1_400, 1_001_001)), None);
        let last_reading = steady.last_reading().unwrap();
        assert_eq!(last_reading.seen, StoreTime::from_ms(1_001_001));
        let last_reading = last_reading.last;
        assert_eq!(last_reading.earliest(Tick(2_000)), StoreTime::from_ms(1_001_998));
        assert_eq!(steady.observe(reading(500_000, 500_400, 1_500_001)), None);
        assert_eq!(
            steady.last_reading().unwrap().last,
            reading(500_000, 500_400, 1_500_001)
        );
    }

    #[test]
    fn a_slewed_clock_is_no_step() {
        // 200 ms in either direction.
        let steady = MonotonicClock::default();
        assert_eq!(steady.observe(reading(0, 0, 1_000_000)), None);
        assert_eq!(steady.observe(reading(1_000, 1_000, 1_000_800)), None);
        assert_eq!(steady.observe(reading(2_000, 2_000, 1_002_000)), None);
    }
}
