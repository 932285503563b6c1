//! Rollups: sums over the locks of one template on one backend in one time span.

use super::histogram::Histogram;

/// Names with the longest waits that a rollup stores.
pub const MOST_WAITED_MAX: usize = 4;

/// Sums over a minute, or over any number of minutes. Integrals are in milliseconds: one lock
/// held for a minute is 60,000.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rollup {
    pub held_ms: u64,
    pub waiting_ms: u64,
    pub acquired: u64,
    /// Acquires that were not granted, at once or after a wait. Known for the lease service
    /// only.
    pub refused: u64,
    pub expired: u64,
    pub reclaimed: u64,
    pub lost: u64,
    pub rejected: u64,
    pub unlocked: u64,
    /// Times that two owners of one lock were observed.
    pub dual_owners: u64,
    /// Waits that ended, granted or not.
    pub waits: Histogram,
    /// Holdings that ended.
    pub holds: Histogram,
    /// Holds whose length is known only between two bounds; the middle is counted.
    pub holds_uncertain: u64,
    /// Intervals between renewals, and their lateness against their own mean.
    pub renewals: Histogram,
    pub late: Histogram,
    /// TTLs of acquisitions and renewals.
    pub ttls: Histogram,
    /// Resources with the longest waits.
    pub most_waited: MostWaited,
}

/// A few names with their wait in milliseconds: a lower bound, since evicted names lose their
/// sum.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MostWaited(Vec<(String, u64)>);

impl Rollup {
    pub fn merge(&mut self, other: &Self) {
        let sums = [
            (&mut self.held_ms, other.held_ms),
            (&mut self.waiting_ms, other.waiting_ms),
            (&mut self.acquired, other.acquired),
            (&mut self.refused, other.refused),
            (&mut self.expired, other.expired),
            (&mut self.reclaimed, other.reclaimed),
            (&mut self.lost, other.lost),
            (&mut self.rejected, other.rejected),
            (&mut self.unlocked, other.unlocked),
            (&mut self.dual_owners, other.dual_owners),
            (&mut self.holds_uncertain, other.holds_uncertain),
        ];
        for (sum, more) in sums {
            *sum = sum.saturating_add(more);
        }
        self.waits.merge(&other.waits);
        self.holds.merge(&other.holds);
        self.renewals.merge(&other.renewals);
        self.late.merge(&other.late);
        self.ttls.merge(&other.ttls);
        self.most_waited.merge(&other.most_waited);
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl MostWaited {
    pub fn add(&mut self, name: &str, ms: u64) {
        if ms == 0 {
            return;
        }
        match self.0.iter_mut().find(|(kept, _)| kept == name) {
            Some((_, sum)) => *sum = sum.saturating_add(ms),
            None => self.0.push((name.to_owned(), ms)),
        }
        self.0
            .sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        self.0.truncate(MOST_WAITED_MAX);
    }

    pub fn merge(&mut self, other: &Self) {
        for (name, ms) in &other.0 {
            match self.0.iter_mut().find(|(kept, _)| kept == name) {
                Some((_, sum)) => *sum = sum.saturating_add(*ms),
                None => self.0.push((name.clone(), *ms)),
            }
        }
        self.0
            .sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        self.0.truncate(MOST_WAITED_MAX);
    }

    /// Longest wait first.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, ms)| (name.as_str(), *ms))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_resource_with_the_longest_wait_is_kept() {
        // One name in each of ten minutes, among nine others that occur once.
        let mut sum = Rollup::default();
        for minute in 0..10_u64 {
            let mut one = Rollup::default();
            one.most_waited.add("jobs/nightly", 30_000);
            for other in 0..3 {
                one.most_waited.add(&format!("jobs/{minute}-{other}"), 4_000);
            }
            sum.merge(&one);
        }
        assert_eq!(sum.most_waited.iter().next(), Some(("jobs/nightly", 300_000)));
        assert_eq!(sum.most_waited.iter().count(), MOST_WAITED_MAX);
    }

    proptest! {
        #[test]
        fn sums_do_not_depend_on_the_order(counts in proptest::collection::vec((0u64..1_000, 0i64..100_000), 0..12)) {
            // Numbers and histograms are order-independent; the heaviest names are not, hence
            // "at least".
            let all: Vec<Rollup> = counts
                .iter()
                .map(|(count, ms)| {
                    let mut one = Rollup { held_ms: *count, refused: *count / 2, ..Rollup::default() };
                    one.waits.add(*ms);
                    one
                })
                .collect();
            let (mut forth, mut back) = (Rollup::default(), Rollup::default());
            all.iter().for_each(|one| forth.merge(one));
            all.iter().rev().for_each(|one| back.merge(one));
            prop_assert_eq!(forth, back);
        }
    }
}
