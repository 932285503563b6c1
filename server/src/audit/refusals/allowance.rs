//! How many entries of refused requests each user or token may still write: GCRA per principal. Knows no store.

use std::collections::HashMap;

use domain::duration::millis;
use domain::tick::Tick;

use super::{PRINCIPAL_BURST, PRINCIPAL_ENTRY_INTERVAL, SOURCES_MAX};

/// When the full allowance of a principal is restored, by its id.
#[derive(Debug, Default)]
pub(super) struct Allowances(HashMap<String, Tick>);

impl Allowances {
    /// Takes one entry from the allowance of a principal, if there is one.
    pub(super) fn take(&mut self, principal: &str, now: Tick) -> bool {
        if self.0.len() >= SOURCES_MAX {
            self.0.retain(|_, full_at| *full_at > now);
        }
        let full_at = self.0.get(principal).map_or(now, |full_at| (*full_at).max(now));
        let next = full_at.plus(millis(PRINCIPAL_ENTRY_INTERVAL));
        let is_exhausted = next.since(now) > millis(PRINCIPAL_ENTRY_INTERVAL) * i64::from(PRINCIPAL_BURST);
        // A full table belongs to principals that are refused all the time: further ones are counted.
        if is_exhausted || (self.0.len() >= SOURCES_MAX && !self.0.contains_key(principal)) {
            return false;
        }
        self.0.insert(principal.to_owned(), next);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(allowances: &mut Allowances, principal: &str, tries: u32, at_seconds: i64) -> u32 {
        let now = Tick(at_seconds * 1_000);
        let taken = (0..tries).filter(|_| allowances.take(principal, now));
        u32::try_from(taken.count()).unwrap()
    }

    #[test]
    fn each_principal_has_a_burst_and_then_one_entry_per_interval() {
        let mut allowances = Allowances::default();
        assert_eq!(taken(&mut allowances, "a", 1_000, 0), PRINCIPAL_BURST);
        assert_eq!(taken(&mut allowances, "b", 1_000, 0), PRINCIPAL_BURST);
        assert_eq!(taken(&mut allowances, "a", 1_000, 9), 0);
        assert_eq!(taken(&mut allowances, "a", 1_000, 30), 3);
        assert_eq!(taken(&mut allowances, "a", 1_000, 1_000_000), PRINCIPAL_BURST);
    }

    #[test]
    fn memory_is_bounded() {
        let mut allowances = Allowances::default();
        for number in 0..SOURCES_MAX {
            assert!(allowances.take(&number.to_string(), Tick(0)));
        }
        assert!(!allowances.take("one more", Tick(0)));
        assert!(allowances.take("one more", Tick(millis(PRINCIPAL_ENTRY_INTERVAL))));
        assert_eq!(allowances.0.len(), 1);
    }
}
