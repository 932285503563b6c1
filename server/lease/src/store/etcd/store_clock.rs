//! The store's clock on etcd: each replica's monotonic clock with an offset that only grows.
//!
//! The offset comes from the wall clock when the first replica starts, and from the other replicas while there are any (see
//! `clock_sync`): a wall clock that is set has no effect on a running replica. Each records how far the store's time is behind
//! its wall clock, and a start without other replicas keeps that difference, so that no lease ends early. A replica follows the
//! most advanced clock that it receives, so two replicas differ by the delay of a message. A lease stays held for
//! `max_clock_skew` after its expiry, so that the replica with the most advanced clock ends no lease that is live by the clock of
//! the replica that granted it.
//!
//! **Invariant**: store time never goes back.

use domain::lease::StoreTime;
use domain::tick::Tick;
use parking_lot::Mutex;
use runtime::clock::Clock;

pub(super) struct StoreClock {
    clock: Clock,
    /// Store time in milliseconds minus our tick.
    offset_ms: Mutex<i64>,
    /// Wall clock in milliseconds minus our tick, when the offset was last compared with the cluster's.
    wall_ms: Mutex<i64>,
}

/// A larger difference between the progress of the wall clock and of the monotonic clock means that the machine was
/// suspended, or that the wall clock was set. Milliseconds.
const STEP_MS: i64 = 100;

/// A moment on both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StoreReading {
    pub(super) now: StoreTime,
    pub(super) read_at: Tick,
}

impl StoreClock {
    /// Begins at the wall clock, as far behind it as the last replica was, or at `floor_ms` if that is later.
    pub(super) fn begin(clock: Clock, floor_ms: i64, behind_ms: i64) -> Self {
        let reading = clock.now();
        let continued_ms = reading.wall.timestamp_millis().saturating_sub(behind_ms);
        let begin_ms = continued_ms.max(floor_ms);
        Self::at(clock, begin_ms, reading.tick)
    }

    /// Begins at a time that another replica had before `tick`.
    pub(super) fn at(clock: Clock, ms: i64, tick: Tick) -> Self {
        let wall_ms = wall_minus_tick(&clock);
        Self {
            clock,
            offset_ms: Mutex::new(ms.saturating_sub(tick.0)),
            wall_ms: Mutex::new(wall_ms),
        }
    }

    /// Whether this machine may have been suspended, during which its monotonic clock does not advance: the offset must be
    /// compared with the cluster's before anything is decided by it.
    pub(super) fn is_suspect(&self) -> bool {
        (wall_minus_tick(&self.clock) - *self.wall_ms.lock()).abs() > STEP_MS
    }

    /// The offset was compared with the cluster's.
    pub(super) fn set_compared(&self) {
        *self.wall_ms.lock() = wall_minus_tick(&self.clock);
    }

    pub(super) fn wall_now_ms(&self) -> i64 {
        self.clock.now().wall.timestamp_millis()
    }

    pub(super) fn read(&self) -> StoreReading {
        let offset_ms = *self.offset_ms.lock();
        let read_at = self.clock.tick();
        StoreReading {
            now: StoreTime::from_ms(offset_ms.saturating_add(read_at.0)),
            read_at,
        }
    }

    /// The same moment by the current offset, which may have grown since.
    pub(super) fn reread(&self, reading: StoreReading) -> StoreReading {
        let now = StoreTime::from_ms(self.offset_ms.lock().saturating_add(reading.read_at.0));
        StoreReading { now, ..reading }
    }

    /// Follows the clock of another replica, which showed this time before now.
    pub(super) fn follow(&self, ms: i64) {
        let tick = self.clock.tick();
        let mut offset_ms = self.offset_ms.lock();
        *offset_ms = (*offset_ms).max(ms.saturating_sub(tick.0));
    }
}

fn wall_minus_tick(clock: &Clock) -> i64 {
    let reading = clock.now();
    reading.wall.timestamp_millis().saturating_sub(reading.tick.0)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn store_time_follows_the_most_advanced_replica() {
        let clock = Clock::start();
        let ours = StoreClock::at(clock.clone(), 1_000_000, clock.tick());
        ours.follow(5_000_000);
        let ahead = ours.read().now;
        assert!(ahead >= StoreTime::from_ms(5_000_000));
        ours.follow(2_000_000);
        assert!(ours.read().now >= ahead);
        clock.advance(Duration::from_secs(10));
        assert!(ours.read().now >= ahead.plus(10_000));
    }

    #[test]
    fn a_store_without_replicas_begins_after_its_last_time() {
        let clock = Clock::start();
        let far_ms = clock.now().wall.timestamp_millis() + 3_600_000;
        assert!(StoreClock::begin(clock.clone(), far_ms, 0).read().now >= StoreTime::from_ms(far_ms));
        let early = StoreClock::begin(clock.clone(), 5, 0).read().now;
        assert!(early.ms() < far_ms && early.ms() > far_ms - 7_200_000);
    }

    #[test]
    fn a_store_stays_behind_the_wall_clock_but_never_goes_back() {
        let clock = Clock::start();
        let wall_ms = clock.now().wall.timestamp_millis();
        let behind = StoreClock::begin(clock.clone(), 5, 3_600_000).read().now;
        assert!(behind.ms() >= wall_ms - 3_600_000 && behind.ms() < wall_ms - 1_800_000);
        // The wall clock was set back before the start.
        let last = StoreClock::begin(clock, wall_ms, 3_600_000).read().now;
        assert!(last.ms() >= wall_ms);
    }
}
