//! Cycles of a directed graph: strongly connected components, and the shortest cycle in one.
//!
//! R. Tarjan, "Depth-first search and linear graph algorithms", SIAM J. Comput. 1(2), 1972; with
//! an explicit stack, because a chain of waits may be long. Linear in nodes and edges.

use std::collections::VecDeque;

/// Starts of the search for a shortest cycle: components are small, and a longer search would
/// only draw a slightly shorter cycle.
const STARTS_MAX: usize = 64;

/// Directed edges by their ends, both below `nodes`.
#[derive(Debug, Clone, Default)]
pub struct Digraph {
    /// Per node: index of the edge and its head.
    out: Vec<Vec<(usize, usize)>>,
    ends: Vec<(usize, usize)>,
}

impl Digraph {
    pub fn new(nodes: usize, ends: Vec<(usize, usize)>) -> Self {
        let mut out = vec![Vec::new(); nodes];
        for (edge, (from, to)) in ends.iter().enumerate() {
            out[*from].push((edge, *to));
        }
        Self { out, ends }
    }

    /// Components with more than one node: their nodes, ascending. An edge from a node to itself
    /// makes no component.
    pub fn components(&self) -> Vec<Vec<usize>> {
        let mut search = Search::new(self);
        for node in 0..self.out.len() {
            if search.order[node].is_none() {
                search.visit(node);
            }
        }
        let mut found = search.found;
        found.sort_unstable();
        found
    }

    /// The shortest cycle inside of `component` through one of `through`, as edges in order,
    /// beginning with that edge. `None` if no such edge is on a cycle of the component.
    pub fn shortest_cycle(&self, component: &[usize], through: &[usize]) -> Option<Vec<usize>> {
        let mut best: Option<Vec<usize>> = None;
        for edge in through.iter().take(STARTS_MAX) {
            let (from, to) = *self.ends.get(*edge)?;
            if from == to {
                continue;
            }
            let Some(back) = self.path(component, to, from) else {
                continue;
            };
            if best.as_ref().is_none_or(|best| back.len() + 1 < best.len()) {
                best = Some(std::iter::once(*edge).chain(back).collect());
            }
        }
        best
    }

    /// Edges of the shortest path inside of a sorted set of nodes.
    fn path(&self, inside: &[usize], from: usize, to: usize) -> Option<Vec<usize>> {
        let index_of = |node: usize| inside.binary_search(&node).ok();
        let mut reached_by: Vec<Option<usize>> = vec![None; inside.len()];
        let mut open = VecDeque::from([from]);
        let start = index_of(from)?;
        while let Some(node) = open.pop_front() {
            if node == to {
                break;
            }
            for (edge, next) in &self.out[node] {
                let Some(at) = index_of(*next).filter(|at| *at != start) else {
                    continue;
                };
                if reached_by[at].is_none() {
                    reached_by[at] = Some(*edge);
                    open.push_back(*next);
                }
            }
        }
        let mut path = Vec::new();
        let mut at = to;
        while at != from {
            let edge = reached_by[index_of(at)?]?;
            path.push(edge);
            at = self.ends[edge].0;
        }
        path.reverse();
        Some(path)
    }

    /// Every node from which one of `targets` can be reached, including the targets.
    pub fn reaching(&self, targets: &[usize]) -> Vec<usize> {
        let mut into = vec![Vec::new(); self.out.len()];
        for (from, to) in &self.ends {
            into[*to].push(*from);
        }
        let mut is_found = vec![false; self.out.len()];
        let mut open: Vec<usize> = targets.to_vec();
        while let Some(node) = open.pop() {
            if !std::mem::replace(&mut is_found[node], true) {
                open.extend(&into[node]);
            }
        }
        let found = is_found.into_iter().enumerate();
        found.filter_map(|(node, is)| is.then_some(node)).collect()
    }
}

struct Search<'g> {
    graph: &'g Digraph,
    /// Order of discovery, and the smallest one reachable through the component.
    order: Vec<Option<usize>>,
    low: Vec<usize>,
    is_open: Vec<bool>,
    open: Vec<usize>,
    next: usize,
    found: Vec<Vec<usize>>,
}

impl<'g> Search<'g> {
    fn new(graph: &'g Digraph) -> Self {
        let nodes = graph.out.len();
        Self {
            graph,
            order: vec![None; nodes],
            low: vec![0; nodes],
            is_open: vec![false; nodes],
            open: Vec::new(),
            next: 0,
            found: Vec::new(),
        }
    }

    fn enter(&mut self, node: usize) {
        self.order[node] = Some(self.next);
        self.low[node] = self.next;
        self.next += 1;
        self.open.push(node);
        self.is_open[node] = true;
    }

    fn visit(&mut self, root: usize) {
        self.enter(root);
        // The node and the index of its next edge.
        let mut path = vec![(root, 0)];
        while let Some((node, at)) = path.pop() {
            let Some((_, next)) = self.graph.out[node].get(at).copied() else {
                self.close_component(node);
                if let Some((parent, _)) = path.last() {
                    self.low[*parent] = self.low[*parent].min(self.low[node]);
                }
                continue;
            };
            path.push((node, at + 1));
            match self.order[next] {
                None => {
                    self.enter(next);
                    path.push((next, 0));
                }
                Some(order) if self.is_open[next] => self.low[node] = self.low[node].min(order),
                Some(_) => {}
            }
        }
    }

    fn close_component(&mut self, node: usize) {
        if self.order[node] != Some(self.low[node]) {
            return;
        }
        let start = self.open.iter().rposition(|open| *open == node).unwrap_or(0);
        let mut component = self.open.split_off(start);
        for member in &component {
            self.is_open[*member] = false;
        }
        if component.len() > 1 {
            component.sort_unstable();
            self.found.push(component);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NODES: usize = 9;

    /// Reachability by at least one edge, by brute force.
    fn reachability(ends: &[(usize, usize)]) -> Vec<Vec<bool>> {
        let mut reach = vec![vec![false; NODES]; NODES];
        for (from, to) in ends {
            reach[*from][*to] = true;
        }
        for middle in 0..NODES {
            for from in 0..NODES {
                for to in 0..NODES {
                    reach[from][to] |= reach[from][middle] && reach[middle][to];
                }
            }
        }
        reach
    }

    proptest! {
        #[test]
        fn components_are_the_sets_that_reach_each_other(
            ends in proptest::collection::vec((0..NODES, 0..NODES), 0..22)
        ) {
            let components = Digraph::new(NODES, ends.clone()).components();
            let reach = reachability(&ends);
            for (one, reached) in reach.iter().enumerate() {
                for other in (0..NODES).filter(|other| *other != one) {
                    let together = components.iter().any(|all| all.contains(&one) && all.contains(&other));
                    prop_assert_eq!(together, reached[other] && reach[other][one]);
                }
            }
        }

        #[test]
        fn a_cycle_is_closed_and_visits_no_owner_twice(
            ends in proptest::collection::vec((0..NODES, 0..NODES), 0..22)
        ) {
            let graph = Digraph::new(NODES, ends.clone());
            for component in graph.components() {
                let inside: Vec<usize> = (0..ends.len())
                    .filter(|edge| component.contains(&ends[*edge].0) && component.contains(&ends[*edge].1))
                    .collect();
                let cycle = graph.shortest_cycle(&component, &inside).unwrap();
                let mut visited: Vec<usize> = cycle.iter().map(|edge| ends[*edge].0).collect();
                for (at, edge) in cycle.iter().enumerate() {
                    prop_assert_eq!(ends[*edge].1, ends[cycle[(at + 1) % cycle.len()]].0);
                }
                visited.sort_unstable();
                visited.dedup();
                prop_assert_eq!(visited.len(), cycle.len());
                prop_assert!(cycle.len() > 1);
            }
        }

        #[test]
        fn owners_behind_a_set_are_those_that_reach_it(
            ends in proptest::collection::vec((0..NODES, 0..NODES), 0..22), target in 0..NODES
        ) {
            let behind = Digraph::new(NODES, ends.clone()).reaching(&[target]);
            let reach = reachability(&ends);
            for (node, reached) in reach.iter().enumerate() {
                prop_assert_eq!(behind.contains(&node), node == target || reached[target]);
            }
        }
    }

    #[test]
    fn a_long_chain_needs_no_deep_stack() {
        let nodes = 200_000;
        let ends: Vec<(usize, usize)> = (0..nodes).map(|node| (node, (node + 1) % nodes)).collect();
        let graph = Digraph::new(nodes, ends);
        assert_eq!(graph.components().len(), 1);
        assert!(Digraph::new(1, vec![(0, 0)]).components().is_empty());
    }
}
