//! One round: change, rest and compare; inject a fault, change further, heal; rest and compare again.

use std::fmt;
use std::time::Duration;

use tokio::time::sleep;

use super::fault::InjectedFault;
use super::fault_injection::{CHANGES_MEANWHILE, strike};
use super::ledger::differences;
use super::rng::Dice;
use super::systems::Systems;

/// From rest, or from the end of the fault, until the list is right.
const EQUAL_WITHIN_MS: i64 = 5_000;
const CHANGES_BEFORE: u32 = 120;

#[derive(Debug)]
pub(super) struct Totals {
    rounds: u32,
    changes: u32,
    locks_compared: usize,
    slowest_equal_ms: i64,
    slowest_stale_ms: i64,
    pub(super) slowest_rate: f64,
}

impl Default for Totals {
    fn default() -> Self {
        Self {
            rounds: 0,
            changes: 0,
            locks_compared: 0,
            slowest_equal_ms: 0,
            slowest_stale_ms: 0,
            slowest_rate: f64::INFINITY,
        }
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} rounds, {} changes, {} locks compared: 0 ghosts, 0 missing; equal again after {} ms at most, stale after \
             {} ms at most; before the faults at least {:.0} changes/s",
            self.rounds,
            self.changes,
            self.locks_compared,
            self.slowest_equal_ms,
            self.slowest_stale_ms,
            self.slowest_rate,
        )
    }
}

pub(super) async fn play(
    systems: &mut Systems,
    dice: &mut Dice,
    number: u32,
    fault: InjectedFault,
    totals: &mut Totals,
) {
    let began = systems.clock.tick();
    systems.changes(CHANGES_BEFORE, None, dice).await;
    let spent_ms = systems.clock.tick().since(began).max(1);
    totals.slowest_rate = totals
        .slowest_rate
        .min(f64::from(CHANGES_BEFORE) * 1_000.0 / spent_ms as f64);
    let quiet_ms = equal_again(systems, totals, &format!("round {number}, before {fault}")).await;

    let stale_ms = strike(systems, dice, fault).await;
    let equal_ms = equal_again(systems, totals, &format!("round {number}, after {fault}")).await;
    println!(
        "round {number}: {fault}; {:.0} changes/s; equal after {quiet_ms} ms at rest, {equal_ms} ms after the fault; \
         stale after {stale_ms:?} ms",
        f64::from(CHANGES_BEFORE) * 1_000.0 / spent_ms as f64,
    );
    totals.rounds += 1;
    totals.changes += CHANGES_BEFORE + CHANGES_MEANWHILE;
    totals.slowest_stale_ms = totals.slowest_stale_ms.max(stale_ms.unwrap_or_default());
}

/// Returns how long it took, in milliseconds.
async fn equal_again(systems: &mut Systems, totals: &mut Totals, when: &str) -> i64 {
    systems.rest(None).await;
    let (truth, began) = (systems.truth(), systems.clock.tick());
    loop {
        let shown = systems.view.all().await;
        let wrong = differences(&truth, &shown.locks);
        let spent_ms = systems.clock.tick().since(began);
        if wrong.is_empty() && shown.stale.is_empty() && shown.is_complete {
            totals.locks_compared += truth.len();
            totals.slowest_equal_ms = totals.slowest_equal_ms.max(spent_ms);
            return spent_ms;
        }
        assert!(
            spent_ms <= EQUAL_WITHIN_MS,
            "{when}: not equal after {spent_ms} ms; complete: {}, stale: {}, wrong:\n{}",
            shown.is_complete,
            shown.stale.len(),
            wrong.join("\n")
        );
        // Pause between two polls of a real system.
        sleep(Duration::from_millis(20)).await;
    }
}
