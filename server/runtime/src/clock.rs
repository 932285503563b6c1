//! The only reader of clocks. Everywhere else, time is an argument.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::duration::millis;
use domain::tick::Tick;

/// Reads the wall clock and the monotonic clock. Cheap to clone; all clones share one start.
#[derive(Debug, Clone)]
pub struct Clock {
    started: tokio::time::Instant,
    /// Milliseconds by which a test has advanced it.
    ahead: Arc<AtomicI64>,
}

/// Measures an elapsed time from its creation.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(std::time::Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "this is the one reader of clocks")]
    pub fn start() -> Self {
        Self(std::time::Instant::now())
    }

    pub fn seconds(self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}

/// One moment on both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockReading {
    pub wall: DateTime<Utc>,
    pub tick: Tick,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "this is the one reader of clocks")]
    pub fn start() -> Self {
        Self {
            started: tokio::time::Instant::now(),
            ahead: Arc::default(),
        }
    }

    /// Advances both clocks, for all clones: a test can skip an hour.
    pub fn advance(&self, by: Duration) {
        let ms = millis(by);
        self.ahead.fetch_add(ms, Ordering::Relaxed);
    }

    fn ahead_ms(&self) -> i64 {
        self.ahead.load(Ordering::Relaxed)
    }

    pub fn tick(&self) -> Tick {
        let elapsed_ms = millis(self.started.elapsed());
        Tick(elapsed_ms.saturating_add(self.ahead_ms()))
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one reader of clocks")]
    pub fn now(&self) -> ClockReading {
        ClockReading {
            wall: Utc::now() + chrono::TimeDelta::milliseconds(self.ahead_ms()),
            tick: self.tick(),
        }
    }
}

impl ClockReading {
    /// The wall time at another tick.
    pub fn wall_at(&self, tick: Tick) -> DateTime<Utc> {
        self.wall - chrono::TimeDelta::milliseconds(self.tick.since(tick))
    }
}
