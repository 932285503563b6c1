//! Which backends there are now, in the order of the configuration: it changes when the configuration is read again.

use std::sync::{Arc, PoisonError, RwLock};

use domain::names::BackendName;

use super::Backend;

type Row = (BackendName, Arc<dyn Backend>);

/// Shared by whoever asks a backend directly. Who holds an adapter may finish with it after it has left the roster.
#[derive(Default)]
pub struct Roster(RwLock<Arc<[Row]>>);

impl Roster {
    pub fn new(rows: Vec<Row>) -> Arc<Self> {
        Arc::new(Self(RwLock::new(rows.into())))
    }

    pub fn get(&self, name: &BackendName) -> Option<Arc<dyn Backend>> {
        let rows = self.rows();
        let row = rows.iter().find(|(it, _)| it == name);
        row.map(|(_, backend)| backend.clone())
    }

    pub fn names(&self) -> Vec<String> {
        self.rows().iter().map(|(name, _)| name.to_string()).collect()
    }

    pub fn replace(&self, rows: Vec<Row>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = rows.into();
    }

    fn rows(&self) -> Arc<[Row]> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
