//! The only place that reads clocks. Everything else is told the time.

use chrono::{DateTime, Utc};
use domain::observation::Tick;

/// Reads our wall clock and our monotonic clock. Cheap to clone; all clones share one start.
#[derive(Debug, Clone)]
pub struct Clock {
    started: tokio::time::Instant,
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
        }
    }

    pub fn tick(&self) -> Tick {
        Tick(i64::try_from(self.started.elapsed().as_millis()).unwrap_or(i64::MAX))
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one reader of clocks")]
    pub fn now(&self) -> Now {
        Now {
            wall: Utc::now(),
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
