//! The deadlock condition: one alert per lock of a cycle of waits, so that each reader sees the
//! alerts of the locks in their scope. The sentence names nothing but that lock and its two owners.

use std::collections::HashSet;

use super::evaluate::{EvaluationResult, Subject};
use super::long_held::HeldLock;
use super::rule::Rule;
use crate::names::LockId;
use crate::tick::Tick;
use crate::waits::graph::{CycleDoubt, Deadlock, GraphEdge, WaitGraph};

/// The rule's condition on all waits.
#[derive(Debug, Default)]
pub struct DeadlockedLocks {
    pub found: Vec<EvaluationResult>,
    /// Locks of cycles that are possible only: open alerts on them keep their state.
    pub unknown: Vec<LockId>,
}

/// `index` is that of the rule; `now` is of the same clock as the graph.
pub fn evaluate_deadlocks(index: usize, rule: &Rule, graph: &WaitGraph, now: Tick) -> DeadlockedLocks {
    let mut result = DeadlockedLocks::default();
    let mut seen: HashSet<&LockId> = HashSet::new();
    for deadlock in &graph.deadlocks {
        for edge in deadlock.edges.iter().map(|edge| &graph.edges[*edge]) {
            if !seen.insert(&edge.lock) {
                continue;
            }
            let owner = graph.owners[edge.to.0].members[edge.to.1].owner.as_str();
            let lock = HeldLock {
                backend: &edge.lock.backend,
                name: edge.lock.resource.as_bytes(),
                owner: Some(owner),
                safety: None,
            };
            if !rule.covers(&lock) {
                continue;
            }
            match deadlock.cycle.doubt {
                Some(CycleDoubt::Stale | CycleDoubt::NotTogether) => result.unknown.push(edge.lock.clone()),
                None => result.found.push(EvaluationResult {
                    rule: index,
                    subject: Subject::Lock(edge.lock.clone()),
                    owner: Some(owner.to_owned()),
                    holding: String::new(),
                    measure: now.since(deadlock.cycle.since).max(0),
                    why: sentence(graph, deadlock, edge),
                }),
            }
        }
    }
    result
}

/// Without the names and the number of the other locks, which the reader may not see.
fn sentence(graph: &WaitGraph, deadlock: &Deadlock, edge: &GraphEdge) -> String {
    let name = |(owner, member): (usize, usize)| graph.owners[owner].members[member].owner.as_str();
    let place = match deadlock
        .edges
        .iter()
        .all(|other| graph.edges[*other].lock == edge.lock)
    {
        true => "here",
        false => "for other locks",
    };
    format!(
        "{} waits for it, by {}; its holder {} waits {place}, in a cycle that ends at {}.",
        name(edge.from),
        edge.kind.wait_evidence(),
        name(edge.to),
        name(edge.from)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alerts::{Condition, ConditionKind, builtin};
    use crate::backend::{BackendKind, BackendStatus};
    use crate::names::{BackendName, OwnerId, Resource, Source};
    use crate::waits::WaitParty;
    use crate::waits::observed::{BackendWaits, LockWaits, WaitingParty};
    use std::sync::Arc;

    fn wait(lock: &str, waiter: &str, holder: &str) -> LockWaits {
        let party = |id: &str| Arc::new(WaitParty::new(id, OwnerId::new(id), []));
        LockWaits {
            lock: LockId {
                backend: BackendName::builtin(),
                source: Source::fixed("lease"),
                resource: Resource::from(lock),
            },
            read_at: Tick(9_000),
            is_stale: false,
            held_ms: None,
            waiters: vec![WaitingParty {
                party: party(waiter),
                since: Tick(1_000),
                is_since_reported: true,
                wants: None,
                blocked_by: vec![party(holder)],
            }],
            more: 0,
        }
    }

    fn evaluate(status: BackendStatus) -> DeadlockedLocks {
        let backend = BackendWaits {
            backend: BackendName::builtin(),
            kind: BackendKind::Builtin,
            status,
            age_ms: Some(1_000),
            reports_waiters: true,
            locks: vec![wait("a", "x", "y"), wait("b", "y", "x"), wait("c", "z", "x")],
            unidentified_locks: 0,
        };
        let rule = builtin()
            .into_iter()
            .find(|rule| rule.condition == Condition::default_of(ConditionKind::Deadlock))
            .unwrap();
        evaluate_deadlocks(3, &rule, &WaitGraph::new(&[], &[backend]), Tick(10_000))
    }

    #[test]
    fn each_lock_of_a_cycle_is_found_and_none_behind_it() {
        let found = evaluate(BackendStatus::Live).found;
        let names: Vec<String> = found.iter().map(|one| one.subject.display_name()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(
            (found[0].rule, found[0].measure, found[0].owner.as_deref()),
            (3, 9_000, Some("y"))
        );
        assert_eq!(
            found[0].why,
            "x waits for it, by queue of the lease service; its holder y waits for other locks, in a cycle that ends at x."
        );
    }

    #[test]
    fn a_possible_cycle_neither_fires_nor_resolves() {
        let result = evaluate(BackendStatus::Stale);
        assert!(result.found.is_empty());
        assert_eq!(result.unknown.len(), 2);
    }
}
