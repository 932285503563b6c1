//! Registry of panicked supervised tasks: count, last time and reason, for the Backends page and `/healthz`.
//!
//! One list per process: the code that starts a task needs no handle for it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::tick::Tick;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::broadcast;

use crate::clock::Clock;

/// Characters of a panic message that are kept.
const WHY_MAX: usize = 500;

/// Name of a task, with the backend for per-backend tasks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    pub what: &'static str,
    pub of: Option<Arc<str>>,
}

impl From<&'static str> for Name {
    fn from(what: &'static str) -> Self {
        Self { what, of: None }
    }
}

impl Name {
    pub fn new(what: &'static str, backend: &str) -> Self {
        Self {
            what,
            of: Some(backend.into()),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.of {
            Some(of) => write!(f, "{} {of}", self.what),
            None => f.write_str(self.what),
        }
    }
}

/// A supervised task that has panicked since the process started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PanickedTask {
    pub name: Name,
    pub restarts: u64,
    /// Message and time of the last panic.
    pub why: String,
    pub at: DateTime<Utc>,
    /// Start of the current run; `None` during the restart delay.
    pub running_since: Option<DateTime<Utc>>,
    /// Delay after the last panic.
    pub restart_delay: Duration,
}

type Places = BTreeMap<u64, PanickedTask>;

static PLACES: Mutex<(u64, Places)> = Mutex::new((0, Places::new()));

fn places() -> MutexGuard<'static, (u64, Places)> {
    PLACES.lock()
}

/// Supervised tasks that have panicked, in the order of their start.
pub fn panicked_tasks() -> Vec<PanickedTask> {
    places().1.values().cloned().collect()
}

/// Registration of a supervised task, until it ends.
pub(super) struct TaskLocation {
    id: u64,
    name: Name,
    clock: Clock,
}

impl TaskLocation {
    pub(super) fn take(name: Name) -> Self {
        let mut places = places();
        places.0 += 1;
        Self {
            id: places.0,
            name,
            clock: Clock::start(),
        }
    }

    pub(super) fn start_run(&self) -> Tick {
        let now = self.clock.now();
        if let Some(task) = places().1.get_mut(&self.id) {
            task.restarts += 1;
            task.running_since = Some(now.wall);
        }
        now.tick
    }

    pub(super) fn run_duration(&self, started_at: Tick) -> Duration {
        Duration::from_millis(u64::try_from(self.clock.tick().since(started_at)).unwrap_or(0))
    }

    pub(super) fn record_panic(&self, why: String, delay: Duration) {
        let at = self.clock.now().wall;
        let why: String = why.chars().take(WHY_MAX).collect();
        let mut places = places();
        let task = places.1.entry(self.id).or_insert_with(|| PanickedTask {
            name: self.name.clone(),
            restarts: 0,
            why: String::new(),
            at,
            running_since: None,
            restart_delay: delay,
        });
        (task.why, task.at) = (why, at);
        (task.running_since, task.restart_delay) = (None, delay);
    }
}

impl Drop for TaskLocation {
    fn drop(&mut self) {
        places().1.remove(&self.id);
    }
}

/// Whether a step drill is pending; checking it on hot paths costs nothing.
static STEP_DRILL: AtomicBool = AtomicBool::new(false);

/// The step [`LEASE_BATCH`] panics once, if requested.
pub fn drill_step() {
    if STEP_DRILL.load(Ordering::Relaxed) && STEP_DRILL.swap(false, Ordering::Relaxed) {
        std::panic::panic_any("a drill");
    }
}

/// For [`drill`]: the next batch of lease operations, while it runs.
pub const LEASE_BATCH: &str = "lease batch";

static DRILLS: LazyLock<broadcast::Sender<String>> = LazyLock::new(|| broadcast::Sender::new(16));

/// Makes every supervised or vital task of this name panic, or the step of this name once. For tests only: not
/// reachable through the binary.
#[doc(hidden)]
pub fn drill(name: &str) {
    if name == LEASE_BATCH {
        STEP_DRILL.store(true, Ordering::Relaxed);
    }
    // Without a task of this name there is no effect.
    let _ = DRILLS.send(name.to_owned());
}

/// Ends only by a panic, when the drill is requested.
pub(super) async fn drill_of(name: Name) {
    let name = name.to_string();
    let mut drills = DRILLS.subscribe();
    loop {
        match drills.recv().await {
            Ok(task) if task == name => std::panic::panic_any("a drill"),
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
        }
    }
}
