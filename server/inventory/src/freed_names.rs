//! Names that a refresh read as free while a scan was in progress. A page of that scan which was requested earlier
//! may still list one of them: as it was before, or acquired again after the refresh. Only another reading decides.
//!
//! **Invariant:** a listed lock is never left out because of an entry here; it is listed and read again.

use std::collections::HashMap;

use domain::tick::Tick;

/// Names stored per backend and scan; beyond that the next scan decides.
const FREED_MAX: usize = 20_000;

/// By number of the source and name: the request that found it free.
#[derive(Debug, Default)]
pub(super) struct FreedNames(HashMap<(u16, Box<[u8]>), Tick>);

impl FreedNames {
    pub(super) fn record(&mut self, source: u16, name: &[u8], at: Tick) {
        let key: (u16, Box<[u8]>) = (source, name.into());
        if let Some(known) = self.0.get_mut(&key) {
            *known = (*known).max(at);
        } else if self.0.len() < FREED_MAX {
            self.0.insert(key, at);
        }
    }

    /// Whether it was found free by a request after `sent_at`.
    pub(super) fn is_free_since(&self, source: u16, name: &[u8], sent_at: Tick) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let key: (u16, Box<[u8]>) = (source, name.into());
        self.0.get(&key).is_some_and(|at| *at > sent_at)
    }

    /// A scan begins: every page of it is requested after these readings.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
