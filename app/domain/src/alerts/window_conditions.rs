//! Conditions on the events of a prefix in a window. Live rules and the preview sum up windows
//! separately and evaluate the sums with the same function.

use super::baseline::{Baseline, Window};
use super::condition_kind::ConditionKind;
use super::evaluate::{EvaluationResult, Subject};
use super::holdings::Entry;
use super::lock_conditions::share;
use super::rule::{Condition, Rule};
use super::sorted_values::Ranked;
use crate::format;
use crate::names::BackendName;

/// Window of conditions that have no window parameter, in milliseconds.
const WINDOW_MS: i64 = 300_000;

/// Sums over one prefix in a window.
pub(super) struct Sums<'v> {
    pub(super) acquired: i64,
    pub(super) contended: i64,
    pub(super) refused: i64,
    pub(super) lost: i64,
    /// Waits in milliseconds, or hold times as thousandths of the TTL.
    pub(super) values: &'v dyn Ranked,
    /// Of the newest hold.
    pub(super) ttl_ms: i64,
}

/// Result of one window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) measure: i64,
    pub(super) is_above: bool,
}

pub(super) fn window_ms(condition: &Condition) -> i64 {
    condition.value("window").unwrap_or(WINDOW_MS)
}

/// The value that an entry adds to [`Sums::values`] for this condition, if any.
pub(super) fn value_of(kind: ConditionKind, entry: Entry) -> Option<i64> {
    match (kind, entry) {
        (ConditionKind::WaitP95, Entry::Waited(ms)) => Some(ms),
        // Only holds without a renewal: a holder that renews may work for longer than its TTL.
        (ConditionKind::HoldNearTtl, Entry::Held { ms, ttl_ms }) => Some(share(ms, ttl_ms)),
        _ => None,
    }
}

pub(super) fn evaluate_sums(condition: &Condition, sums: &Sums<'_>) -> Verdict {
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
            let attempts = sums.holdings().saturating_add(sums.refused);
            if attempts < at_least() {
                return above(0, i64::MAX);
            }
            let measure = share(sums.contended.saturating_add(sums.refused), attempts);
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

/// The sentence of an alert whose window [holds](judge_sums).
pub(super) fn sums_sentence(condition: &Condition, sums: &Sums<'_>, measure: i64) -> String {
    let within = format::period(window_ms(condition));
    let count = sums.values.count();
    match condition.kind {
        ConditionKind::Contention => {
            let (per_cent, holdings) = (measure / 10, sums.holdings());
            match sums.refused {
                0 => format!("{per_cent} % of {holdings} holdings in {within} were waited for."),
                refused => {
                    let attempts = holdings.saturating_add(refused);
                    format!("{per_cent} % of {attempts} attempts in {within} waited or were refused.")
                }
            }
        }
        ConditionKind::WaitP95 => {
            let p95 = format::duration(measure);
            format!("The p95 of {count} waits in {within} is {p95}.")
        }
        ConditionKind::HoldNearTtl => {
            let (per_cent, ttl) = (measure / 10, format::period(sums.ttl_ms));
            format!(
                "The p99 of {count} holds in {within} is {per_cent} % of the TTL of {ttl}: the work takes as long as its lease."
            )
        }
        _ => {
            let lost = format::counted(sums.lost.unsigned_abs(), "lease", "leases");
            format!("{lost} ran out in {within} while held.")
        }
    }
}

impl Sums<'_> {
    fn holdings(&self) -> i64 {
        self.acquired.max(self.contended)
    }
}

/// Every prefix for which the rule's condition holds now.
pub fn evaluate_windows(index: usize, rule: &Rule, past: &Baseline, now: i64) -> Vec<EvaluationResult> {
    let condition = &rule.condition;
    let mut found = Vec::new();
    for (key, window) in past.windows() {
        let (backend, prefix) = key;
        if !rule.scope.has_backend(backend) {
            continue;
        }
        let mut values = Vec::new();
        let sums = window.add_up(rule, past, key, now, &mut values);
        let verdict = evaluate_sums(condition, &sums);
        if verdict.is_above {
            found.push(EvaluationResult {
                rule: index,
                subject: Subject::Prefix {
                    backend: backend.clone(),
                    prefix: prefix.clone(),
                },
                owner: None,
                holding: String::new(),
                measure: verdict.measure,
                why: sums_sentence(condition, &sums, verdict.measure),
            });
        }
    }
    found
}

impl Window {
    /// Restricted to names that the rule's pattern covers.
    fn add_up<'v>(
        &self,
        rule: &Rule,
        past: &Baseline,
        key: &(BackendName, String),
        now: i64,
        values: &'v mut Vec<i64>,
    ) -> Sums<'v> {
        let of = &rule.scope.prefix;
        let since = now - window_ms(&rule.condition);
        let (mut acquired, mut contended, mut lost, mut newest_ttl) = (0, 0, 0, None);
        let newest_first = self.entries.iter().rev();
        for (_, entry, name) in newest_first.take_while(|(at, ..)| *at > since) {
            if !of.covers(name.as_bytes()) {
                continue;
            }
            acquired += i64::from(*entry == Entry::Acquired);
            contended += i64::from(*entry == Entry::Contended);
            lost += i64::from(*entry == Entry::Lost);
            values.extend(value_of(rule.condition.kind, *entry));
            if let Entry::Held { ttl_ms, .. } = entry {
                newest_ttl.get_or_insert(*ttl_ms);
            }
        }
        values.sort_unstable();
        // Refusals have a template and no name: a rule on one tenant of many counts none.
        let refused = if of.covers(key.1.as_bytes()) {
            past.refused_in(key, since, now)
        } else {
            0
        };
        Sums {
            acquired,
            contended,
            refused,
            lost,
            values,
            ttl_ms: newest_ttl.unwrap_or(0),
        }
    }
}
