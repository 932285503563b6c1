//! Blocker trees of database sessions: a root holds, its children wait.

use serde::{Deserialize, Serialize};

/// One session in a blocker tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Blocker {
    pub owner_id: String,
    pub pid: Option<i32>,
    /// State of the session and its current query.
    pub doing: String,
    /// What it holds or waits for: `ShareLock on transaction 812`.
    pub holds: String,
    /// How long it has waited; `None` for a root, which does not wait.
    pub waited_ms: Option<i64>,
    pub blocks: Vec<Blocker>,
}

/// One session and the sessions that it waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    pub node: Blocker,
    pub pid: i32,
    pub waits_for: Vec<i32>,
}

/// Builds the trees. Roots are sessions that wait for no session in `edges`. A waiter with two
/// blockers is listed below the first only; a cycle (a deadlock not yet broken) is cut at its
/// smallest pid, which becomes a root.
pub fn trees(mut edges: Vec<Edge>) -> Vec<Blocker> {
    edges.sort_by_key(|edge| edge.pid);
    let known: Vec<i32> = edges.iter().map(|edge| edge.pid).collect();
    let parent: Vec<Option<i32>> = edges
        .iter()
        .map(|edge| {
            edge.waits_for
                .iter()
                .copied()
                .find(|pid| *pid != edge.pid && known.contains(pid))
        })
        .collect();
    let mut roots = Vec::new();
    for (index, edge) in edges.iter().enumerate() {
        if parent[index].is_none() || smallest_of_cycle(index, &known, &parent) {
            roots.push(edge.pid);
        }
    }
    roots
        .iter()
        .filter_map(|pid| grow(*pid, &roots, &edges, &known, &parent))
        .collect()
}

fn smallest_of_cycle(start: usize, known: &[i32], parent: &[Option<i32>]) -> bool {
    let mut at = start;
    let mut smallest = known[start];
    for _ in 0..known.len() {
        let Some(up) = parent[at].and_then(|pid| known.binary_search(&pid).ok()) else {
            return false;
        };
        if up == start {
            return smallest == known[start];
        }
        smallest = smallest.min(known[up]);
        at = up;
    }
    false
}

fn grow(pid: i32, roots: &[i32], edges: &[Edge], known: &[i32], parent: &[Option<i32>]) -> Option<Blocker> {
    let index = known.binary_search(&pid).ok()?;
    let mut node = edges[index].node.clone();
    node.blocks = edges
        .iter()
        .enumerate()
        .filter(|(child, edge)| parent[*child] == Some(pid) && !roots.contains(&edge.pid))
        .filter_map(|(_, edge)| grow(edge.pid, roots, edges, known, parent))
        .collect();
    Some(node)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn edge(pid: i32, waits_for: &[i32]) -> Edge {
        let node = Blocker {
            owner_id: pid.to_string(),
            pid: Some(pid),
            doing: String::new(),
            holds: String::new(),
            waited_ms: None,
            blocks: Vec::new(),
        };
        Edge {
            node,
            pid,
            waits_for: waits_for.to_vec(),
        }
    }

    fn count(trees: &[Blocker]) -> usize {
        trees.iter().map(|tree| 1 + count(&tree.blocks)).sum()
    }

    #[test]
    fn a_wait_chain_is_below_its_root() {
        let trees = trees(vec![edge(3, &[2]), edge(1, &[]), edge(2, &[1])]);
        assert_eq!(trees.len(), 1);
        assert_eq!(trees[0].pid, Some(1));
        assert_eq!(trees[0].blocks[0].blocks[0].pid, Some(3));
    }

    proptest! {
        #[test]
        fn every_session_is_in_the_trees_once_even_in_deadlocks(
            waits in proptest::collection::vec(proptest::collection::vec(0..12i32, 0..3), 0..12)
        ) {
            let edges: Vec<Edge> = waits.iter().zip(0..).map(|(w, pid)| edge(pid, w)).collect();
            let expected = edges.len();
            prop_assert_eq!(count(&trees(edges)), expected);
        }
    }
}
