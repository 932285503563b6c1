//! The latest observation of every backend, merged and indexed by name, in memory; rebuilt from the backends at
//! start. Readers ask through [`query`]; only the observer writes, through [`Feed`].
//!
//! **Invariant:** nothing here talks to a backend or reads a clock.

mod abandon;
mod cursor;
mod entry;
mod events;
mod feed;
mod fingerprint;
mod force_released;
mod gaps;
mod groups;
mod holders;
mod ingest;
mod journal;
mod lately;
mod lines;
mod long_held;
mod order;
mod overwrites;
mod parts;
mod query;
mod recheck;
mod row;
mod scan;
mod select;
mod shard;
mod sights;
mod slab;
mod slot;
mod status;
#[cfg(test)]
mod tests;
mod tree;
mod views;
mod visible;
mod watched;

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use domain::backend::BackendKind;
use domain::names::BackendName;
use tokio::sync::watch;

pub use abandon::{Abandon, AbandonOnDrop};
pub use feed::Feed;
pub use force_released::{FORCE_RELEASES_MAX, ForceRelease};
pub use groups::{GROUPS_MAX, GroupReading, OTHER};
pub use journal::{Change, Journal, Taken};
pub use long_held::{Alerted, LongHeld};
pub use parts::{BackendSummary, Summary};
pub use query::{LookUp, SEEN_MAX};
pub use recheck::DueRechecks;
pub use slot::BackendInfo;
pub use watched::WatchedBackend;

use force_released::ForceReleases;
use parts::Parts;
use slot::Slot;

/// Every lock of every backend.
#[derive(Debug)]
pub struct Inventory {
    /// In the order of the configuration; another list when that is read again.
    slots: RwLock<Arc<[Arc<Slot>]>>,
    revision: AtomicU64,
    changes: AtomicU64,
    /// Counts all writes, also of values that no page shows.
    written: AtomicU64,
    /// Sums and revisions of the scopes of viewers.
    parts: Parts,
    hint: watch::Sender<u64>,
    journal: Journal,
    long_held: Arc<LongHeld>,
    force_releases: ForceReleases,
}

impl Inventory {
    /// An inventory of these backends, none of them observed yet, in the order of the configuration.
    pub fn new(backends: Vec<BackendInfo>) -> Arc<Self> {
        let long_held = Arc::<LongHeld>::default();
        let slot = |info| Arc::new(Slot::new(info, long_held.clone()));
        Arc::new(Self {
            slots: RwLock::new(backends.into_iter().map(slot).collect()),
            revision: AtomicU64::new(1),
            changes: AtomicU64::new(0),
            written: AtomicU64::new(0),
            parts: Parts::default(),
            hint: watch::Sender::new(1),
            journal: Journal::default(),
            long_held,
            force_releases: ForceReleases::default(),
        })
    }

    /// Rises whenever something that a page shows may have changed.
    pub fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    /// Rows that appeared, went or changed what they say since the process started.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Wakes whoever waits for a new revision.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.hint.subscribe()
    }

    /// What changed, for whoever keeps it.
    pub const fn journal(&self) -> &Journal {
        &self.journal
    }

    /// A holding was released by force: when it is seen to be gone, that is told.
    pub fn note_unlocked(&self, backend: &BackendName, release: ForceRelease) {
        if let Some(slot) = self.slot(backend) {
            let mut state = slot.write();
            state.shard.note_unlocked(&release.source, &release.resource);
        }
        self.note_force_release(backend, release);
    }

    pub fn kind_of(&self, backend: &BackendName) -> Option<BackendKind> {
        self.slot(backend).map(|slot| slot.info.kind)
    }

    /// Notes a write: sums computed before it are out of date.
    fn wrote(&self) {
        self.written.fetch_add(1, Ordering::AcqRel);
    }

    fn bump(&self, changes: u64) {
        self.wrote();
        self.changes.fetch_add(changes, Ordering::AcqRel);
        let revision = self.revision.fetch_add(1, Ordering::AcqRel) + 1;
        self.hint.send_replace(revision);
    }

    /// From now on these backends, in this order. What is known of those that `stay` is kept; the others begin anew, and
    /// whoever is not named any more is forgotten, with its locks.
    pub fn reconfigure(&self, backends: Vec<BackendInfo>, stay: &HashSet<BackendName>) {
        let before = self.slots();
        let slot = |info: BackendInfo| {
            let known = before.iter().find(|slot| slot.info.name == info.name);
            match known.filter(|_| stay.contains(&info.name)) {
                Some(slot) => slot.clone(),
                None => Arc::new(Slot::new(info, self.long_held.clone())),
            }
        };
        let now = backends.into_iter().map(slot).collect();
        *self.slots.write().unwrap_or_else(PoisonError::into_inner) = now;
        self.bump(1);
    }

    fn slots(&self) -> Arc<[Arc<Slot>]> {
        self.slots.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn slot(&self, backend: &BackendName) -> Option<Arc<Slot>> {
        self.slots()
            .iter()
            .find(|slot| slot.info.name == *backend)
            .cloned()
    }
}
