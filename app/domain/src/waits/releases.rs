//! Suggested releases: for each lock of a cycle, which owners its forced release frees.

use super::graph::{Deadlock, GraphEdge, WaitGraph};

/// Owners that a release frees, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Freed {
    pub at_once: Vec<usize>,
    /// As each owner before them finishes and releases what it holds.
    pub then: Vec<usize>,
}

/// Frees the lock of `edge` and follows the consequences: an owner without a wait finishes and
/// releases what it holds. Of several waiters for a lock, the longest waiter gets it.
pub fn freed_by(graph: &WaitGraph, deadlock: &Deadlock, edge: &GraphEdge) -> Freed {
    let in_reach = |owner: &usize| deadlock.blocked.binary_search(owner).is_ok();
    let is_released = |other: &GraphEdge| {
        other.lock == edge.lock || (edge.kind.release_ends_session() && other.to == edge.to)
    };
    // Waiter and the owner that it waits for.
    let mut waits: Vec<(usize, usize)> = Vec::new();
    let mut of_lock: Vec<&GraphEdge> = Vec::new();
    for other in &graph.edges {
        if !in_reach(&other.from.0) || other.from.0 == other.to.0 {
            continue;
        }
        if is_released(other) && other.to.0 == edge.to.0 {
            of_lock.push(other);
        } else {
            waits.push((other.from.0, other.to.0));
        }
    }
    of_lock.sort_by_key(|other| other.since);
    for (at, other) in of_lock.iter().enumerate() {
        let next = of_lock[..at].iter().find(|before| before.lock == other.lock);
        if let Some(next) = next.filter(|next| next.from.0 != other.from.0) {
            waits.push((other.from.0, next.from.0));
        }
    }
    let mut freed = Freed::default();
    let mut remaining: Vec<usize> = deadlock.blocked.clone();
    loop {
        let is_waiting = |owner: usize| waits.iter().any(|(from, _)| *from == owner);
        let (finished, waiting): (Vec<usize>, Vec<usize>) =
            remaining.into_iter().partition(|owner| !is_waiting(*owner));
        remaining = waiting;
        if finished.is_empty() {
            return freed;
        }
        waits.retain(|(_, to)| !finished.contains(to));
        if freed.at_once.is_empty() && freed.then.is_empty() {
            freed.at_once = finished;
        } else {
            freed.then.extend(finished);
        }
    }
}
