//! Which kept tasks have panicked, how often, when last and why: for the Backends page and `/healthz`.
//!
//! One list for the process: whoever starts a task holds no handle of what is shown of it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::observation::Tick;
use tokio::sync::broadcast;

use crate::clock::Clock;

/// A panic's words are shown as far as this, in characters.
const WHY_MAX: usize = 500;

/// What a task is called, and of which backend where each has one.
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
    pub fn of(what: &'static str, backend: &str) -> Self {
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

/// A kept task that has panicked since the process started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fallen {
    pub name: Name,
    pub restarts: u64,
    /// The last panic's words, and when.
    pub why: String,
    pub at: DateTime<Utc>,
    /// Since when it runs again; none while it rests before the next start.
    pub again_since: Option<DateTime<Utc>>,
    /// How long it rests after the last panic.
    pub rest: Duration,
}

type Places = BTreeMap<u64, Fallen>;

static PLACES: Mutex<(u64, Places)> = Mutex::new((0, Places::new()));

fn places() -> MutexGuard<'static, (u64, Places)> {
    PLACES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Those that have panicked and are still kept, in the order of their start.
pub fn fallen() -> Vec<Fallen> {
    places().1.values().cloned().collect()
}

/// One kept task, until it ends.
pub(super) struct Place {
    id: u64,
    name: Name,
    clock: Clock,
}

impl Place {
    pub(super) fn take(name: Name) -> Self {
        let mut places = places();
        places.0 += 1;
        Self {
            id: places.0,
            name,
            clock: Clock::start(),
        }
    }

    pub(super) fn began(&self) -> Tick {
        let now = self.clock.now();
        if let Some(fallen) = places().1.get_mut(&self.id) {
            fallen.restarts += 1;
            fallen.again_since = Some(now.wall);
        }
        now.tick
    }

    pub(super) fn lived_since(&self, began: Tick) -> Duration {
        Duration::from_millis(u64::try_from(self.clock.tick().since(began)).unwrap_or(0))
    }

    pub(super) fn fell(&self, why: String, rest: Duration) {
        let at = self.clock.now().wall;
        let why: String = why.chars().take(WHY_MAX).collect();
        let mut places = places();
        let fallen = places.1.entry(self.id).or_insert_with(|| Fallen {
            name: self.name.clone(),
            restarts: 0,
            why: String::new(),
            at,
            again_since: None,
            rest,
        });
        (fallen.why, fallen.at) = (why, at);
        (fallen.again_since, fallen.rest) = (None, rest);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        places().1.remove(&self.id);
    }
}

/// A step with its own guard against panics, often taken: a look at this costs nothing.
static STEP_DRILL: AtomicBool = AtomicBool::new(false);

/// The step whose drill is [`LEASE_BATCH`] panics once, if it was asked to.
pub fn drill_step() {
    if STEP_DRILL.load(Ordering::Relaxed) && STEP_DRILL.swap(false, Ordering::Relaxed) {
        std::panic::panic_any("a drill");
    }
}

/// For [`drill`]: the next batch of lease operations, in the middle of its work.
pub const LEASE_BATCH: &str = "lease batch";

static DRILLS: LazyLock<broadcast::Sender<String>> = LazyLock::new(|| broadcast::Sender::new(16));

/// Makes every kept or vital task of this name panic where it stands, or the step of this name the next time. For tests of what happens then: nothing that the
/// binary can be asked for leads here.
#[doc(hidden)]
pub fn drill(name: &str) {
    if name == LEASE_BATCH {
        STEP_DRILL.store(true, Ordering::Relaxed);
    }
    // Without a task of this name nothing happens.
    let _ = DRILLS.send(name.to_owned());
}

/// Never ends but by a panic, on the day of the drill.
pub(super) async fn drill_of(name: Name) {
    let name = name.to_string();
    let mut drills = DRILLS.subscribe();
    loop {
        match drills.recv().await {
            Ok(asked) if asked == name => std::panic::panic_any("a drill"),
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
        }
    }
}
