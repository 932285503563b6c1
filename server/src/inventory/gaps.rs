//! Reasons why a field has no value, each kept once: a million locks share a dozen of them.

use domain::known::{Known, Why};

/// 0: the field has a value.
pub(super) type GapId = u8;
pub(super) const FILLED: GapId = 0;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Gap {
    Unknown(Why),
    Absent(Why),
}

#[derive(Debug, Default)]
pub(super) struct Gaps(Vec<Gap>);

impl Gaps {
    /// Splits a value from its reason. `spare` stands in for the value where there is none.
    pub(super) fn split<T>(&mut self, known: Known<T>, spare: T) -> (T, GapId) {
        match known {
            Known::Known(value) => (value, FILLED),
            Known::Unknown(why) => (spare, self.keep(Gap::Unknown(why))),
            Known::Absent(why) => (spare, self.keep(Gap::Absent(why))),
        }
    }

    fn keep(&mut self, gap: Gap) -> GapId {
        if let Some(at) = self.0.iter().position(|kept| *kept == gap) {
            return at as GapId + 1;
        }
        // Adapters word their reasons without numbers, so this is never reached; the last one then stands in.
        if self.0.len() < GapId::MAX as usize - 1 {
            self.0.push(gap);
        }
        self.0.len() as GapId
    }

    pub(super) fn join<T>(&self, value: T, gap: GapId) -> Known<T> {
        match gap.checked_sub(1).and_then(|at| self.0.get(usize::from(at))) {
            None => Known::Known(value),
            Some(Gap::Unknown(why)) => Known::Unknown(why.clone()),
            Some(Gap::Absent(why)) => Known::Absent(why.clone()),
        }
    }

    pub(super) fn why(&self, gap: GapId) -> &str {
        match gap.checked_sub(1).and_then(|at| self.0.get(usize::from(at))) {
            None => "",
            Some(Gap::Unknown(why) | Gap::Absent(why)) => why,
        }
    }
}
