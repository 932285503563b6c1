//! Current state for previews, from the inventory.

use std::sync::Arc;

use domain::alerts::{CurrentState, HolderNow, ScanTimes};
use domain::names::{BackendName, LockId, Source};

use inventory::Inventory;
use runtime::clock::ClockReading;

pub(in crate::alerts) struct InventoryState {
    pub(in crate::alerts) inventory: Arc<Inventory>,
    pub(in crate::alerts) now: ClockReading,
}

impl CurrentState for InventoryState {
    fn scan_times(&self, backend: &BackendName, source: &Source) -> Option<ScanTimes> {
        self.inventory.scan_times(backend, source)
    }

    fn holder(&self, lock: &LockId) -> HolderNow {
        self.inventory.holder(lock, self.now)
    }

    fn unobserved_since(&self, backend: &BackendName) -> Option<i64> {
        self.inventory.unobserved_since(backend, self.now)
    }
}
