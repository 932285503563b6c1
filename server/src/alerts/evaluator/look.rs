//! What one look at everything finds, lock by lock.

use std::collections::{HashMap, HashSet};

use domain::alerts::limits::ALERTS_PER_RULE_MAX;
use domain::alerts::{Found, Kind, LeftOut, LockSight, Rule, RuleId, Sign, Subject, judge_lock, tell_lock};
use domain::names::BackendName;

use crate::inventory::LongHeld;

/// Locks found by one rule in one look.
const FOUND_MAX: usize = 2 * ALERTS_PER_RULE_MAX;

/// What one look found.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) found: Vec<Found>,
    pub(super) blind: HashSet<BackendName>,
    /// Alerts of which nobody can say now how they stand, by rule and subject.
    pub(super) unknown: HashSet<(RuleId, Subject)>,
    /// Locks found by each rule.
    pub(super) counts: HashMap<usize, usize>,
    /// Locks that were found and are not in `found`.
    pub(super) left_out: LeftOut,
}

/// One lock, by every rule.
pub(super) fn look_at(
    sight: &LockSight<'_>,
    watched: &[(usize, Rule)],
    known: &HashMap<(RuleId, Subject), String>,
    long_held: &LongHeld,
    seen: &mut Seen,
) {
    let id = || sight.id();
    let p95 = |_: &LockSight<'_>| long_held.p95_ms(&id());
    for (index, rule) in watched {
        let (sign, measure) = judge_lock(&rule.condition, sight, &p95);
        let is_wanted = sign != Sign::Clear && rule.covers(&sight.lock());
        match sign {
            Sign::Holds if is_wanted => {
                let count = seen.counts.entry(*index).or_default();
                *count += 1;
                // A condition that holds for a million locks is known to by then; open alerts stay.
                if *count > FOUND_MAX && !known.contains_key(&(rule.id.clone(), Subject::Lock(id()))) {
                    seen.left_out.add(rule, &Subject::Lock(id()), sight.owner);
                    continue;
                }
                let p95 = (rule.condition.kind == Kind::LongHeld)
                    .then(|| p95(sight))
                    .flatten();
                seen.found.push(Found {
                    rule: *index,
                    subject: Subject::Lock(id()),
                    owner: sight.owner.map(str::to_owned),
                    holding: sight.holding(),
                    measure,
                    why: tell_lock(&rule.condition, sight, measure, p95),
                });
            }
            Sign::Unknown if is_wanted && !known.is_empty() => {
                let key = (rule.id.clone(), Subject::Lock(id()));
                if known.get(&key).is_some_and(|holding| *holding == sight.holding()) {
                    seen.unknown.insert(key);
                }
            }
            _ => {}
        }
    }
}
