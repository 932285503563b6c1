//! Threshold of a long-held rule for a lock: one computation for the alert, its preview and the
//! lock's state.

use super::condition_kind::ConditionKind;
use super::rule::{Condition, Rule};
use crate::names::BackendName;
use crate::safety::SafetyClass;

/// Fields that the scope of a rule matches.
#[derive(Debug, Clone, Copy)]
pub struct HeldLock<'a> {
    pub backend: &'a BackendName,
    pub name: &'a [u8],
    pub owner: Option<&'a str>,
    pub safety: Option<SafetyClass>,
}

impl Rule {
    /// The lock is within the rule's scope.
    pub fn covers(&self, lock: &HeldLock<'_>) -> bool {
        self.scope.has(lock.backend, lock.name, lock.owner)
            && self.scope.safety.is_none_or(|class| lock.safety == Some(class))
    }

    /// An enabled rule that gives locks the state `long_held`.
    pub fn is_long_held(&self) -> bool {
        self.is_enabled && self.condition.kind == ConditionKind::LongHeld
    }
}

/// Longest hold time in milliseconds that is not long-held; `None` if the condition has no
/// threshold for this lock. `p95_ms` is called only if needed.
pub fn held_limit_ms(condition: &Condition, p95_ms: impl FnOnce() -> Option<i64>) -> Option<i64> {
    let longer_than = condition.value("longer_than");
    let by_p95 = condition.value("times_p95").and_then(|times| {
        // The first whole measure above `times`, in hundredths of the p95.
        let above = times.saturating_add(1).saturating_mul(p95_ms()?.max(1)) - 1;
        Some(
            above
                .div_euclid(100)
                .max(condition.value("at_least").unwrap_or(0)),
        )
    });
    match (longer_than, by_p95) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::lock_conditions::{LockSnapshot, evaluate_lock};
    use super::super::state_machine::ConditionResult;
    use super::super::usual_hold_time::UsualHold;
    use super::*;
    use crate::diagnosis::{Facts, LifetimeFacts};
    use crate::names::Source;

    fn holds(condition: &Condition, held_ms: i64, p95_ms: Option<i64>) -> bool {
        let (backend, source) = (BackendName::builtin(), Source::fixed("lease"));
        let snapshot = LockSnapshot {
            backend: &backend,
            source: &source,
            name: b"jobs",
            owner: None,
            safety: None,
            facts: Facts {
                lifetime: LifetimeFacts::Session,
                cadence: None,
                renewals: 0,
                near_below_ms: None,
                sampling_ms: 0,
                waiters: None,
                oldest_waiter_ms: None,
                condition: None,
                is_long_held: false,
            },
            token: None,
            acquired_at: Some(0),
            held_ms,
            lag_ms: 0,
        };
        let usual = p95_ms.map(|p95_ms| UsualHold {
            p50_ms: p95_ms,
            p95_ms,
            uncertain: 0,
        });
        evaluate_lock(condition, &snapshot, &|_| usual).0 == ConditionResult::Holds
    }

    proptest! {
        #[test]
        fn the_limit_is_where_the_alert_begins_to_hold(
            times in proptest::option::of(110i64..2_000), longer in proptest::option::of(1_000i64..100_000),
            at_least in 0i64..100_000, p95 in proptest::option::of(0i64..50_000), held in 0i64..200_000,
        ) {
            let condition = Condition {
                kind: ConditionKind::LongHeld,
                values: vec![times, longer, Some(at_least)],
            };
            let limit = held_limit_ms(&condition, || p95);
            prop_assert_eq!(limit.is_some_and(|limit| held > limit), holds(&condition, held, p95));
            if let Some(limit) = limit {
                prop_assert!(!holds(&condition, limit, p95) && holds(&condition, limit + 1, p95));
            }
        }
    }
}
