//! A counter of changes that open pages wait for.

use std::sync::Arc;

use tokio::sync::watch;

/// Cheap to clone; all clones count together.
#[derive(Debug, Clone)]
pub struct ChangeSignal(Arc<watch::Sender<u64>>);

impl Default for ChangeSignal {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }
}

impl ChangeSignal {
    /// Counts one change and wakes all subscribers.
    pub fn announce(&self) {
        self.0.send_modify(|count| *count += 1);
    }

    /// Changes so far in this process.
    pub fn count(&self) -> u64 {
        *self.0.borrow()
    }

    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}
