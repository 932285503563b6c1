//! The store's clock on Postgres is the server's clock, steadied: when that is set back, all replicas add what it lost.
//!
//! Each reading is held against the one before and our own monotonic clock, before anything is decided by it. A step
//! back is added to `store_meta.clock_shift_ms`, once, whoever sees it first; when the server's clock is put right again,
//! as much is taken off. A clock that is set ahead of the true time is believed: nobody can tell that from a machine that
//! slept. A process that read nothing while it was so takes the others' word for it: what they added since its last
//! reading it does not take off.
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

    /// By how much it leaves open what the store's clock showed when.
    fn width_ms(self) -> i64 {
        self.received.since(self.sent)
    }

    /// A wide reading of now says less than a narrow one of before, until the two clocks may have drifted apart by as much
    /// as that: a thousandth of its age.
    fn says_more_than(self, before: Self) -> bool {
        let age_ms = self.received.since(before.received);
        self.width_ms() <= before.width_ms() + age_ms / 1_000
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Back,
    Ahead,
}

/// Of the readings that fitted the one that says most. Two processes differ by no more than the widths of theirs, which is
/// less than a step, so that what one puts right is no step to the other.
#[derive(Debug, Default)]
pub(super) struct Steady {
    kept: Mutex<Option<Kept>>,
}

#[derive(Debug, Clone, Copy)]
struct Kept {
    last: Reading,
    /// How far the store's time had come in any reading that fitted.
    seen: StoreTime,
}

impl Steady {
    fn kept(&self) -> Option<Kept> {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, last: Reading) {
        let kept = Kept { last, seen: last.now };
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept);
    }

    fn see(&self, now: StoreTime) {
        if let Some(kept) = &mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner) {
            kept.seen = kept.seen.max(now);
        }
    }

    /// Keeps a reading that fits the one before, or says how it does not.
    fn note(&self, reading: Reading) -> Option<Step> {
        if let Some(Kept { last, .. }) = self.kept() {
            if reading.now < last.earliest(reading.sent).plus(-STEP_MS) {
                return Some(Step::Back);
            }
            if reading.now > last.latest(reading.received).plus(STEP_MS) {
                return Some(Step::Ahead);
            }
            if !reading.says_more_than(last) {
                self.see(reading.now);
                return None;
            }
        }
        self.keep(reading);
        None
    }
}

/// Older readings than this tell nothing of now, in milliseconds: whoever serves reads the clock a few times a second.
const AGE_MS_MAX: i64 = 5_000;

impl Steady {
    /// No earlier than what the store's clock shows at `at`, and a few milliseconds off at most. None when it was not read
    /// for long. Both clocks are read in whole milliseconds, hence the two.
    pub(super) fn reckon(&self, at: Tick) -> Option<StoreTime> {
        let Kept { last, .. } = self.kept()?;
        (at.since(last.received) <= AGE_MS_MAX).then(|| last.latest(at).plus(2))
    }

    /// Takes note of what the clock showed to a batch that is written: it was decided within a step of that. A step is left
    /// for the next reading to find.
    pub(super) fn showed(&self, sent: Tick, received: Tick, now: StoreTime) {
        let _step = self.note(Reading { sent, received, now });
    }
}

impl PostgresStore {
    /// The store's time out of an answer to what was sent at `sent`.
    ///
    /// What it puts right it writes over a reader's connection, because the caller's transaction is rolled back. One that is
    /// made here for a lane is heard by the lane's thread, and ends with it.
    ///
    /// # Errors
    /// `Conflict` when the clock had stepped: it is put right, and may be read again.
    pub(super) async fn steady(&self, sent: Tick, now: StoreTime) -> Result<(), StoreError> {
        let received = self.clock.tick();
        let reading = Reading { sent, received, now };
        let Some(step) = self.steady.note(reading) else {
            return Ok(());
        };
        let Some(Kept { last, seen }) = self.steady.kept() else {
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
        let query = sqlx::query(statement).bind(earliest.ms()).bind(bound.ms());
        let query = match step {
            Step::Back => query,
            Step::Ahead => query.bind(seen.ms()),
        };
        let done = query.execute(&self.readers).await?;
        if done.rows_affected() > 0 {
            tracing::warn!(
                clock.earliest_ms = earliest.ms(),
                clock.shown_ms = now.ms(),
                "the clock of the lease store's Postgres was set: the store's own time goes on as before"
            );
        } else if step == Step::Ahead {
            // Another replica has taken it off already, or has added it since we last looked, or nothing is left to take
            // off and it is that late: what it shows now is the time, and not what the answer showed.
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
    fn a_narrow_reading_is_kept_until_it_is_old() {
        // A starved process reads once within 2 ms, then within 400: what it puts right would be off by as much.
        let steady = Steady::default();
        assert_eq!(steady.note(reading(0, 2, 1_000_000)), None);
        assert_eq!(steady.note(reading(1_000, 1_400, 1_001_001)), None);
        let kept = steady.kept().unwrap();
        assert_eq!(kept.seen, StoreTime::from_ms(1_001_001));
        let kept = kept.last;
        assert_eq!(kept.earliest(Tick(2_000)), StoreTime::from_ms(1_001_998));
        assert_eq!(steady.note(reading(500_000, 500_400, 1_500_001)), None);
        assert_eq!(steady.kept().unwrap().last, reading(500_000, 500_400, 1_500_001));
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
