//! Who was seen to wait for which lock, and since when: so that a new holder is known to have stood in line.
//!
//! Only of backends that tell one waiter from another. The built-in service tells of its own waits exactly, without a look.

use std::collections::HashMap;

use domain::observation::{InLine, Tick};

/// Locks with a line that are followed, and places of one line.
const LINES_MAX: usize = 20_000;
const PLACES_MAX: usize = domain::limits::WAITERS_KEPT_MAX;

/// By the number of the source and the name.
#[derive(Debug, Default)]
pub(super) struct Lines(HashMap<u16, HashMap<Box<[u8]>, Vec<Place>>>);

#[derive(Debug)]
struct Place {
    generation: Box<str>,
    since: Tick,
}

impl Lines {
    /// How long the holding of this generation had stood in line before it began, in milliseconds; none: it was not seen to.
    pub(super) fn waited(&self, source: u16, name: &[u8], generation: Option<&str>, at: Tick) -> Option<i64> {
        let generation = generation?;
        let places = self.0.get(&source)?.get(name)?;
        let place = places.iter().find(|place| *place.generation == *generation)?;
        Some(at.since(place.since).max(0))
    }

    /// These wait from now on. Who was there before keeps its time.
    pub(super) fn stand(&mut self, source: u16, name: &[u8], line: Vec<InLine>, at: Tick) {
        if line.is_empty() {
            return self.gone(source, name);
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
        let place = |one: InLine| {
            let generation = one.generation.as_str();
            let told = one.waited_ms.map(|ms| at.plus(-ms));
            Place {
                since: told.or_else(|| before.get(generation).copied()).unwrap_or(at),
                generation: generation.into(),
            }
        };
        let places = line.into_iter().take(PLACES_MAX).map(place).collect();
        lines.insert(name.into(), places);
    }

    /// Nobody waits for it.
    pub(super) fn gone(&mut self, source: u16, name: &[u8]) {
        if let Some(lines) = self.0.get_mut(&source) {
            lines.remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::generation::Generation;

    use super::*;

    fn in_line(generation: &str, waited_ms: Option<i64>) -> InLine {
        InLine {
            generation: Generation::new(generation),
            waited_ms,
        }
    }

    #[test]
    fn a_wait_is_as_long_as_it_is_told_or_was_seen() {
        // One whose time is told, one that is seen at 1 s and again at 3 s, one that never waited, another lock; then nobody.
        let mut lines = Lines::default();
        lines.stand(
            0,
            b"r",
            vec![in_line("a", Some(500)), in_line("b", None)],
            Tick(1_000),
        );
        lines.stand(0, b"r", vec![in_line("b", None)], Tick(3_000));
        assert_eq!(lines.waited(0, b"r", Some("a"), Tick(4_000)), None);
        assert_eq!(lines.waited(0, b"r", Some("b"), Tick(4_000)), Some(3_000));
        assert_eq!(lines.waited(0, b"r", None, Tick(4_000)), None);
        assert_eq!(lines.waited(0, b"other", Some("b"), Tick(4_000)), None);
        assert_eq!(lines.waited(1, b"r", Some("b"), Tick(4_000)), None);
        lines.stand(0, b"r", vec![in_line("a", Some(500))], Tick(5_000));
        assert_eq!(lines.waited(0, b"r", Some("a"), Tick(5_000)), Some(500));
        lines.gone(0, b"r");
        assert_eq!(lines.waited(0, b"r", Some("a"), Tick(6_000)), None);
        assert!(lines.0.values().all(HashMap::is_empty));
    }
}
