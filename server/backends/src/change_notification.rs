//! Change notifications: they shorten the wait between scans; the scan stays authoritative.
//! Bounded: too many names become a resync.

use std::collections::HashSet;
use std::sync::Arc;

use domain::backend::WatchState;
use domain::names::{Resource, Source};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Most names stored; beyond that a resync is cheaper.
pub const NAMES_MAX: usize = 2_000;

/// Queue from an adapter's watch to the observer. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Hints(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    pending: Mutex<Pending>,
    wake: Notify,
}

/// Notifications since the last `take`.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Pending {
    pub relist: bool,
    pub names: HashSet<(Source, Resource)>,
    /// The newest state of the watch, if it changed.
    pub state: Option<WatchState>,
}

impl Pending {
    pub fn is_empty(&self) -> bool {
        !self.relist && self.names.is_empty() && self.state.is_none()
    }

    fn add(&mut self, source: Source, resource: Resource) {
        if self.names.len() >= NAMES_MAX {
            self.relist = true;
            self.names.clear();
        } else if !self.relist {
            self.names.insert((source, resource));
        }
    }
}

impl Hints {
    /// Requests a full scan: something changed or may have been missed.
    pub fn relist(&self) {
        self.change(|pending| pending.relist = true);
    }

    /// Requests a read of this lock.
    pub fn changed(&self, source: Source, resource: Resource) {
        self.change(|pending| pending.add(source, resource));
    }

    /// Requests a read of these locks.
    pub fn all_changed(&self, source: &Source, resources: &[Resource]) {
        self.change(|pending| {
            for resource in resources {
                pending.add(source.clone(), resource.clone());
            }
        });
    }

    /// Sets the state of the watch.
    pub fn state(&self, state: WatchState) {
        self.change(|pending| pending.state = Some(state));
    }

    fn change(&self, change: impl FnOnce(&mut Pending)) {
        change(&mut self.0.pending.lock());
        self.0.wake.notify_one();
    }

    /// Waits for notifications and takes all of them.
    pub async fn take(&self) -> Pending {
        loop {
            let taken = std::mem::take(&mut *self.0.pending.lock());
            if !taken.is_empty() {
                return taken;
            }
            self.0.wake.notified().await;
        }
    }
}
