//! Cancellation of a search whose request was dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Checked between two blocks of a search, which then returns its results so far.
#[derive(Debug, Clone, Default)]
pub struct Cancellation(Arc<AtomicBool>);

/// Cancels the search when dropped. Owned by the future of the request.
#[derive(Debug)]
pub struct CancelOnDrop(Cancellation);

impl Cancellation {
    pub fn on_drop(&self) -> CancelOnDrop {
        CancelOnDrop(self.clone())
    }

    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}
