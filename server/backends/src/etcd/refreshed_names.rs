//! Names that a refresh has read since the current scan began. A scan lists keys first and reads their leases later,
//! so what it listed may be older than such a reading, although the time of its lease's reading is not.

use std::collections::HashMap;

use domain::names::{Resource, Source};
use domain::tick::Tick;
use parking_lot::Mutex;

use super::row::EtcdRow;

/// Names stored per scan, and their bytes together; rows of further ones are delivered as listed.
const NAMES_MAX: usize = 20_000;
const NAMES_BYTES_MAX: usize = 8 * 1024 * 1024;

#[derive(Debug, Default)]
pub(super) struct RefreshedNames(Mutex<KnownNames>);

#[derive(Debug, Default)]
struct KnownNames {
    read_at: HashMap<(Source, Resource), Tick>,
    name_bytes: usize,
}

impl KnownNames {
    fn record(&mut self, name: &(Source, Resource), at: Tick) {
        let bytes = name.1.as_bytes().len();
        if let Some(known) = self.read_at.get_mut(name) {
            *known = at;
        } else if self.read_at.len() < NAMES_MAX && self.name_bytes + bytes <= NAMES_BYTES_MAX {
            self.name_bytes += bytes;
            self.read_at.insert(name.clone(), at);
        }
    }
}

impl RefreshedNames {
    pub(super) fn begin_scan(&self) {
        *self.0.lock() = KnownNames::default();
    }

    /// Records names that are read from `at` on.
    pub(super) fn record(&self, names: &[(Source, Resource)], at: Tick) {
        let mut known = self.0.lock();
        for name in names {
            known.record(name, at);
        }
    }

    /// Whether the lock of a listed row was read again after it was listed.
    pub(super) fn has_newer(&self, row: &EtcdRow) -> bool {
        let known = self.0.lock();
        if known.read_at.is_empty() {
            return false;
        }
        let name = (row.source.clone(), row.resource.clone());
        known.read_at.get(&name).is_some_and(|at| *at >= row.read_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_refreshed_names_are_limited_by_their_bytes() {
        // Of twice as many as fit, the first are stored; a name that is known is not counted again.
        let fitting = NAMES_BYTES_MAX / (64 * 1024);
        let name = |number: usize| {
            let mut name = number.to_be_bytes().to_vec();
            name.resize(64 * 1024, 0);
            (Source::fixed("key"), Resource::from_bytes(&name))
        };
        let mut known = KnownNames::default();
        for number in (0..2 * fitting).chain(0..fitting) {
            known.record(&name(number), Tick(5));
        }
        assert_eq!(known.read_at.len(), fitting);
        assert!(known.read_at.contains_key(&name(fitting - 1)));
    }
}
