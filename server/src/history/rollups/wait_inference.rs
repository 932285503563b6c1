//! Wait times of backends that report only the number of waiters: inferred as first in, first out, with the
//! resolution of the poll interval.

use std::collections::{HashMap, VecDeque};

use domain::names::{BackendName, Resource, Source};

type Key = (BackendName, Source, Resource);

/// Limits: locks with a queue, and positions per queue.
const LINES_MAX: usize = 20_000;
const PLACES_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct WaitInference(HashMap<Key, Line>);

#[derive(Debug, Default)]
struct Line {
    /// Arrival times in milliseconds since 1970.
    came: VecDeque<i64>,
    /// The lock is free since this time.
    free_since: Option<i64>,
}

impl WaitInference {
    /// Sets the number of waiters; returns the wait times in milliseconds of those who left.
    pub(super) fn now(&mut self, key: Key, waiters: u32, at: i64) -> Vec<i64> {
        let waiters = usize::try_from(waiters).unwrap_or(usize::MAX).min(PLACES_MAX);
        let is_new = !self.0.contains_key(&key);
        if is_new && (waiters == 0 || self.0.len() >= LINES_MAX) {
            return Vec::new();
        }
        let line = self.0.entry(key.clone()).or_default();
        line.free_since = None;
        let mut waited = Vec::new();
        while line.came.len() > waiters {
            waited.extend(line.came.pop_front().map(|came| (at - came).max(0)));
        }
        line.came.resize(waiters, at);
        if waiters == 0 {
            self.0.remove(&key);
        }
        waited
    }

    /// The lock was released; unless it is granted next, its queue is empty too.
    pub(super) fn free(&mut self, key: &Key, at: i64) {
        if let Some(line) = self.0.get_mut(key) {
            line.free_since = Some(at);
        }
    }

    /// Wait times for locks that were not granted again.
    pub(super) fn abandoned_waits(&mut self) -> Vec<(Key, Vec<i64>)> {
        if self.0.values().all(|line| line.free_since.is_none()) {
            return Vec::new();
        }
        let over = self.0.extract_if(|_, line| line.free_since.is_some());
        over.map(|(key, line)| {
            let at = line.free_since.unwrap_or_default();
            (key, line.came.iter().map(|came| (at - came).max(0)).collect())
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_waiter_is_assumed_to_be_granted() {
        // Two arrive, one more later, one leaves; then the lock is released and not granted again.
        let key = || {
            (
                BackendName::builtin(),
                Source::fixed("lease"),
                Resource::from("r"),
            )
        };
        let mut lines = WaitInference::default();
        assert!(lines.now(key(), 0, 0).is_empty());
        assert!(lines.now(key(), 2, 1_000).is_empty());
        assert!(lines.now(key(), 3, 2_000).is_empty());
        assert_eq!(lines.now(key(), 2, 5_000), [4_000]);
        lines.free(&key(), 6_000);
        assert_eq!(lines.now(key(), 1, 6_000), [5_000]);
        assert!(lines.abandoned_waits().is_empty());
        lines.free(&key(), 9_000);
        assert_eq!(lines.abandoned_waits(), [(key(), vec![7_000])]);
        assert!(lines.now(key(), 0, 9_000).is_empty());
    }
}
