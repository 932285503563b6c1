//! Registry of the current backends, in the order of the configuration; updated by a
//! configuration reload.

use std::sync::Arc;

use domain::names::BackendName;
use parking_lot::RwLock;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Backend;

/// Concurrent reads of one backend for pages.
const PAGE_READS_MAX: usize = 4;

type Row = (BackendName, Arc<dyn Backend>);

struct Registered {
    name: BackendName,
    backend: Arc<dyn Backend>,
    page_reads: Arc<Semaphore>,
}

/// Shared by direct users of a backend. An adapter stays usable for its users after its
/// removal.
#[derive(Default)]
pub struct BackendRegistry(RwLock<Arc<[Registered]>>);

impl BackendRegistry {
    pub fn new(rows: Vec<Row>) -> Arc<Self> {
        let registry = Self::default();
        registry.replace(rows);
        Arc::new(registry)
    }

    pub fn get(&self, name: &BackendName) -> Option<Arc<dyn Backend>> {
        let rows = self.rows();
        let row = rows.iter().find(|row| row.name == *name);
        row.map(|row| row.backend.clone())
    }

    /// Waits for a permit to read a lock of this backend for a page. Scans and forced unlocks need none, so that
    /// readers of pages, in any number, do not delay them. `None`: no such backend.
    pub async fn page_read(&self, name: &BackendName) -> Option<OwnedSemaphorePermit> {
        let rows = self.rows();
        let row = rows.iter().find(|row| row.name == *name)?;
        row.page_reads.clone().acquire_owned().await.ok()
    }

    pub fn names(&self) -> Vec<String> {
        self.rows().iter().map(|row| row.name.to_string()).collect()
    }

    pub fn replace(&self, rows: Vec<Row>) {
        let registered = rows.into_iter().map(|(name, backend)| Registered {
            name,
            backend,
            page_reads: Arc::new(Semaphore::new(PAGE_READS_MAX)),
        });
        *self.0.write() = registered.collect();
    }

    fn rows(&self) -> Arc<[Registered]> {
        self.0.read().clone()
    }
}
