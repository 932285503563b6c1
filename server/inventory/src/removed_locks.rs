//! Locks that a reading found free. A scan that read one of them before, and is answered later, does not list it again.

use std::collections::HashMap;

use domain::tick::Tick;

/// Names stored; beyond that all are dropped, and a late answer lists its locks until the next scan.
const NAMES_MAX: usize = 100_000;

#[derive(Debug, Default)]
pub(super) struct RemovedLocks {
    /// By source, then by name: when the reading was sent.
    by_source: HashMap<u16, HashMap<Box<[u8]>, Tick>>,
    count: usize,
}

impl RemovedLocks {
    pub(super) fn record(&mut self, source: u16, name: &[u8], at: Tick) {
        if self.count >= NAMES_MAX {
            *self = Self::default();
        }
        let names = self.by_source.entry(source).or_default();
        match names.get_mut(name) {
            Some(known) => *known = at.max(*known),
            None => {
                names.insert(name.into(), at);
                self.count += 1;
            }
        }
    }

    /// Whether a reading sent after `sent_at` found this lock free.
    pub(super) fn is_removed_since(&self, source: u16, name: &[u8], sent_at: Tick) -> bool {
        let names = self.by_source.get(&source);
        names
            .and_then(|names| names.get(name))
            .is_some_and(|at| *at > sent_at)
    }

    /// Drops the names removed before `tick`: no answer to an earlier request can arrive any more.
    pub(super) fn forget_before(&mut self, tick: Tick) {
        for names in self.by_source.values_mut() {
            names.retain(|_, at| *at >= tick);
        }
        self.by_source.retain(|_, names| !names.is_empty());
        self.count = self.by_source.values().map(HashMap::len).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_reading_counts_and_old_ones_are_dropped() {
        let mut removed = RemovedLocks::default();
        removed.record(1, b"a", Tick(20));
        removed.record(1, b"a", Tick(10));
        removed.record(2, b"a", Tick(5));
        let is_removed =
            |removed: &RemovedLocks, source, at| removed.is_removed_since(source, b"a", Tick(at));
        assert!(is_removed(&removed, 1, 19) && !is_removed(&removed, 1, 20));
        assert!(is_removed(&removed, 2, 4) && !is_removed(&removed, 3, 0));
        removed.forget_before(Tick(20));
        assert!(is_removed(&removed, 1, 19) && !is_removed(&removed, 2, 4));
        assert_eq!(removed.count, 1);
    }

    #[test]
    fn its_size_is_limited() {
        let mut removed = RemovedLocks::default();
        for number in 0..=NAMES_MAX {
            removed.record(0, &number.to_be_bytes(), Tick(1));
        }
        assert_eq!(removed.count, 1);
        assert!(removed.is_removed_since(0, &NAMES_MAX.to_be_bytes(), Tick(0)));
    }
}
