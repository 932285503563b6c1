//! Names that a refresh has read since the current scan began. A scan lists keys first and reads their leases later,
//! so what it listed may be older than such a reading, although the time of its lease's reading is not.

use std::collections::HashMap;

use domain::names::{Resource, Source};
use domain::tick::Tick;
use parking_lot::Mutex;

use super::row::EtcdRow;

/// Names stored per scan; rows of further ones are delivered as listed.
const NAMES_MAX: usize = 20_000;

#[derive(Debug, Default)]
pub(super) struct RefreshedNames(Mutex<HashMap<(Source, Resource), Tick>>);

impl RefreshedNames {
    pub(super) fn begin_scan(&self) {
        self.0.lock().clear();
    }

    /// Records names that are read from `at` on.
    pub(super) fn record(&self, names: &[(Source, Resource)], at: Tick) {
        let mut known = self.0.lock();
        for name in names {
            if known.len() < NAMES_MAX || known.contains_key(name) {
                known.insert(name.clone(), at);
            }
        }
    }

    /// Whether the lock of a listed row was read again after it was listed.
    pub(super) fn has_newer(&self, row: &EtcdRow) -> bool {
        let known = self.0.lock();
        if known.is_empty() {
            return false;
        }
        let name = (row.source.clone(), row.resource.clone());
        known.get(&name).is_some_and(|at| *at >= row.read_at)
    }
}
