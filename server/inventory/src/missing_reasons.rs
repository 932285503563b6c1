//! Reasons for missing values, each stored once: a million locks share a dozen of them.

use domain::reported::{Reported, Why};

use super::entry::Entry;

/// 0: the field has a value.
pub(super) type GapId = u8;
pub(super) const FILLED: GapId = 0;
/// Further reasons of one backend are not stored. Adapters word theirs without times and numbers where they can.
const REASONS_MAX: usize = 250;
const UNKNOWN: GapId = GapId::MAX - 1;
const ABSENT: GapId = GapId::MAX;
const NOT_STORED: &str = "its backend gave more reasons than are stored";

const _: () = assert!(REASONS_MAX < UNKNOWN as usize);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Gap {
    Unknown(Why),
    Absent(Why),
}

#[derive(Debug, Default)]
pub(super) struct MissingReasons(Vec<Gap>);

impl MissingReasons {
    /// Separates a value from the reason for its absence. `spare` replaces a missing value.
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
        if self.0.len() < REASONS_MAX {
            self.0.push(gap);
            return self.0.len() as GapId;
        }
        match gap {
            Gap::Unknown(_) => UNKNOWN,
            Gap::Absent(_) => ABSENT,
        }
    }

    pub(super) fn join<T>(&self, value: T, gap: GapId) -> Reported<T> {
        match gap {
            UNKNOWN => Reported::unknown(NOT_STORED),
            ABSENT => Reported::absent(NOT_STORED),
            _ => match self.stored(gap) {
                None => Reported::Value(value),
                Some(Gap::Unknown(why)) => Reported::Unknown(why.clone()),
                Some(Gap::Absent(why)) => Reported::NotApplicable(why.clone()),
            },
        }
    }

    fn stored(&self, gap: GapId) -> Option<&Gap> {
        self.0.get(usize::from(gap.checked_sub(1)?))
    }

    /// Whether the lock has a holder, known or not. A key in its lock-delay after its session was invalidated has none:
    /// it has no generation.
    pub(super) fn has_holder(&self, entry: &Entry) -> bool {
        let gap = entry.gaps.generation;
        gap != ABSENT && !matches!(self.stored(gap), Some(Gap::Absent(_)))
    }

    pub(super) fn why(&self, gap: GapId) -> &str {
        match self.stored(gap) {
            None if gap == FILLED => "",
            None => NOT_STORED,
            Some(Gap::Unknown(why) | Gap::Absent(why)) => why,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_reasons_than_are_stored_are_never_exchanged() {
        // The last ones have no reason of their own, and stay unknown or absent.
        let mut reasons = MissingReasons::default();
        for number in 0..2 * REASONS_MAX {
            let why = format!("reason {number}");
            let (_, gap) = reasons.split(Reported::<i64>::Unknown(why.clone().into()), 0);
            let shown = reasons.join(0, gap);
            let is_stored = number < REASONS_MAX;
            assert_eq!(
                shown.why(),
                Some(if is_stored { why.as_str() } else { NOT_STORED })
            );
            assert_eq!(reasons.why(gap), shown.why().unwrap());
            assert!(shown.is_unknown());
        }
        let (_, gap) = reasons.split(Reported::<i64>::absent("none here"), 0);
        assert!(reasons.join(0, gap).is_absent());
        assert_eq!(reasons.join(7, FILLED), Reported::Value(7));
    }
}
