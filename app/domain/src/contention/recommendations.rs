//! Recommendations for a prefix from its own history, each with its figures.

use serde::{Deserialize, Serialize};

use super::ContentionRow;
use crate::format;
use crate::history::histogram::ERROR;
use crate::history::rollup::Rollup;

/// Smallest sample for a 99th percentile of renewals or holdings.
const SAMPLES_MIN: u64 = 30;
/// Margin added to the latest renewal, in milliseconds, for cases not yet observed.
const MARGIN_MS: i64 = 1_000;
/// Locks without waiters are called idle only after this time, in milliseconds, and this many
/// acquisitions.
const IDLE_MS_MIN: i64 = 3_600_000;
const IDLE_ACQUIRED_MIN: u64 = 100;
/// Least number of cells, most of which had waiters.
const CELLS_MIN: usize = 6;

crate::wire_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub enum RecommendationKind {
        QueueOrPartition = "queue_or_partition",
        Needed = "is_it_needed",
        LongerTtl = "longer_ttl",
        RenewSooner = "renew_sooner",
        ShorterTtl = "shorter_ttl",
        EfficiencyOnly = "efficiency_only",
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Advice {
    pub kind: RecommendationKind,
    /// Recommended action.
    pub what: String,
    /// Figures behind the recommendation.
    pub why: String,
}

/// All stored history of one prefix.
#[derive(Debug, Clone, Copy)]
pub struct Retained<'a> {
    pub sums: &'a Rollup,
    /// Observed time, in milliseconds.
    pub watched_ms: i64,
    /// Time for which waiters are known, in milliseconds.
    pub waits_ms: i64,
    /// Its locks carry fencing tokens.
    pub has_tokens: bool,
}

/// From the range that a page shows.
pub fn from_range(row: &ContentionRow) -> Option<Advice> {
    let known: Vec<&Rollup> = row.cells.iter().flatten().collect();
    let busy = known.iter().filter(|cell| cell.waiting_ms > 0).count();
    let (name, percent) = row.heaviest()?;
    (known.len() >= CELLS_MIN && busy * 5 >= known.len() * 4 && percent >= 50).then(|| Advice {
        kind: RecommendationKind::QueueOrPartition,
        what: "queue or partition it".to_owned(),
        why: format!(
            "one resource, always contended: waited for in {busy} of {} cells, at least {percent} % of it for {name}",
            known.len()
        ),
    })
}

/// From all stored history.
pub fn from_history(of: Retained<'_>) -> Vec<Advice> {
    let found = [idle(of), ttl(of.sums), efficiency(of)];
    found.into_iter().flatten().collect()
}

fn idle(of: Retained<'_>) -> Option<Advice> {
    let sums = of.sums;
    let is_uncontended =
        sums.waiting_ms == 0 && sums.refused == 0 && sums.waits.is_empty() && sums.dual_owners == 0;
    let is_idle = is_uncontended && of.waits_ms >= IDLE_MS_MIN && sums.acquired >= IDLE_ACQUIRED_MIN;
    is_idle.then(|| Advice {
        kind: RecommendationKind::Needed,
        what: "is this lock needed?".to_owned(),
        why: format!(
            "acquired {} in {} watched, without a wait or a refusal",
            format::counted(sums.acquired, "time", "times"),
            format::period(of.waits_ms / 60_000 * 60_000)
        ),
    })
}

fn efficiency(of: Retained<'_>) -> Option<Advice> {
    (!of.has_tokens && of.sums.dual_owners > 0).then(|| Advice {
        kind: RecommendationKind::EfficiencyOnly,
        what: "for efficiency only".to_owned(),
        why: format!(
            "it has no fencing token, and two owners of one lock were seen {}",
            format::counted(of.sums.dual_owners, "time", "times")
        ),
    })
}

/// A TTL that exceeds the 99th percentile of renewals, renewed at a third of it.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "milliseconds of some days"
)]
fn supported_ms(late_ms: i64) -> i64 {
    let late = (late_ms as f64 * (1.0 + ERROR)).ceil() as i64;
    // Two thirds of the TTL are left when a renewal is due.
    let ttl = (late + MARGIN_MS) * 3 / 2;
    (ttl + 999) / 1_000 * 1_000
}

fn ttl(sums: &Rollup) -> Option<Advice> {
    let in_use = sums.ttls.quantile(0.5).map(nearest)?;
    if sums.late.count() < SAMPLES_MIN {
        return unrenewed(sums, in_use);
    }
    let late = sums.late.quantile(0.99)?;
    let interval = sums.renewals.quantile(0.5)?;
    let supported = supported_ms(late);
    let data = format!(
        "of {} renewals one in a hundred came {} late or more; the TTL in use is {}, renewed every {}",
        format::count(sums.renewals.count()),
        format::latency(late),
        format::period(in_use),
        format::age(interval)
    );
    let advice = |kind, what| {
        Some(Advice {
            kind,
            what,
            why: data.clone(),
        })
    };
    let third = format::period((in_use / 3 / 100 * 100).max(100));
    if in_use < supported {
        let (ttl, every) = (
            format::period(supported),
            format::period(supported / 3 / 100 * 100),
        );
        advice(
            RecommendationKind::LongerTtl,
            format!("a TTL of {ttl} or more, renewed every {every} or sooner"),
        )
    } else if interval * 5 > in_use * 2 {
        advice(
            RecommendationKind::RenewSooner,
            format!("renew every {third} or sooner"),
        )
    } else if in_use > supported.max(10_000) * 6 {
        let enough = format::period(supported.max(10_000) * 2);
        advice(
            RecommendationKind::ShorterTtl,
            format!("a TTL of {enough} is enough and frees a dead owner's lock sooner"),
        )
    } else {
        None
    }
}

/// Never renewed: the holding itself must end within the TTL.
fn unrenewed(sums: &Rollup, in_use: i64) -> Option<Advice> {
    let hold = sums.holds.quantile(0.99)?;
    let is_close = sums.renewals.is_empty() && sums.holds.count() >= SAMPLES_MIN && hold * 5 > in_use * 4;
    is_close.then(|| Advice {
        kind: RecommendationKind::LongerTtl,
        what: format!(
            "renew it, or a TTL of {} or more",
            format::period((hold * 2 + 999) / 1_000 * 1_000)
        ),
        why: format!(
            "one hold in a hundred takes {} or longer, and the TTL in use is {}",
            format::latency(hold),
            format::period(in_use)
        ),
    })
}

/// TTLs are whole seconds: reverses the rounding of the histogram.
fn nearest(ms: i64) -> i64 {
    let grain = match ms {
        ..2_000 => return ms,
        2_000..20_000 => 1_000,
        20_000..100_000 => 5_000,
        100_000..1_000_000 => 30_000,
        _ => 300_000,
    };
    (ms + grain / 2) / grain * grain
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn renewed(ttl_ms: i64, every_ms: i64, late_ms: i64) -> Rollup {
        let mut sums = Rollup::default();
        sums.ttls.add_many(ttl_ms, 100);
        sums.renewals.add_many(every_ms, 1_000);
        sums.late.add_many(0, 980);
        sums.late.add_many(late_ms, 20);
        sums
    }

    fn kinds(sums: &Rollup, has_tokens: bool) -> Vec<RecommendationKind> {
        let of = Retained {
            sums,
            watched_ms: 86_400_000,
            waits_ms: 86_400_000,
            has_tokens,
        };
        from_history(of).into_iter().map(|it| it.kind).collect()
    }

    #[test]
    fn ttl_advice_follows_the_observed_renewals() {
        // Renewed in time; with pauses beyond the TTL; too rarely; with a TTL far too long.
        assert_eq!(kinds(&renewed(30_000, 10_000, 800), true), []);
        assert_eq!(
            kinds(&renewed(15_000, 5_000, 20_000), true),
            [RecommendationKind::LongerTtl]
        );
        assert_eq!(
            kinds(&renewed(30_000, 25_000, 800), true),
            [RecommendationKind::RenewSooner]
        );
        assert_eq!(
            kinds(&renewed(3_600_000, 60_000, 500), true),
            [RecommendationKind::ShorterTtl]
        );
    }

    #[test]
    fn an_unrenewed_holding_must_fit_its_ttl() {
        // Forty holdings of 28 s under a TTL of 30 s, none renewed.
        let mut sums = Rollup::default();
        sums.ttls.add_many(30_000, 40);
        sums.holds.add_many(28_000, 40);
        let found = ttl(&sums).unwrap();
        assert_eq!(found.kind, RecommendationKind::LongerTtl);
        assert!(found.why.contains("30 s"), "{}", found.why);
    }

    #[test]
    fn locks_with_a_refusal_are_not_called_idle() {
        // A thousand acquisitions without a wait; then with one refusal; and two owners of a
        // lock without tokens.
        let mut sums = Rollup {
            acquired: 1_000,
            ..Rollup::default()
        };
        assert_eq!(kinds(&sums, true), [RecommendationKind::Needed]);
        sums.refused = 1;
        assert_eq!(kinds(&sums, true), []);
        sums.dual_owners = 2;
        assert_eq!(kinds(&sums, true), []);
        assert_eq!(kinds(&sums, false), [RecommendationKind::EfficiencyOnly]);
    }

    proptest! {
        #[test]
        fn a_supported_ttl_exceeds_the_latest_renewal(late in 0i64..10_000_000) {
            // Renewed at a third of it, with the margin left.
            let ttl = supported_ms(late);
            prop_assert!(ttl - ttl / 3 >= late + MARGIN_MS - 1);
        }
    }
}
