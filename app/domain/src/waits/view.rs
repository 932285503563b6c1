//! The part of the graph that one reader may see. Locks out of scope are hidden completely: a wait
//! for one is "another lock", consecutive ones are merged, and counts include only visible locks,
//! waits and their owners.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::graph::{
    CycleDoubt, Deadlock, EdgeTrust, GraphEdge, OwnerMember, PickedCycle, WaitGraph, WaitSource,
};
use super::page::{Cut, WaitsPage};
use super::page::{
    CycleHop, DEADLOCKS_SHOWN_MAX, DeadlockView, HOPS_SHOWN_MAX, IdentityView, JoinReason, SuggestedRelease,
    TREES_SHOWN_MAX, WAITS_SHOWN_MAX, WaitSourceView, WaitView,
};
use super::releases::freed_by;
use crate::access::Visible;
use crate::blockers::{self, Blocker, Edge};
use crate::contention::trees::size;
use crate::lease::Scope;
use crate::names::BackendName;
use crate::tick::Tick;

/// Waits in the blocker trees, the longest first, and how deep a tree is.
const TREE_WAITS_MAX: usize = 500;
const TREE_DEPTH_MAX: usize = 25;

/// The graph as one reader sees it at one moment.
pub struct GraphView<'g> {
    graph: &'g WaitGraph,
    visible: &'g Visible,
    now: Tick,
    /// Per edge.
    is_shown: Vec<bool>,
}

impl<'g> GraphView<'g> {
    pub fn new(graph: &'g WaitGraph, visible: &'g Visible, now: Tick) -> Self {
        let mut scopes: HashMap<BackendName, Scope> = HashMap::new();
        let mut is_visible = |edge: &GraphEdge| {
            let backend = &edge.lock.backend;
            let scope = scopes
                .entry(backend.clone())
                .or_insert_with(|| visible.on(backend));
            scope.covers_bytes(edge.lock.resource.as_bytes())
        };
        let is_shown = graph
            .edges
            .iter()
            .map(|edge| visible.is_everything() || is_visible(edge))
            .collect();
        Self {
            graph,
            visible,
            now,
            is_shown,
        }
    }

    pub fn page(&self) -> WaitsPage {
        let deadlocks = self.deadlocks();
        let (trees, trees_total) = self.trees();
        let waits = self.waits();
        let mut page = WaitsPage {
            deadlocks_total: deadlocks.len(),
            deadlocks: deadlocks.into_iter().take(DEADLOCKS_SHOWN_MAX).collect(),
            waits_total: waits.len(),
            waits: waits.into_iter().take(WAITS_SHOWN_MAX).collect(),
            trees,
            trees_total,
            sources: self.sources(),
            rules: self.graph.rules.clone(),
            cut: match (self.graph.cut, self.visible.is_everything()) {
                (0, _) => None,
                (cut, true) => Some(Cut::Waits(cut)),
                (_, false) => Some(Cut::Some),
            },
            is_limited: !self.visible.is_everything(),
            ..WaitsPage::default()
        };
        page.describe();
        page
    }

    /// The deadlocks with a visible wait.
    pub fn deadlocks(&self) -> Vec<DeadlockView> {
        let shown = self.graph.deadlocks.iter();
        shown.filter_map(|deadlock| self.deadlock(deadlock)).collect()
    }

    fn deadlock(&self, deadlock: &Deadlock) -> Option<DeadlockView> {
        let shown_edges: Vec<usize> = deadlock
            .edges
            .iter()
            .copied()
            .filter(|edge| self.is_shown[*edge])
            .collect();
        let cycle = match shown_edges.len() == deadlock.edges.len() {
            true => deadlock.cycle.clone(),
            false => self.graph.pick_cycle(&deadlock.owners, &shown_edges)?,
        };
        let is_partly_hidden = cycle.edges.iter().any(|edge| !self.is_shown[*edge]);
        let shown = || cycle.edges.iter().filter(|edge| self.is_shown[**edge]);
        let backends: BTreeSet<&BackendName> = shown()
            .map(|edge| &self.graph.edges[*edge].lock.backend)
            .collect();
        let closed_at = shown().map(|edge| self.graph.edges[*edge].since).max()?;
        Some(DeadlockView {
            hops: self.hops(&cycle),
            doubt: cycle.doubt.map(|doubt| self.doubt(&cycle, doubt)),
            closed_ms: self.now.since(closed_at).max(0),
            backends: backends.into_iter().cloned().collect(),
            blocked: self.blocked(deadlock),
            releases: match is_partly_hidden || self.has_hidden_wait(deadlock) {
                true => Vec::new(),
                false => self.releases(deadlock, &cycle),
            },
            is_partly_hidden,
        })
    }

    /// A wait in or behind the deadlock is hidden.
    fn has_hidden_wait(&self, deadlock: &Deadlock) -> bool {
        let is_blocked = |edge: &GraphEdge| deadlock.blocked.binary_search(&edge.from.0).is_ok();
        let mut edges = self.graph.edges.iter().zip(&self.is_shown);
        edges.any(|(edge, is_shown)| !is_shown && is_blocked(edge))
    }

    /// Owners behind the deadlock that wait for a visible lock.
    fn blocked(&self, deadlock: &Deadlock) -> usize {
        let edges = self.graph.edges.iter().zip(&self.is_shown);
        let waiting = edges
            .filter(|(_, is_shown)| **is_shown)
            .map(|(edge, _)| edge.from.0);
        let blocked = waiting.filter(|owner| deadlock.blocked.binary_search(owner).is_ok());
        blocked.collect::<BTreeSet<_>>().len()
    }

    fn doubt(&self, cycle: &PickedCycle, doubt: CycleDoubt) -> String {
        match doubt {
            CycleDoubt::NotTogether => {
                "its waits were read at different moments; the next readings confirm or refute it".to_owned()
            }
            CycleDoubt::Stale => {
                let edges = cycle.edges.iter().filter(|edge| self.is_shown[**edge]);
                let edges = edges.map(|edge| &self.graph.edges[*edge]);
                let stale: BTreeSet<&str> = edges
                    .filter(|edge| edge.trust == EdgeTrust::Stale)
                    .map(|edge| edge.lock.backend.as_str())
                    .collect();
                match stale.is_empty() {
                    true => "a wait of it is known from an old reading only".to_owned(),
                    false => {
                        let names: Vec<&str> = stale.into_iter().collect();
                        format!(
                            "the last reading of {} is old, so its wait may have ended",
                            names.join(", ")
                        )
                    }
                }
            }
        }
    }

    fn hops(&self, cycle: &PickedCycle) -> Vec<CycleHop> {
        // Begins with a visible wait, so that a run of hidden ones is not cut in two.
        let start = cycle
            .edges
            .iter()
            .position(|edge| self.is_shown[*edge])
            .unwrap_or(0);
        let rotated: Vec<usize> = cycle.edges[start..]
            .iter()
            .chain(&cycle.edges[..start])
            .copied()
            .collect();
        let mut hops = Vec::new();
        let mut before_hidden: Option<usize> = None;
        for (at, number) in rotated.iter().enumerate() {
            let previous = rotated[(at + rotated.len() - 1) % rotated.len()];
            if self.is_shown[*number] {
                hops.push(self.hop(previous, *number));
                before_hidden = None;
            } else if before_hidden.replace(previous).is_none() {
                let held = &self.graph.edges[previous];
                hops.push(CycleHop {
                    owner: self.label(held.to),
                    joined: None,
                    wait: None,
                });
            }
        }
        hops.truncate(HOPS_SHOWN_MAX);
        hops
    }

    /// The owner that holds the lock of `previous` and waits for that of `number`.
    fn hop(&self, previous: usize, number: usize) -> CycleHop {
        let (held, wait) = (&self.graph.edges[previous], &self.graph.edges[number]);
        let joined = (self.is_shown[previous] && held.to != wait.from)
            .then(|| self.join_reason(self.member(held.to), self.member(wait.from)));
        let label = joined.as_ref().filter(|joined| joined.rule.is_some());
        CycleHop {
            owner: label.map_or_else(|| self.label(wait.from), |joined| label_of(&joined.values)),
            joined,
            wait: Some(self.wait(wait)),
        }
    }

    fn member(&self, (owner, member): (usize, usize)) -> &OwnerMember {
        &self.graph.owners[owner].members[member]
    }

    /// The values of its first rule, or its own name.
    fn label(&self, at: (usize, usize)) -> String {
        let member = self.member(at);
        match member.recognized.first() {
            Some(recognized) => label_of(&recognized.values),
            None => member.owner.as_str().to_owned(),
        }
    }

    fn join_reason(&self, one: &OwnerMember, other: &OwnerMember) -> JoinReason {
        let common = one.recognized.iter().find_map(|first| {
            let is_equal = |second: &&super::identity::Recognition| {
                second.rule == first.rule && second.values == first.values
            };
            Some((first, other.recognized.iter().find(is_equal)?))
        });
        let identity = |member: &OwnerMember, field: Option<super::IdentityField>| IdentityView {
            backend: member.backend.clone(),
            owner: member.owner.as_str().to_owned(),
            field: field.map(|field| field.as_str().to_owned()),
        };
        JoinReason {
            rule: common.and_then(|(first, _)| self.graph.rules.get(first.rule).cloned()),
            values: common.map(|(first, _)| first.values.clone()).unwrap_or_default(),
            identities: vec![
                identity(one, common.map(|(first, _)| first.field)),
                identity(other, common.map(|(_, second)| second.field)),
            ],
        }
    }

    fn wait(&self, edge: &GraphEdge) -> WaitView {
        WaitView {
            lock: edge.lock.clone(),
            kind: edge.kind,
            waiter: self.member(edge.from).owner.as_str().to_owned(),
            holder: self.member(edge.to).owner.as_str().to_owned(),
            wants: edge.wants.as_deref().map(str::to_owned),
            evidence: edge.kind.wait_evidence().to_owned(),
            trust: edge.trust,
            waited_ms: self.now.since(edge.since).max(0),
            is_at_least: !edge.is_since_reported,
            held_ms: edge.held_ms,
            age_ms: self.now.since(edge.read_at).max(0),
        }
    }

    fn waits(&self) -> Vec<WaitView> {
        self.shown_edges()
            .into_iter()
            .map(|edge| self.wait(edge))
            .collect()
    }

    /// Longest wait first.
    fn shown_edges(&self) -> Vec<&'g GraphEdge> {
        let shown = self.graph.edges.iter().zip(&self.is_shown);
        let mut shown: Vec<&GraphEdge> = shown.filter_map(|(edge, is)| is.then_some(edge)).collect();
        shown.sort_by_key(|edge| edge.since);
        shown
    }

    fn releases(&self, deadlock: &Deadlock, cycle: &PickedCycle) -> Vec<SuggestedRelease> {
        let mut all: Vec<SuggestedRelease> = Vec::new();
        for edge in cycle
            .edges
            .iter()
            .take(HOPS_SHOWN_MAX)
            .map(|edge| &self.graph.edges[*edge])
        {
            let freed = freed_by(self.graph, deadlock, edge);
            let names = |owners: &[usize]| owners.iter().map(|owner| self.label((*owner, 0))).collect();
            all.push(SuggestedRelease {
                lock: edge.lock.clone(),
                holder: self.member(edge.to).owner.as_str().to_owned(),
                ends_session: edge.kind.release_ends_session(),
                at_once: names(&freed.at_once),
                then: names(&freed.then),
                side_effect: edge.kind.release_effect().to_owned(),
            });
        }
        all.sort_by_key(|release| (std::cmp::Reverse(release.freed()), release.ends_session));
        all
    }

    /// Blocker trees of the visible waits, and their number.
    fn trees(&self) -> (Vec<Blocker>, usize) {
        let mut held: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
        let mut waiting: BTreeMap<usize, Vec<&GraphEdge>> = BTreeMap::new();
        let mut member_of: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
        for edge in self.shown_edges().into_iter().take(TREE_WAITS_MAX) {
            held.entry(edge.to.0)
                .or_default()
                .insert(edge.lock.resource.text());
            waiting.entry(edge.from.0).or_default().push(edge);
            member_of.entry(edge.to.0).or_insert(edge.to);
            member_of.entry(edge.from.0).or_insert(edge.from);
        }
        let none = Vec::new();
        let nodes = member_of.into_iter().filter_map(|(owner, at)| {
            let waits = waiting.get(&owner).unwrap_or(&none);
            let number = |owner: usize| i32::try_from(owner).ok();
            Some(Edge {
                node: self.tree_node(at, held.get(&owner), waits),
                pid: number(owner)?,
                waits_for: waits.iter().filter_map(|edge| number(edge.to.0)).collect(),
            })
        });
        let mut trees = blockers::trees(nodes.collect());
        trees.retain(|tree| !tree.blocks.is_empty());
        trees.sort_by_key(|tree| std::cmp::Reverse(size(tree)));
        let total = trees.len();
        trees.truncate(TREES_SHOWN_MAX);
        for tree in &mut trees {
            cut_below(tree, TREE_DEPTH_MAX);
        }
        (trees, total)
    }

    fn tree_node(
        &self,
        at: (usize, usize),
        held: Option<&BTreeSet<String>>,
        waits: &[&GraphEdge],
    ) -> Blocker {
        let waited_for: BTreeSet<String> = waits.iter().map(|edge| edge.lock.resource.text()).collect();
        let join = |names: &BTreeSet<String>| names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        Blocker {
            owner_id: self.label(at),
            pid: None,
            doing: match waited_for.is_empty() {
                true => "does not wait".to_owned(),
                false => format!("waits for {}", join(&waited_for)),
            },
            holds: held.map_or_else(
                || "holds nothing that others wait for".to_owned(),
                |held| format!("holds {}", join(held)),
            ),
            waited_ms: waits.iter().map(|edge| self.now.since(edge.since).max(0)).max(),
            blocks: Vec::new(),
        }
    }

    fn sources(&self) -> Vec<WaitSourceView> {
        let shown = |source: &&WaitSource| !self.visible.on(&source.backend).is_nothing();
        let shown = self.graph.sources.iter().filter(shown);
        shown
            .map(|source| WaitSourceView {
                backend: source.backend.clone(),
                kind: source.kind,
                status: source.status,
                age_ms: source.age_ms,
                evidence: source
                    .reports_waiters
                    .then(|| source.kind.wait_evidence().to_owned()),
                unidentified_locks: match self.visible.on(&source.backend).is_everything() {
                    true => source.unidentified_locks,
                    false => 0,
                },
            })
            .collect()
    }
}

fn cut_below(tree: &mut Blocker, depth: usize) {
    if depth == 0 {
        tree.blocks.clear();
    }
    for child in &mut tree.blocks {
        cut_below(child, depth - 1);
    }
}

fn label_of(values: &[(String, String)]) -> String {
    let values: Vec<&str> = values.iter().map(|(_, value)| value.as_str()).collect();
    values.join("/")
}
