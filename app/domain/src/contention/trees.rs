//! Wait trees across locks: owners are nodes, a lock's holder is above its waiters.

use crate::blockers::{Blocker, Edge, trees};
use crate::names::LockId;

/// One lock with waiters, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockQueue {
    pub lock: LockId,
    pub owner: String,
    pub held_ms: Option<i64>,
    /// Owner and how long it has waited, in queue order.
    pub waiters: Vec<(String, Option<i64>)>,
}

/// Largest trees first. An owner that holds one lock and waits for another is below that lock's
/// holder.
pub fn wait_trees(queues: &[LockQueue]) -> Vec<Blocker> {
    // The same name on two backends may be two programs.
    let mut owners: Vec<(&str, &str)> = Vec::new();
    for queue in queues {
        let backend = queue.lock.backend.as_str();
        let all = std::iter::once(&queue.owner).chain(queue.waiters.iter().map(|(owner, _)| owner));
        owners.extend(all.map(|owner| (backend, owner.as_str())));
    }
    owners.sort_unstable();
    owners.dedup();
    let number = |backend: &str, owner: &str| {
        let index = owners.binary_search(&(backend, owner)).unwrap_or_default();
        i32::try_from(index).unwrap_or(i32::MAX)
    };
    let nodes = owners.iter().map(|(backend, owner)| {
        let on_backend = |queue: &&LockQueue| queue.lock.backend.as_str() == *backend;
        let held: Vec<String> = queues
            .iter()
            .filter(on_backend)
            .filter(|queue| queue.owner == *owner)
            .map(|queue| queue.lock.resource.text())
            .collect();
        let waits = |queue: &LockQueue| {
            queue
                .waiters
                .iter()
                .find(|(name, _)| name == owner)
                .map(|(_, ms)| *ms)
        };
        let waiting: Vec<(&LockQueue, Option<i64>)> = queues
            .iter()
            .filter(on_backend)
            .filter_map(|queue| Some((queue, waits(queue)?)))
            .collect();
        let waited_for: Vec<String> = waiting
            .iter()
            .map(|(queue, _)| queue.lock.resource.text())
            .collect();
        let doing = match (held.is_empty(), waited_for.is_empty()) {
            (false, true) => "does not wait".to_owned(),
            _ => format!("waits for {}", waited_for.join(", ")),
        };
        let node = Blocker {
            owner_id: (*owner).to_owned(),
            pid: None,
            doing,
            holds: if held.is_empty() {
                "holds nothing that others wait for".to_owned()
            } else {
                format!("holds {}", held.join(", "))
            },
            waited_ms: waiting.iter().filter_map(|(_, ms)| *ms).max(),
            blocks: Vec::new(),
        };
        Edge {
            node,
            pid: number(backend, owner),
            waits_for: waiting
                .iter()
                .map(|(queue, _)| number(backend, &queue.owner))
                .collect(),
        }
    });
    let mut roots = trees(nodes.collect());
    roots.retain(|tree| !tree.blocks.is_empty());
    roots.sort_by_key(|tree| std::cmp::Reverse(size(tree)));
    roots
}

/// Number of owners in a tree, including its root.
pub fn size(tree: &Blocker) -> usize {
    1 + tree.blocks.iter().map(size).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{BackendName, Resource, Source};

    fn lock_queue(name: &str, owner: &str, waiters: &[&str]) -> LockQueue {
        LockQueue {
            lock: LockId {
                backend: BackendName::builtin(),
                source: Source::fixed("lease"),
                resource: Resource::from(name),
            },
            owner: owner.to_owned(),
            held_ms: None,
            waiters: waiters.iter().map(|who| ((*who).to_owned(), Some(5))).collect(),
        }
    }

    #[test]
    fn a_holder_that_waits_is_below_the_other_holder() {
        // w9 waits for w7 and holds what a14 waits for; another backend has a queue of its own.
        let trees = wait_trees(&[
            lock_queue("close", "w7", &["w9", "w12"]),
            lock_queue("index", "w9", &["a14"]),
            lock_queue("other", "x", &["y"]),
        ]);
        assert_eq!(
            trees
                .iter()
                .map(|tree| (tree.owner_id.as_str(), size(tree)))
                .collect::<Vec<_>>(),
            [("w7", 4), ("x", 2)]
        );
        let w9 = trees[0]
            .blocks
            .iter()
            .find(|child| child.owner_id == "w9")
            .unwrap();
        assert_eq!(w9.holds, "holds index");
        assert_eq!(w9.blocks[0].owner_id, "a14");
    }
}
