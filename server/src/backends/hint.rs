//! Hints shorten the wait between passes; the list stays the truth. They are bounded: too many become a re-list.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use domain::backend::WatchState;
use domain::names::{Resource, Source};
use tokio::sync::Notify;

/// Names kept until they are read; beyond that a re-list is cheaper.
pub const NAMES_MAX: usize = 2_000;

/// Where an adapter's watch leaves its hints. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Hints(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    pending: Mutex<Pending>,
    wake: Notify,
}

/// What has come since it was last taken.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Pending {
    pub relist: bool,
    pub names: HashSet<(Source, Resource)>,
    /// The newest state of the watch, when it changed.
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
    /// Something changed, or may have been missed: list everything soon.
    pub fn relist(&self) {
        self.change(|pending| pending.relist = true);
    }

    /// This lock changed: read it soon.
    pub fn changed(&self, source: Source, resource: Resource) {
        self.change(|pending| pending.add(source, resource));
    }

    /// All of these changed.
    pub fn all_changed(&self, source: &Source, resources: &[Resource]) {
        self.change(|pending| {
            for resource in resources {
                pending.add(source.clone(), resource.clone());
            }
        });
    }

    /// The watch came up, went down, or cannot be had.
    pub fn state(&self, state: WatchState) {
        self.change(|pending| pending.state = Some(state));
    }

    fn change(&self, change: impl FnOnce(&mut Pending)) {
        change(&mut self.0.pending.lock().unwrap_or_else(PoisonError::into_inner));
        self.0.wake.notify_one();
    }

    /// Waits until there is something, and takes all of it.
    pub async fn take(&self) -> Pending {
        loop {
            let taken = std::mem::take(&mut *self.0.pending.lock().unwrap_or_else(PoisonError::into_inner));
            if !taken.is_empty() {
                return taken;
            }
            self.0.wake.notified().await;
        }
    }
}
