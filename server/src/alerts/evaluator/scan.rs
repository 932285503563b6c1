//! Evaluation of the rules on one lock.

use std::collections::{HashMap, HashSet};

use domain::alerts::limits::ALERTS_PER_RULE_MAX;
use domain::alerts::{
    ConditionKind, ConditionResult, EvaluationResult, LeftOut, LockSnapshot, Rule, RuleId, Subject,
    evaluate_lock, lock_sentence, may_be_same_holding,
};
use domain::names::BackendName;

use inventory::LongHeld;

/// Matches per rule and pass.
const FOUND_MAX: usize = 2 * ALERTS_PER_RULE_MAX;

/// Result of one pass.
#[derive(Default)]
pub(super) struct ScanSnapshot {
    pub(super) found: Vec<EvaluationResult>,
    pub(super) blind: HashSet<BackendName>,
    /// Open alerts whose condition is unknown now, by rule and subject.
    pub(super) unknown: HashSet<(RuleId, Subject)>,
    /// Matches of each rule.
    pub(super) counts: HashMap<usize, usize>,
    /// Matches that are not in `found`.
    pub(super) left_out: LeftOut,
}

/// Evaluates every rule on one lock.
pub(super) fn evaluate_rules(
    lock_snapshot: &LockSnapshot<'_>,
    watched: &[(usize, Rule)],
    known: &HashMap<(RuleId, Subject), String>,
    long_held: &LongHeld,
    seen: &mut ScanSnapshot,
) {
    let id = || lock_snapshot.id();
    let usual = |_: &LockSnapshot<'_>| long_held.usual_hold(&id());
    for (index, rule) in watched {
        let (sign, measure) = evaluate_lock(&rule.condition, lock_snapshot, &usual);
        let is_wanted = sign != ConditionResult::Clear && rule.covers(&lock_snapshot.lock());
        match sign {
            ConditionResult::Holds if is_wanted => {
                let count = seen.counts.entry(*index).or_default();
                *count += 1;
                // Enough matches to alert on; open alerts are still evaluated.
                if *count > FOUND_MAX && !known.contains_key(&(rule.id.clone(), Subject::Lock(id()))) {
                    seen.left_out.add(rule, &Subject::Lock(id()), lock_snapshot.owner);
                    continue;
                }
                let usual = (rule.condition.kind == ConditionKind::LongHeld)
                    .then(|| long_held.usual_hold(&id()))
                    .flatten();
                seen.found.push(EvaluationResult {
                    rule: *index,
                    subject: Subject::Lock(id()),
                    owner: lock_snapshot.owner.map(str::to_owned),
                    holding: lock_snapshot.holding(),
                    measure,
                    why: lock_sentence(&rule.condition, lock_snapshot, measure, usual),
                });
            }
            ConditionResult::Unknown if is_wanted && !known.is_empty() => {
                let key = (rule.id.clone(), Subject::Lock(id()));
                if known
                    .get(&key)
                    .is_some_and(|holding| may_be_same_holding(&lock_snapshot.holding(), holding))
                {
                    seen.unknown.insert(key);
                }
            }
            _ => {}
        }
    }
}
