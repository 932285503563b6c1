//! Reasons for missing values, each stored once: a million locks share a dozen of them.

use domain::reported::{Reported, Why};

use super::entry::Entry;

/// 0: the field has a value.
pub(super) type GapId = u8;
pub(super) const FILLED: GapId = 0;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Gap {
    Unknown(Why),
    Absent(Why),
}

#[derive(Debug, Default)]
pub(super) struct MissingReasons(Vec<Gap>);

impl MissingReasons {
    /// Separates a value from its reason. `spare` replaces a missing value.
    pub(super) fn split<T>(&mut self, known: Reported<T>, spare: T) -> (T, GapId) {
        match known {
            Reported::Value(value) => (value, FILLED),
            Reported::Unknown(why) => (spare, self.intern(Gap::Unknown(why))),
            Reported::NotApplicable(why) => (spare, self.intern(Gap::Absent(why))),
        }
    }

    fn intern(&mut self, gap: Gap) -> GapId {
        if let Some(at) = self.0.iter().position(|known| *known == gap) {
            return at as GapId + 1;
        }
        // Never reached: adapters word their reasons without numbers. The last reason is then
        // shared.
        if self.0.len() < GapId::MAX as usize - 1 {
            self.0.push(gap);
        }
        self.0.len() as GapId
    }

    pub(super) fn join<T>(&self, value: T, gap: GapId) -> Reported<T> {
        match gap.checked_sub(1).and_then(|at| self.0.get(usize::from(at))) {
            None => Reported::Value(value),
            Some(Gap::Unknown(why)) => Reported::Unknown(why.clone()),
            Some(Gap::Absent(why)) => Reported::NotApplicable(why.clone()),
        }
    }

    /// Whether the lock has a holder, known or not. A key in its lock-delay after its session was invalidated has none:
    /// it has no generation.
    pub(super) fn has_holder(&self, entry: &Entry) -> bool {
        let gap = entry.gaps.generation.checked_sub(1);
        let gap = gap.and_then(|at| self.0.get(usize::from(at)));
        !matches!(gap, Some(Gap::Absent(_)))
    }

    pub(super) fn why(&self, gap: GapId) -> &str {
        match gap.checked_sub(1).and_then(|at| self.0.get(usize::from(at))) {
            None => "",
            Some(Gap::Unknown(why) | Gap::Absent(why)) => why,
        }
    }
}
