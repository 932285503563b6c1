//! Wait trees across locks: owners are nodes, a lock's holder is above its waiters.

use crate::blockers::{Blocker, Edge, trees};
use crate::names::LockId;

/// One lock with waiters, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitEdge {
    pub lock: LockId,
    pub owner: String,
    pub held_ms: Option<i64>,
    /// Owner and how long it has waited, in queue order.
    pub waiters: Vec<(String, Option<i64>)>,
}

/// Largest trees first. An owner that holds one lock and waits for another is below that lock's
/// holder.
pub fn who_blocks(edges: &[WaitEdge]) -> Vec<Blocker> {
    // The same name on two backends may be two programs.
    let mut owners: Vec<(&str, &str)> = Vec::new();
    for edge in edges {
        let backend = edge.lock.backend.as_str();
        let all = std::iter::once(&edge.owner).chain(edge.waiters.iter().map(|(owner, _)| owner));
        owners.extend(all.map(|owner| (backend, owner.as_str())));
    }
    owners.sort_unstable();
    owners.dedup();
    let number = |backend: &str, owner: &str| {
        let index = owners.binary_search(&(backend, owner)).unwrap_or_default();
        i32::try_from(index).unwrap_or(i32::MAX)
    };
    let nodes = owners.iter().map(|(backend, owner)| {
        let on_backend = |edge: &&WaitEdge| edge.lock.backend.as_str() == *backend;
        let held: Vec<String> = edges
            .iter()
            .filter(on_backend)
            .filter(|edge| edge.owner == *owner)
            .map(|edge| edge.lock.resource.text())
            .collect();
        let waits = |edge: &WaitEdge| {
            edge.waiters
                .iter()
                .find(|(name, _)| name == owner)
                .map(|(_, ms)| *ms)
        };
        let waiting: Vec<(&WaitEdge, Option<i64>)> = edges
            .iter()
            .filter(on_backend)
            .filter_map(|edge| Some((edge, waits(edge)?)))
            .collect();
        let waited_for: Vec<String> = waiting
            .iter()
            .map(|(edge, _)| edge.lock.resource.text())
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
                .map(|(edge, _)| number(backend, &edge.owner))
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

    fn wait_edge(name: &str, owner: &str, waiters: &[&str]) -> WaitEdge {
        WaitEdge {
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
        let trees = who_blocks(&[
            wait_edge("close", "w7", &["w9", "w12"]),
            wait_edge("index", "w9", &["a14"]),
            wait_edge("other", "x", &["y"]),
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
