//! A flag that ends a scan whose request has gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Read between two blocks of a scan, which then returns what it has found so far.
#[derive(Debug, Clone, Default)]
pub struct Abandon(Arc<AtomicBool>);

/// Abandons the scan when it is dropped. The future of the request owns it.
#[derive(Debug)]
pub struct AbandonOnDrop(Abandon);

impl Abandon {
    pub fn on_drop(&self) -> AbandonOnDrop {
        AbandonOnDrop(self.clone())
    }

    pub fn is_abandoned(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}
