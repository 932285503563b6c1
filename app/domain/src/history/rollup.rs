//! What happened to the locks of one template on one backend in one stretch of time: sums that can be added up.

use super::histogram::Histogram;

/// Names that a roll-up remembers of those that were waited for most.
pub const HEAVY_MAX: usize = 4;

/// Sums over a minute, or over any number of them. Integrals are in milliseconds: one lock held for a minute is 60,000.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rollup {
    pub held_ms: u64,
    pub waiting_ms: u64,
    pub acquired: u64,
    /// Asked for and not granted, at once or after waiting in vain. Known of the lease service alone.
    pub refused: u64,
    pub expired: u64,
    pub reclaimed: u64,
    pub lost: u64,
    pub rejected: u64,
    pub unlocked: u64,
    /// Times that two owners of one lock were seen.
    pub believers: u64,
    /// Waits that ended, however.
    pub waits: Histogram,
    /// Holdings that ended.
    pub holds: Histogram,
    /// Of those: their lengths are known only between two bounds, and the middle is counted.
    pub holds_uncertain: u64,
    /// Time between renewals, and how much later they came than their own rhythm has it.
    pub renewals: Histogram,
    pub late: Histogram,
    /// TTLs of what was acquired or renewed.
    pub ttls: Histogram,
    /// Resources that were waited for most.
    pub heavy: Heavy,
}

/// A few names with the time that was waited for each, in milliseconds: at least so much, since those that fall out of the
/// few are forgotten.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Heavy(Vec<(String, u64)>);

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
            (&mut self.believers, other.believers),
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
        self.heavy.merge(&other.heavy);
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Of those who asked, how many were not granted; none where nobody asked.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a share needs no more than a double has"
    )]
    pub fn refused_share(&self) -> Option<f64> {
        let asked = self.acquired + self.refused;
        (asked > 0).then(|| self.refused as f64 / asked as f64)
    }
}

impl Heavy {
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
        self.0.truncate(HEAVY_MAX);
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
        self.0.truncate(HEAVY_MAX);
    }

    /// Most first.
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
    fn the_resource_that_causes_most_of_the_waiting_is_not_forgotten() {
        // One name in each of ten minutes, among nine others that come once.
        let mut sum = Rollup::default();
        for minute in 0..10_u64 {
            let mut one = Rollup::default();
            one.heavy.add("jobs/nightly", 30_000);
            for other in 0..3 {
                one.heavy.add(&format!("jobs/{minute}-{other}"), 4_000);
            }
            sum.merge(&one);
        }
        assert_eq!(sum.heavy.iter().next(), Some(("jobs/nightly", 300_000)));
        assert_eq!(sum.heavy.iter().count(), HEAVY_MAX);
    }

    proptest! {
        #[test]
        fn adding_up_is_the_same_in_any_order(counts in proptest::collection::vec((0u64..1_000, 0i64..100_000), 0..12)) {
            // Numbers and histograms; the few names are told as "at least" because theirs is not.
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
