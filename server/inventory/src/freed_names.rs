//! Names that a refresh read as free while a scan was in progress. A page of that scan which was requested earlier
//! may still list one of them: as it was before, or acquired again after the refresh. Only another reading decides.
//!
//! **Invariant:** a listed lock is never left out because of an entry here; it is listed and read again.

use std::collections::HashMap;

use domain::tick::Tick;

/// Names stored per backend and scan, and their bytes together; beyond that the next scan decides.
const FREED_MAX: usize = 20_000;
const FREED_BYTES_MAX: usize = 8 * 1024 * 1024;

#[derive(Debug, Default)]
pub(super) struct FreedNames {
    /// By number of the source and name: the request that found it free.
    read_at: HashMap<(u16, Box<[u8]>), Tick>,
    name_bytes: usize,
}

impl FreedNames {
    pub(super) fn record(&mut self, source: u16, name: &[u8], at: Tick) {
        let key: (u16, Box<[u8]>) = (source, name.into());
        if let Some(known) = self.read_at.get_mut(&key) {
            *known = (*known).max(at);
        } else if self.read_at.len() < FREED_MAX && self.name_bytes + name.len() <= FREED_BYTES_MAX {
            self.name_bytes += name.len();
            self.read_at.insert(key, at);
        }
    }

    /// Whether it was found free by a request after `sent_at`.
    pub(super) fn is_free_since(&self, source: u16, name: &[u8], sent_at: Tick) -> bool {
        if self.read_at.is_empty() {
            return false;
        }
        let key: (u16, Box<[u8]>) = (source, name.into());
        self.read_at.get(&key).is_some_and(|at| *at > sent_at)
    }

    /// A scan begins: every page of it is requested after these readings.
    pub(super) fn clear(&mut self) {
        self.read_at.clear();
        self.name_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long_name(number: usize) -> Vec<u8> {
        let mut name = number.to_be_bytes().to_vec();
        name.resize(64 * 1024, 0);
        name
    }

    #[test]
    fn long_freed_names_are_limited_by_their_bytes() {
        // Of twice as many as fit, the first are stored; a name that is known is not counted again. Short names fit
        // after the next scan.
        let fitting = FREED_BYTES_MAX / (64 * 1024);
        let mut freed = FreedNames::default();
        for number in (0..2 * fitting).chain(0..fitting) {
            freed.record(0, &long_name(number), Tick(5));
        }
        assert_eq!(freed.read_at.len(), fitting);
        assert!(freed.is_free_since(0, &long_name(fitting - 1), Tick(4)));
        assert!(!freed.is_free_since(0, &long_name(fitting), Tick(4)));
        freed.clear();
        for number in 0..=FREED_MAX {
            freed.record(0, &number.to_be_bytes(), Tick(5));
        }
        assert_eq!(freed.read_at.len(), FREED_MAX);
    }
}
