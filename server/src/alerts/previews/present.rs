//! The present as a preview asks for it: from the inventory.

use std::sync::Arc;

use domain::alerts::{HolderNow, Present, ScanTimes};
use domain::names::{BackendName, LockId, Source};

use crate::clock::Now;
use crate::inventory::Inventory;

pub(super) struct Observed {
    pub(super) inventory: Arc<Inventory>,
    pub(super) now: Now,
}

impl Present for Observed {
    fn scan_times(&self, backend: &BackendName, source: &Source) -> Option<ScanTimes> {
        self.inventory.scan_times(backend, source)
    }

    fn holder(&self, lock: &LockId) -> HolderNow {
        self.inventory.holder(lock, self.now)
    }
}
