//! The Backend port: what every adapter can be asked, and the words it answers in.
//!
//! Adapters read and report. They keep no inventory, judge no lock and know no HTTP.
//!
//! **Invariant:** [`Backend::release`] is the only way to change a backend; it ends the one holding that was named, or
//! nothing, and uses an account of its own where the backend has accounts.

pub mod announcing;
mod around;
pub mod broken;
pub mod builtin;
pub mod connect;
pub mod error;
pub mod etcd;
pub mod hint;
pub mod measured;
pub mod postgres;
pub mod redis;
mod release;
pub mod roster;

use std::time::Duration;

use domain::backend::{BackendKind, Capability, Right};
use domain::generation::Generation;
use domain::known::Known;
use domain::names::{Resource, Source};
use domain::observation::{Coverage, Inspection, ObservedLock, Tick};
use domain::release::{Act, Release};
use domain::safety::Safety;
use futures::future::BoxFuture;

pub use error::BackendError;
pub use hint::Hints;
pub use roster::Roster;

/// One configured system that holds locks.
pub trait Backend: Send + Sync + 'static {
    fn kind(&self) -> BackendKind;

    /// Address for people: host and database, never a user or a password.
    fn address(&self) -> String;

    /// What this adapter can tell, declared.
    fn capabilities(&self) -> Vec<Capability>;

    /// How far locks of one source may be trusted, and why.
    fn safety(&self, source: &Source) -> Safety;

    /// Grain of the remaining time that this backend tells for a source, in milliseconds (etcd: 1000).
    fn grain_ms(&self, source: &Source) -> i64;

    /// One pass over all locks, handed over in batches as they arrive. Each lock is handed over at least once;
    /// repeats are harmless. Ends early as partial when the budget is used up.
    fn observe<'a>(
        &'a self,
        budget: Budget,
        sink: &'a mut dyn Sink,
    ) -> BoxFuture<'a, Result<Pass, BackendError>>;

    /// Reads only the named locks, because a hint said that they changed. What is not there goes into
    /// [`Batch::gone`].
    fn refresh<'a>(
        &'a self,
        names: &'a [(Source, Resource)],
        sink: &'a mut dyn Sink,
    ) -> BoxFuture<'a, Result<(), BackendError>>;

    /// Sends hints until dropped; heals by itself with backoff and says so through [`Hints::state`]. After every
    /// reconnect it asks for a re-list. Returns only when this backend can never send hints.
    fn watch<'a>(&'a self, hints: Hints) -> BoxFuture<'a, ()>;

    /// Reads one lock fresh, with waiters, blockers, the raw record, and what a forced unlock would take along.
    fn inspect<'a>(
        &'a self,
        source: &'a Source,
        resource: &'a Resource,
    ) -> BoxFuture<'a, Result<Inspection, BackendError>>;

    /// Ends the holding that `generation` names, or nothing: never the next one, whatever happens in between. Ends
    /// within a few times the backend's `timeout`. Call it in a task of its own: a caller that hangs up must not cut it.
    ///
    /// # Errors
    /// The backend could not be asked, and nothing was done. From the act on, [`Release`] tells what is known.
    fn release<'a>(
        &'a self,
        source: &'a Source,
        resource: &'a Resource,
        generation: &'a Generation,
        act: &'a Act,
    ) -> BoxFuture<'a, Result<Release, BackendError>>;

    /// Reachability, version and what this account may do. Cheap; called at start and every minute.
    fn probe(&self) -> BoxFuture<'_, Result<Probe, BackendError>>;
}

/// The capability that says whether forced unlocks are offered.
pub const RELEASE: &str = "release";

/// Why no forced unlock is offered on a backend; none where it is.
pub fn no_release(backend: &dyn Backend) -> Option<String> {
    let declared = backend.capabilities();
    match declared.into_iter().find(|capability| capability.name == RELEASE) {
        Some(capability) => (!capability.can).then_some(capability.how),
        None => Some("this backend offers no forced unlock".to_owned()),
    }
}

/// What one pass may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Longest time of the pass.
    pub time_max: Duration,
}

/// Takes what a pass finds. Quick (about 1 µs a lock); adapters call it between two round trips.
pub trait Sink: Send {
    fn accept(&mut self, batch: Batch);
}

/// Locks read with one request.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// Our monotonic clock just *before* the request was sent: remaining time counts from here, so that it is
    /// never shown longer than it is.
    pub sent_at: Tick,
    pub locks: Vec<ObservedLock>,
    /// Looked for by name and not there.
    pub gone: Vec<(Source, Resource)>,
}

/// How a pass ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Pass {
    /// Every source that was asked, with its coverage. Locks of a source that was seen whole and did not turn up
    /// are gone; those of any other source stay, and age.
    pub sources: Vec<SourcePass>,
    pub clock: Known<ClockReading>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcePass {
    pub source: Source,
    pub coverage: Coverage,
    /// Why this source could not be read whole, with the mend, for the Backends page.
    pub fault: Option<String>,
}

/// The backend's clock, read once in a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockReading {
    pub backend_now: chrono::DateTime<chrono::Utc>,
    /// Our wall clock at the middle of the round trip.
    pub our_now: chrono::DateTime<chrono::Utc>,
    /// Half of the round trip, in milliseconds: how far off the comparison may be.
    pub error_ms: i64,
}

impl ClockReading {
    /// Backend's clock minus ours, in milliseconds.
    pub fn offset_ms(&self) -> i64 {
        (self.backend_now - self.our_now).num_milliseconds()
    }
}

/// What a probe found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    pub version: Known<String>,
    pub rights: Vec<Right>,
}
