//! Conditions on the events of a prefix in a window; live rules and previews evaluate windows
//! with these functions.

use super::condition_kind::ConditionKind;
use super::lock_conditions::share;
use super::prefix_window::{PrefixWindow, Sums};
use super::rule::Condition;
use crate::format;

/// Result of one window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) measure: i64,
    pub(super) is_above: bool,
}

pub(super) fn evaluate_window(condition: &Condition, window: &PrefixWindow, refused: i64) -> Verdict {
    let sums = window.sums();
    let limit = |name| condition.value(name).unwrap_or(i64::MAX);
    let at_least = || condition.value("at_least").unwrap_or(1);
    let above = |measure, limit| Verdict {
        measure,
        is_above: measure > limit,
    };
    let quantile = |percent| match i64::try_from(sums.values.count()) {
        Ok(count) if count < at_least() => 0,
        _ => sums.values.quantile(percent),
    };
    match condition.kind {
        ConditionKind::Contention => {
            let attempts = sums.holdings().saturating_add(refused);
            if attempts < at_least() {
                return above(0, i64::MAX);
            }
            let measure = share(sums.contended.saturating_add(refused), attempts);
            above(measure, limit("share"))
        }
        ConditionKind::WaitP95 => above(quantile(95), limit("longer_than")),
        ConditionKind::HoldNearTtl => above(quantile(99), limit("share")),
        ConditionKind::LeaseLosses => Verdict {
            measure: sums.lost,
            is_above: sums.lost >= limit("count"),
        },
        _ => above(0, i64::MAX),
    }
}

/// The sentence of an alert whose window [holds](evaluate_window).
pub(super) fn window_sentence(
    condition: &Condition,
    window: &PrefixWindow,
    refused: i64,
    measure: i64,
) -> String {
    let (within, sums) = (format::period(window.window_ms()), window.sums());
    let count = sums.values.count();
    let newest = if window.is_cut() { "the newest " } else { "" };
    let uncertain = match sums.uncertain {
        0 => String::new(),
        uncertain => format!(", not counting {uncertain} of uncertain length"),
    };
    match condition.kind {
        ConditionKind::Contention => {
            let (per_cent, holdings) = (measure / 10, sums.holdings());
            match refused {
                0 => format!("{per_cent} % of {holdings} holds in {within} were waited for."),
                refused => {
                    let attempts = holdings.saturating_add(refused);
                    format!("{per_cent} % of {attempts} attempts in {within} waited or were refused.")
                }
            }
        }
        ConditionKind::WaitP95 => {
            let p95 = format::duration(measure);
            format!("The p95 of {newest}{count} waits in {within}{uncertain} is {p95}.")
        }
        ConditionKind::HoldNearTtl => {
            let (per_cent, ttl) = (measure / 10, format::period(sums.ttl_ms));
            format!(
                "The p99 of {newest}{count} holds in {within}{uncertain} is {per_cent} % of the TTL of {ttl}: the work takes as long as its lease."
            )
        }
        _ => {
            let lost = format::counted(sums.lost.unsigned_abs(), "lease", "leases");
            format!("{lost} ran out in {within} while held.")
        }
    }
}

impl Sums {
    fn holdings(&self) -> i64 {
        self.acquired.max(self.contended)
    }
}
