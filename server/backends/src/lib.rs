//! The Backend port: calls and results of every adapter.
//!
//! Adapters read and report. They keep no inventory, diagnose no lock and know no HTTP.
//!
//! **Invariant:** [`Backend::release`] is the only call that changes a backend; it ends the one
//! named holding or nothing, and uses an account of its own if the backend has accounts.

pub mod builtin;
pub mod change_notification;
pub mod consul;
mod decorator;
pub mod error;
pub mod etcd;
pub mod factory;
pub mod instrumented;
pub mod misconfigured;
mod owner_value;
mod part_hints;
pub mod postgres;
pub mod redis;
pub mod refresh_after_release;
pub mod registry;
mod release;
pub mod zookeeper;

use std::sync::Arc;
use std::time::Duration;

use domain::backend::{AccountPermission, BackendKind, BackendTraits, Capability, ClusterView};
use domain::force_release::{Act, Release};
use domain::generation::Generation;
use domain::names::{Resource, Source};
use domain::observation::{Coverage, Inspection, ObservedLock};
use domain::reported::Reported;
use domain::safety::Safety;
use domain::tick::Tick;
use futures::future::BoxFuture;

pub use change_notification::Hints;
pub use error::BackendError;
pub use registry::BackendRegistry;

/// One configured system that holds locks.
pub trait Backend: Send + Sync + 'static {
    fn kind(&self) -> BackendKind;

    /// Address for display: host and database, never a user or a password.
    fn address(&self) -> String;

    /// Declared capabilities of this adapter.
    fn capabilities(&self) -> Vec<Capability>;

    /// Properties on which conclusions from its observations are based.
    fn traits(&self) -> BackendTraits;

    /// How far locks of one source may be trusted, and why.
    fn safety(&self, source: &Source) -> Safety;

    /// Resolution of the remaining time for a source, in milliseconds (etcd: 1000).
    fn grain_ms(&self, source: &Source) -> i64;

    /// One scan over all locks, delivered in batches as they arrive. Each lock is delivered at
    /// least once; repeats are harmless. Ends early as partial at the scan timeout.
    fn observe<'a>(
        &'a self,
        budget: Budget,
        sink: &'a mut dyn Sink,
    ) -> BoxFuture<'a, Result<Pass, BackendError>>;

    /// Reads only the named locks, after change notifications. Missing locks go into
    /// [`Batch::gone`].
    fn refresh<'a>(
        &'a self,
        names: &'a [(Source, Resource)],
        sink: &'a mut dyn Sink,
    ) -> BoxFuture<'a, Result<(), BackendError>>;

    /// Sends change notifications until dropped; reconnects with backoff and reports its state
    /// through [`Hints::state`]. Requests a resync after every reconnect. Returns only if this
    /// backend can never send notifications.
    fn watch<'a>(&'a self, hints: Hints) -> BoxFuture<'a, ()>;

    /// Reads one lock fresh, with waiters, blockers, raw record, and the blast radius of a
    /// forced unlock.
    fn inspect<'a>(
        &'a self,
        source: &'a Source,
        resource: &'a Resource,
    ) -> BoxFuture<'a, Result<Inspection, BackendError>>;

    /// Ends the holding that `generation` names, or nothing: never the next holding. Takes at
    /// most a few times the backend's `timeout`. Call it in a task of its own: a client that
    /// disconnects must not cancel it.
    ///
    /// # Errors
    /// The backend could not be called and nothing was done. After the request was sent,
    /// [`Release`] has the result.
    fn release<'a>(
        &'a self,
        source: &'a Source,
        resource: &'a Resource,
        generation: &'a Generation,
        act: &'a Act,
    ) -> BoxFuture<'a, Result<Release, BackendError>>;

    /// Reachability, version and account permissions. Cheap; called at start and every minute.
    fn probe(&self) -> BoxFuture<'_, Result<Probe, BackendError>>;

    /// Members of a replicated backend, also of one that does not answer; `None` if it is not replicated or reports no
    /// members. Several clusters: of the shards of the lease store. Called every two seconds.
    fn clusters(&self) -> BoxFuture<'_, Option<Vec<ClusterView>>> {
        Box::pin(std::future::ready(None))
    }
}

/// The capability that tells whether forced unlocks are offered.
pub const RELEASE: &str = "release";

/// Why a backend offers no forced unlock; `None` if it does.
pub fn no_release(backend: &dyn Backend) -> Option<String> {
    let declared = backend.capabilities();
    match declared.into_iter().find(|capability| capability.name == RELEASE) {
        Some(capability) => (!capability.can).then_some(capability.how),
        None => Some("this backend offers no forced unlock".to_owned()),
    }
}

/// Limits of one scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Longest duration.
    pub time_max: Duration,
}

/// Receives the locks of a scan. Fast (about 1 µs per lock); adapters call it between two round
/// trips.
pub trait Sink: Send {
    fn accept(&mut self, batch: Batch);

    /// A partial scan has completely read those locks of `source` whose names `covers` accepts:
    /// the ones that it did not deliver are gone. Called before the scan ends.
    fn read_part(&mut self, _source: &Source, _covers: NamePredicate) {}

    /// A partial scan does not show which locks of `source` are held, except those that it delivered: for the others it
    /// does not count as a scan. Called before the scan ends.
    fn mark_undecided(&mut self, _source: &Source) {}
}

/// Accepts the names of a part of the locks.
pub type NamePredicate = Arc<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// Locks read with one request.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// Our monotonic clock just *before* the request was sent: remaining time counts from here,
    /// so that it is never overstated.
    pub sent_at: Tick,
    pub locks: Vec<ObservedLock>,
    /// Read by name and not found.
    pub gone: Vec<(Source, Resource)>,
}

/// Result of a scan.
#[derive(Debug, Clone, PartialEq)]
pub struct Pass {
    /// Every source with its coverage. Locks of a completely read source that were not found
    /// are gone; those of other sources stay, and age.
    pub sources: Vec<SourcePass>,
    pub clock: Reported<ClockReading>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcePass {
    pub source: Source,
    pub coverage: Coverage,
    /// Why this source could not be read completely, with the remedy, for the Backends page.
    pub fault: Option<String>,
}

/// The backend's clock, read once per scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockReading {
    pub backend_now: chrono::DateTime<chrono::Utc>,
    /// Our wall clock at the middle of the round trip.
    pub our_now: chrono::DateTime<chrono::Utc>,
    /// Half of the round trip, in milliseconds: the error of the comparison.
    pub error_ms: i64,
}

impl ClockReading {
    /// Backend's clock minus ours, in milliseconds.
    pub fn offset_ms(&self) -> i64 {
        (self.backend_now - self.our_now).num_milliseconds()
    }
}

/// Result of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    pub version: Reported<String>,
    pub rights: Vec<AccountPermission>,
}
