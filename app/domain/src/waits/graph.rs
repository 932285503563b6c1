//! The graph of waits: owners as nodes, waits as edges. Owners are joined inside one backend by
//! its own identity, and across backends by identity rules only.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::WaitParty;
use super::cycles::Digraph;
use super::identity::{IdentityRule, Recognition, recognize};
use super::observed::{BackendWaits, LockWaits, WaitingParty};
use crate::backend::{BackendKind, BackendStatus};
use crate::names::{BackendName, LockId, OwnerId};
use crate::tick::Tick;

/// Owners and waits in the graph; what is beyond is counted in [`WaitGraph::cut`].
pub const PARTIES_MAX: usize = 10_000;
pub const EDGES_MAX: usize = 20_000;

#[derive(Debug, Default)]
pub struct WaitGraph {
    /// Names of the identity rules.
    pub rules: Vec<String>,
    pub owners: Vec<WaitOwner>,
    pub edges: Vec<GraphEdge>,
    /// Certain ones first, then those that block most owners.
    pub deadlocks: Vec<Deadlock>,
    pub sources: Vec<WaitSource>,
    /// Waits that are not in the graph: beyond its limits, or beyond those of a lock.
    pub cut: u64,
    pub(super) all: Digraph,
    /// Without the edges of stale readings, which keep their numbers as loops.
    pub(super) current: Digraph,
}

/// One owner, with each of its identities.
#[derive(Debug, Default)]
pub struct WaitOwner {
    pub members: Vec<OwnerMember>,
}

/// An owner as one backend identifies it.
#[derive(Debug, Clone)]
pub struct OwnerMember {
    pub backend: BackendName,
    pub kind: BackendKind,
    pub owner: OwnerId,
    pub recognized: Vec<Recognition>,
}

#[derive(Debug, Clone)]
pub struct GraphEdge {
    /// Waiter and holder: owner, and which of its members.
    pub from: (usize, usize),
    pub to: (usize, usize),
    pub lock: LockId,
    pub kind: BackendKind,
    pub wants: Option<Box<str>>,
    pub since: Tick,
    pub is_since_reported: bool,
    pub read_at: Tick,
    pub held_ms: Option<i64>,
    pub trust: EdgeTrust,
}

crate::wire_enum! {
    /// How far the observation of a wait can be trusted now.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum EdgeTrust {
        Current = "current",
        /// The last scan covered a part of the backend: this wait was read, others may be missing.
        Partial = "partial",
        /// The reading is old: the wait may have ended since.
        Stale = "stale",
    }
}

/// Where waits come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitSource {
    pub backend: BackendName,
    pub kind: BackendKind,
    pub status: BackendStatus,
    pub age_ms: Option<i64>,
    pub reports_waiters: bool,
    pub unidentified_locks: u64,
}

/// Owners that all wait for each other.
#[derive(Debug, Clone)]
pub struct Deadlock {
    pub owners: Vec<usize>,
    /// All waits among them.
    pub edges: Vec<usize>,
    pub cycle: PickedCycle,
    /// Owners in it and behind it.
    pub blocked: Vec<usize>,
}

/// A cycle as drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PickedCycle {
    /// Edges in order: each holder is the next waiter.
    pub edges: Vec<usize>,
    /// The latest beginning of a wait: since then the cycle is closed.
    pub since: Tick,
    pub doubt: Option<CycleDoubt>,
}

/// Why a cycle is possible and not certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CycleDoubt {
    /// A wait of it is known from an old reading only.
    Stale,
    /// Its waits were read one after the other, and no moment is common to all of them.
    NotTogether,
}

impl WaitGraph {
    pub fn new(rules: &[IdentityRule], backends: &[BackendWaits]) -> Self {
        let mut parties = Parties::new(rules);
        let mut graph = Self {
            rules: rules.iter().map(|rule| rule.name.clone()).collect(),
            ..Self::default()
        };
        let mut locks: Vec<(&BackendWaits, &LockWaits)> = backends
            .iter()
            .flat_map(|backend| backend.locks.iter().map(move |lock| (backend, lock)))
            .collect();
        // The longest waits are kept if the graph is cut.
        let oldest = |lock: &LockWaits| lock.waiters.iter().map(|waiter| waiter.since).min();
        locks.sort_by(|(_, one), (_, other)| (oldest(one), &one.lock).cmp(&(oldest(other), &other.lock)));
        for (backend, lock) in locks {
            graph.cut += lock.more;
            for waiter in &lock.waiters {
                graph.add_waiter(&mut parties, backend, lock, waiter);
            }
        }
        let positions = parties.positions();
        graph.owners = parties.into_owners(&positions);
        for edge in &mut graph.edges {
            (edge.from, edge.to) = (positions[edge.from.0], positions[edge.to.0]);
        }
        graph.sources = backends.iter().map(WaitSource::new).collect();
        graph.find_deadlocks();
        graph
    }

    /// Ends of its edges are numbers of parties until the owners are known.
    fn add_waiter(
        &mut self,
        parties: &mut Parties<'_>,
        backend: &BackendWaits,
        lock: &LockWaits,
        waiter: &WaitingParty,
    ) {
        for blocker in &waiter.blocked_by {
            let has_room = self.edges.len() < EDGES_MAX && parties.members.len() + 2 <= PARTIES_MAX;
            if !has_room {
                self.cut += 1;
                continue;
            }
            let from = parties.number(backend, &waiter.party);
            let to = parties.number(backend, blocker);
            if from == to {
                continue;
            }
            self.edges.push(GraphEdge {
                from: (from, 0),
                to: (to, 0),
                lock: lock.lock.clone(),
                kind: backend.kind,
                wants: waiter.wants.clone(),
                since: waiter.since,
                is_since_reported: waiter.is_since_reported,
                read_at: lock.read_at,
                held_ms: lock.held_ms,
                trust: EdgeTrust::from_reading(backend, lock),
            });
        }
    }

    fn find_deadlocks(&mut self) {
        let ends = |edge: &GraphEdge| (edge.from.0, edge.to.0);
        self.all = Digraph::new(self.owners.len(), self.edges.iter().map(ends).collect());
        let current = self.edges.iter().map(|edge| match edge.trust {
            EdgeTrust::Stale => (edge.from.0, edge.from.0),
            EdgeTrust::Current | EdgeTrust::Partial => ends(edge),
        });
        self.current = Digraph::new(self.owners.len(), current.collect());
        let mut component_of = vec![None; self.owners.len()];
        let components = self.all.components();
        for (number, component) in components.iter().enumerate() {
            for owner in component {
                component_of[*owner] = Some(number);
            }
        }
        let mut inside = vec![Vec::new(); components.len()];
        for (number, edge) in self.edges.iter().enumerate() {
            let (from, to) = ends(edge);
            if let Some(component) = component_of[from].filter(|_| from != to)
                && component_of[to] == Some(component)
            {
                inside[component].push(number);
            }
        }
        let found = components.into_iter().zip(inside).filter_map(|(owners, edges)| {
            let cycle = self.pick_cycle(&owners, &edges)?;
            let blocked = self.all.reaching(&owners);
            Some(Deadlock {
                owners,
                edges,
                cycle,
                blocked,
            })
        });
        let mut found: Vec<Deadlock> = found.collect();
        found.sort_by_key(|deadlock| {
            let is_possible = deadlock.cycle.doubt.is_some();
            (
                is_possible,
                std::cmp::Reverse(deadlock.blocked.len()),
                deadlock.owners[0],
            )
        });
        self.deadlocks = found;
    }

    /// The shortest cycle through one of these edges; one that is certain, if there is one.
    pub fn pick_cycle(&self, owners: &[usize], through: &[usize]) -> Option<PickedCycle> {
        if let Some(edges) = self.current.shortest_cycle(owners, through) {
            let doubt = (!self.is_simultaneous(&edges)).then_some(CycleDoubt::NotTogether);
            return Some(self.new_cycle(edges, doubt));
        }
        let edges = self.all.shortest_cycle(owners, through)?;
        Some(self.new_cycle(edges, Some(CycleDoubt::Stale)))
    }

    fn new_cycle(&self, edges: Vec<usize>, doubt: Option<CycleDoubt>) -> PickedCycle {
        let latest_start = edges.iter().map(|edge| self.edges[*edge].since).max();
        PickedCycle {
            edges,
            since: latest_start.unwrap_or_default(),
            doubt,
        }
    }

    /// Some moment is inside of all of these waits, each from its beginning to its reading.
    fn is_simultaneous(&self, edges: &[usize]) -> bool {
        let latest_start = edges.iter().map(|edge| self.edges[*edge].since).max();
        let read = edges.iter().map(|edge| self.edges[*edge].read_at).min();
        latest_start <= read
    }
}

impl EdgeTrust {
    const fn from_reading(backend: &BackendWaits, lock: &LockWaits) -> Self {
        match backend.status {
            BackendStatus::Stale | BackendStatus::Down | BackendStatus::Starting => Self::Stale,
            _ if lock.is_stale => Self::Stale,
            BackendStatus::Partial => Self::Partial,
            BackendStatus::Live => Self::Current,
        }
    }
}

impl WaitSource {
    fn new(waits: &BackendWaits) -> Self {
        Self {
            backend: waits.backend.clone(),
            kind: waits.kind,
            status: waits.status,
            age_ms: waits.age_ms,
            reports_waiters: waits.reports_waiters,
            unidentified_locks: waits.unidentified_locks,
        }
    }
}

/// All owners of all backends, joined by union-find.
struct Parties<'r> {
    rules: &'r [IdentityRule],
    members: Vec<OwnerMember>,
    parent: Vec<usize>,
    by_id: HashMap<(BackendName, Box<str>), usize>,
    by_values: HashMap<(usize, Vec<(String, String)>), usize>,
}

impl<'r> Parties<'r> {
    fn new(rules: &'r [IdentityRule]) -> Self {
        Self {
            rules,
            members: Vec::new(),
            parent: Vec::new(),
            by_id: HashMap::new(),
            by_values: HashMap::new(),
        }
    }

    fn number(&mut self, backend: &BackendWaits, party: &WaitParty) -> usize {
        let key = (backend.backend.clone(), party.id.clone());
        if let Some(known) = self.by_id.get(&key) {
            return *known;
        }
        let number = self.members.len();
        self.by_id.insert(key, number);
        self.parent.push(number);
        let recognized = recognize(self.rules, &backend.backend, party);
        for recognition in &recognized {
            let identity = (recognition.rule, recognition.values.clone());
            let first = *self.by_values.entry(identity).or_insert(number);
            self.join(first, number);
        }
        self.members.push(OwnerMember {
            backend: backend.backend.clone(),
            kind: backend.kind,
            owner: party.owner.clone(),
            recognized,
        });
        number
    }

    fn root(&mut self, mut at: usize) -> usize {
        while self.parent[at] != at {
            // Path halving.
            self.parent[at] = self.parent[self.parent[at]];
            at = self.parent[at];
        }
        at
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.root(one), self.root(other));
        let (first, last) = (one.min(other), one.max(other));
        self.parent[last] = first;
    }

    /// Per party: its owner, and its index among the members of that owner.
    fn positions(&mut self) -> Vec<(usize, usize)> {
        let mut owner_of: HashMap<usize, usize> = HashMap::new();
        let mut sizes: Vec<usize> = Vec::new();
        let mut positions = Vec::with_capacity(self.members.len());
        for party in 0..self.members.len() {
            let root = self.root(party);
            let owner = *owner_of.entry(root).or_insert(sizes.len());
            if owner == sizes.len() {
                sizes.push(0);
            }
            positions.push((owner, sizes[owner]));
            sizes[owner] += 1;
        }
        positions
    }

    fn into_owners(self, positions: &[(usize, usize)]) -> Vec<WaitOwner> {
        let count = positions.iter().map(|(owner, _)| owner + 1).max().unwrap_or(0);
        let mut owners: Vec<WaitOwner> = std::iter::repeat_with(WaitOwner::default).take(count).collect();
        for (member, (owner, _)) in self.members.into_iter().zip(positions) {
            owners[*owner].members.push(member);
        }
        owners
    }
}
