//! The latest observation of every backend, merged and indexed by name, in memory; rebuilt from
//! the backends at start. Readers use [`query`]; only the observer writes, through
//! [`InventoryWriter`].
//!
//! **Invariant:** nothing here calls a backend or reads a clock.

mod backend_state;
mod backend_views;
mod cancellation;
mod change_queue;
mod cursor;
mod entry;
mod events;
mod fingerprint;
mod force_released;
mod freed_names;
mod holders;
mod ingest;
mod known_parts;
mod long_held;
mod missing_reasons;
mod name_index;
mod overwrites;
mod page_scan;
mod page_select;
mod part_reads;
mod permission_filter;
mod query;
mod recent_events;
mod recheck;
mod row;
mod scope_cache;
mod shard;
mod sharers;
mod slab;
mod snapshots;
mod status;
mod template_counts;
mod template_groups;
#[cfg(test)]
mod tests;
mod tree;
mod wait_tracker;
mod waits;
mod writer;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::backend::{BackendKind, BackendTraits};
use domain::names::BackendName;
use domain::tick::Tick;
use parking_lot::RwLock;
use tokio::sync::watch;

pub use backend_state::BackendInfo;
pub use cancellation::{CancelOnDrop, Cancellation};
pub use change_queue::{ChangeBatch, ChangeQueue, LockChange, Outage};
pub use force_released::{FORCE_RELEASES_MAX, ForceRelease};
pub use long_held::{Alerted, LongHeld};
pub use query::{LookUp, SEEN_MAX};
pub use recheck::DueRechecks;
pub use scope_cache::{BackendSummary, Summary};
pub use template_counts::WatchedBackend;
pub use template_groups::{GROUPS_MAX, GroupReading, OTHER};
pub use writer::InventoryWriter;

use backend_state::Slot;
use force_released::ForceReleases;
use scope_cache::ScopeParts;
use waits::Waits;

/// Every lock of every backend.
#[derive(Debug)]
pub struct Inventory {
    /// In the order of the configuration; replaced by a reload.
    slots: RwLock<Arc<[Arc<Slot>]>>,
    revision: AtomicU64,
    changes: AtomicU64,
    /// Number of all writes, including values that no page shows.
    written: AtomicU64,
    /// Sums and revisions per scope.
    parts: ScopeParts,
    hint: watch::Sender<u64>,
    journal: ChangeQueue,
    long_held: Arc<LongHeld>,
    force_releases: ForceReleases,
    waits: Waits,
}

impl Inventory {
    /// An inventory of these backends, not observed yet, in the order of the configuration.
    pub fn new(backends: Vec<BackendInfo>) -> Arc<Self> {
        let long_held = Arc::<LongHeld>::default();
        let slot = |info| Arc::new(Slot::new(info, long_held.clone()));
        Arc::new(Self {
            slots: RwLock::new(backends.into_iter().map(slot).collect()),
            revision: AtomicU64::new(1),
            changes: AtomicU64::new(0),
            written: AtomicU64::new(0),
            parts: ScopeParts::default(),
            hint: watch::Sender::new(1),
            journal: ChangeQueue::default(),
            long_held,
            force_releases: ForceReleases::default(),
            waits: Waits::default(),
        })
    }

    /// Rises whenever a displayed value may have changed.
    pub fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    /// Rows added, removed or changed since the process started.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Notifies about a new revision.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.hint.subscribe()
    }

    /// Queue of changes for the history.
    pub const fn journal(&self) -> &ChangeQueue {
        &self.journal
    }

    /// Records a forced release that ended `at`: the later removal is reported as one.
    pub fn record_unlocked(&self, backend: &BackendName, release: ForceRelease, at: Tick) {
        if let Some(slot) = self.slot(backend) {
            let mut state = slot.write();
            state
                .shard
                .record_unlocked(&release.source, &release.resource, at);
        }
        self.record_force_release(backend, release);
    }

    pub fn traits(&self, backend: &BackendName) -> BackendTraits {
        self.slot(backend)
            .map(|slot| slot.info.traits)
            .unwrap_or_default()
    }

    pub fn kind_of(&self, backend: &BackendName) -> Option<BackendKind> {
        self.slot(backend).map(|slot| slot.info.kind)
    }

    /// Records a write: earlier sums are outdated.
    fn mark_written(&self) {
        self.written.fetch_add(1, Ordering::AcqRel);
    }

    fn bump(&self, changes: u64) {
        self.mark_written();
        self.changes.fetch_add(changes, Ordering::AcqRel);
        let revision = self.revision.fetch_add(1, Ordering::AcqRel) + 1;
        self.hint.send_replace(revision);
    }

    /// Replaces the backends by these, in this order. Those in `stay` keep their state; new
    /// ones start empty; removed ones are dropped with their locks.
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
        *self.slots.write() = now;
        self.bump(1);
    }

    fn slots(&self) -> Arc<[Arc<Slot>]> {
        self.slots.read().clone()
    }

    fn slot(&self, backend: &BackendName) -> Option<Arc<Slot>> {
        self.slots()
            .iter()
            .find(|slot| slot.info.name == *backend)
            .cloned()
    }
}
