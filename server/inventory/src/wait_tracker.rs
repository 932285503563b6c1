//! Tracks observed waiters per lock with the beginning of their wait: to recognize a new holder
//! that had waited, and for the graph of waits.
//!
//! Only for backends that identify waiters. The built-in service reports its own waits exactly.

use std::collections::HashMap;

use domain::observation::{InLine, WaitIdentity};
use domain::tick::Tick;

/// Limits: tracked locks with waiters per source, and tracked waiters per lock.
const LINES_MAX: usize = 20_000;
const PLACES_MAX: usize = domain::limits::WAITERS_KEPT_MAX;

/// By the number of the source and the name.
#[derive(Debug, Default)]
pub(super) struct WaitTracker(HashMap<u16, HashMap<Box<[u8]>, Vec<ObservedWait>>>);

#[derive(Debug)]
pub(super) struct ObservedWait {
    generation: Box<str>,
    pub(super) since: Tick,
    pub(super) is_since_reported: bool,
    /// `None`: beyond the limit, or not identified by the backend.
    pub(super) identity: Option<Box<WaitIdentity>>,
}

impl WaitTracker {
    /// How long the holder of this generation had waited, in milliseconds; `None` if no wait
    /// was observed.
    pub(super) fn waited(&self, source: u16, name: &[u8], generation: Option<&str>, at: Tick) -> Option<i64> {
        let generation = generation?;
        let places = self.0.get(&source)?.get(name)?;
        let place = places.iter().find(|place| *place.generation == *generation)?;
        Some(at.since(place.since).max(0))
    }

    /// Replaces the waiters of a lock. Known ones keep the beginning of their wait.
    pub(super) fn replace(&mut self, source: u16, name: &[u8], line: Vec<InLine>, at: Tick) {
        if line.is_empty() {
            return self.remove(source, name);
        }
        let lines = self.0.entry(source).or_default();
        let before = lines.remove(name).unwrap_or_default();
        if lines.len() >= LINES_MAX {
            return;
        }
        let before: HashMap<&str, Tick> = before
            .iter()
            .map(|place| (&*place.generation, place.since))
            .collect();
        let place = |waiter: InLine| {
            let generation = waiter.generation.as_str();
            let waits_since = waiter.waited_ms.map(|ms| at.plus(-ms));
            ObservedWait {
                since: waits_since
                    .or_else(|| before.get(generation).copied())
                    .unwrap_or(at),
                is_since_reported: waits_since.is_some(),
                generation: generation.into(),
                identity: waiter.identity,
            }
        };
        let places = line.into_iter().take(PLACES_MAX).map(place).collect();
        lines.insert(name.into(), places);
    }

    /// Every lock with waiters: the number of its source, its name, and its waiters in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u16, &[u8], &[ObservedWait])> {
        self.0.iter().flat_map(|(source, lines)| {
            lines
                .iter()
                .map(move |(name, places)| (*source, &**name, places.as_slice()))
        })
    }

    /// The lock has no waiters.
    pub(super) fn remove(&mut self, source: u16, name: &[u8]) {
        if let Some(lines) = self.0.get_mut(&source) {
            lines.remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::generation::Generation;

    use super::*;

    fn waiter(generation: &str, waited_ms: Option<i64>) -> InLine {
        InLine {
            generation: Generation::new(generation),
            waited_ms,
            identity: None,
        }
    }

    #[test]
    fn wait_time_is_reported_or_observed() {
        // One with a reported wait, one observed at 1 s and again at 3 s, one that never
        // waited, another lock; then none.
        let mut lines = WaitTracker::default();
        lines.replace(
            0,
            b"r",
            vec![waiter("a", Some(500)), waiter("b", None)],
            Tick(1_000),
        );
        lines.replace(0, b"r", vec![waiter("b", None)], Tick(3_000));
        assert_eq!(lines.waited(0, b"r", Some("a"), Tick(4_000)), None);
        assert_eq!(lines.waited(0, b"r", Some("b"), Tick(4_000)), Some(3_000));
        assert_eq!(lines.waited(0, b"r", None, Tick(4_000)), None);
        assert_eq!(lines.waited(0, b"other", Some("b"), Tick(4_000)), None);
        assert_eq!(lines.waited(1, b"r", Some("b"), Tick(4_000)), None);
        lines.replace(0, b"r", vec![waiter("a", Some(500))], Tick(5_000));
        assert_eq!(lines.waited(0, b"r", Some("a"), Tick(5_000)), Some(500));
        lines.remove(0, b"r");
        assert_eq!(lines.waited(0, b"r", Some("a"), Tick(6_000)), None);
        assert!(lines.0.values().all(HashMap::is_empty));
    }
}
