//! Cancellation of a search whose request was dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Checked between two blocks of a search, which then returns its results so far.
#[derive(Debug, Clone, Default)]
pub struct Abandon(Arc<AtomicBool>);

/// Cancels the search when dropped. Owned by the future of the request.
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
