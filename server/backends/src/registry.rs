//! Registry of the current backends, in the order of the configuration; updated by a
//! configuration reload.

use std::sync::Arc;

use domain::names::BackendName;
use parking_lot::RwLock;

use super::Backend;

type Row = (BackendName, Arc<dyn Backend>);

/// Shared by direct users of a backend. An adapter stays usable for its users after its
/// removal.
#[derive(Default)]
pub struct BackendRegistry(RwLock<Arc<[Row]>>);

impl BackendRegistry {
    pub fn new(rows: Vec<Row>) -> Arc<Self> {
        Arc::new(Self(RwLock::new(rows.into())))
    }

    pub fn get(&self, name: &BackendName) -> Option<Arc<dyn Backend>> {
        let rows = self.rows();
        let row = rows.iter().find(|(registered, _)| registered == name);
        row.map(|(_, backend)| backend.clone())
    }

    pub fn names(&self) -> Vec<String> {
        self.rows().iter().map(|(name, _)| name.to_string()).collect()
    }

    pub fn replace(&self, rows: Vec<Row>) {
        *self.0.write() = rows.into();
    }

    fn rows(&self) -> Arc<[Row]> {
        self.0.read().clone()
    }
}
