//! The only place that reads clocks. Everything else is told the time.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::observation::Tick;

/// Reads our wall clock and our monotonic clock. Cheap to clone; all clones share one start.
#[derive(Debug, Clone)]
pub struct Clock {
    started: tokio::time::Instant,
    /// Milliseconds that a test has moved it ahead.
    ahead: Arc<AtomicI64>,
}

/// Runs from when it was made; for how long something took.
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
pub struct Now {
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

    /// Moves both clocks ahead, for all clones: a test sees at once what happens after an hour.
    pub fn advance(&self, by: Duration) {
        let ms = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.ahead.fetch_add(ms, Ordering::Relaxed);
    }

    fn ahead_ms(&self) -> i64 {
        self.ahead.load(Ordering::Relaxed)
    }

    pub fn tick(&self) -> Tick {
        let elapsed_ms = i64::try_from(self.started.elapsed().as_millis()).unwrap_or(i64::MAX);
        Tick(elapsed_ms.saturating_add(self.ahead_ms()))
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one reader of clocks")]
    pub fn now(&self) -> Now {
        Now {
            wall: Utc::now() + chrono::TimeDelta::milliseconds(self.ahead_ms()),
            tick: self.tick(),
        }
    }
}

impl Now {
    /// The wall time at another tick, by our own clocks.
    pub fn wall_at(&self, tick: Tick) -> DateTime<Utc> {
        self.wall - chrono::TimeDelta::milliseconds(self.tick.since(tick))
    }
}
