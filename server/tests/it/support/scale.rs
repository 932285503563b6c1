//! One scan of many locks: how long it takes, and the heap that the adapter needs for it and keeps.

use ::backends::{Backend, Batch, Budget, Pass, Sink};
use domain::observation::ObservedLock;
use runtime::clock::Clock;

/// Goal of an adapter, without the inventory: what it keeps from one scan to the next, and what a scan needs.
pub(crate) const BYTES_PER_LOCK_MAX: usize = 300;

/// Bytes that this process has allocated and not freed. Resident memory would include what the allocator keeps for later.
pub(crate) fn heap_bytes() -> usize {
    crate::ALLOCATOR.allocated()
}

/// Counts, and keeps nothing.
#[derive(Debug, Default)]
pub(crate) struct ScanSize {
    pub(crate) locks: usize,
    pub(crate) waiters: usize,
    /// Waiters whose owners are known.
    pub(crate) identified: usize,
    pub(crate) took_ms: i64,
    /// Largest heap while a batch was handed over.
    pub(crate) heap_bytes_max: usize,
}

impl Sink for ScanSize {
    fn accept(&mut self, batch: Batch) {
        self.heap_bytes_max = self.heap_bytes_max.max(heap_bytes());
        self.locks += batch.locks.len();
        let lines = || batch.locks.iter().flat_map(|lock: &ObservedLock| &lock.line);
        self.waiters += lines().count();
        self.identified += lines().filter(|place| place.identity.is_some()).count();
    }
}

/// Scans once within `budget`. The scan must be complete.
pub(crate) async fn scan_size(backend: &dyn Backend, clock: &Clock, budget: Budget) -> ScanSize {
    let mut size = ScanSize::default();
    let started = clock.tick();
    let pass: Pass = backend.observe(budget, &mut size).await.unwrap();
    size.took_ms = clock.tick().since(started);
    let sources = pass.sources.iter();
    let is_complete = sources.clone().all(|source| source.coverage.is_complete());
    assert!(is_complete, "{:?} after {size:?}", pass.sources);
    size
}
