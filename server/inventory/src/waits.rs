//! The graph of waits over all backends, built from the latest observations and the identity
//! rules; once per state of the inventory and step of time.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use domain::names::{LockId, Resource};
use domain::waits::graph::WaitGraph;
use domain::waits::identity::IdentityRule;
use domain::waits::observed::{BackendWaits, LockWaits, WaitingParty};
use parking_lot::{Mutex, RwLock};

use super::Inventory;
use super::backend_state::{Slot, SlotState};
use super::missing_reasons::FILLED;
use super::wait_tracker::ObservedWait;
use runtime::clock::ClockReading;

/// A graph without writes since is built again after this time, in milliseconds: backends become
/// stale by time alone.
const STEP_MS: i64 = 1_000;

/// Writes and step of time that a graph was built from.
type BuiltFrom = (u64, i64);

#[derive(Debug, Default)]
pub(super) struct Waits {
    rules: RwLock<Arc<[IdentityRule]>>,
    /// Locked while it is built: concurrent readers wait for one result.
    latest: Mutex<Option<(BuiltFrom, Arc<WaitGraph>)>>,
}

impl Inventory {
    /// Replaces the rules by which owners of different backends are joined.
    pub fn set_identity_rules(&self, rules: Vec<IdentityRule>) {
        *self.waits.rules.write() = rules.into();
        self.bump(0);
    }

    /// All waits of all backends. Readers limit it to their scope with
    /// [`GraphView`](domain::waits::view::GraphView).
    pub fn wait_graph(&self, now: ClockReading) -> Arc<WaitGraph> {
        let mut latest = self.waits.latest.lock();
        // Read before the locks: a later write makes the next request build again.
        let from = (
            self.written.load(Ordering::Acquire),
            now.tick.0.div_euclid(STEP_MS),
        );
        if let Some((_, graph)) = latest.as_ref().filter(|(built_from, _)| *built_from == from) {
            return graph.clone();
        }
        let rules = self.waits.rules.read().clone();
        let backends: Vec<BackendWaits> = self
            .slots()
            .iter()
            .map(|slot| slot.waits(&slot.read(), now))
            .collect();
        let graph = Arc::new(WaitGraph::new(&rules, &backends));
        *latest = Some((from, graph.clone()));
        graph
    }
}

impl Slot {
    fn waits(&self, state: &SlotState, now: ClockReading) -> BackendWaits {
        let mut waits = BackendWaits {
            backend: self.info.name.clone(),
            kind: self.info.kind,
            status: self.status(state, now),
            age_ms: state.passes.last_end.map(|tick| now.tick.since(tick)),
            reports_waiters: self
                .info
                .capabilities
                .iter()
                .any(|can| can.name == "waiters" && can.can),
            locks: Vec::new(),
            unidentified_locks: 0,
        };
        for (source, name, places) in state.shard.lines.iter() {
            if places.iter().all(|place| place.identity.is_none()) {
                waits.unidentified_locks += 1;
            } else {
                waits
                    .locks
                    .extend(self.lock_waits(state, (source, name), places, now));
            }
        }
        waits
    }

    fn lock_waits(
        &self,
        state: &SlotState,
        (source, name): (u16, &[u8]),
        places: &[ObservedWait],
        now: ClockReading,
    ) -> Option<LockWaits> {
        let shard = &state.shard;
        let entry = shard.lookup(source, name).and_then(|id| shard.slab.get(id))?;
        let info = shard.source(entry)?;
        let acquired_at = (entry.gaps.acquired_at == FILLED).then_some(entry.acquired_at);
        let backend_now = now.wall.timestamp_millis() + state.clock().offset_ms;
        let waiting = |place: &ObservedWait| {
            let identity = place.identity.as_ref()?;
            Some(WaitingParty {
                party: identity.party.clone(),
                since: place.since,
                is_since_reported: place.is_since_reported,
                wants: identity.wants.clone(),
                blocked_by: identity.blocked_by.clone(),
            })
        };
        let waiters: Vec<WaitingParty> = places.iter().filter_map(waiting).collect();
        let listed = u64::try_from(waiters.len()).unwrap_or(u64::MAX);
        let blockers = places.iter().filter_map(|place| place.identity.as_ref());
        let more_blockers: u64 = blockers.map(|identity| u64::from(identity.more_blockers)).sum();
        Some(LockWaits {
            lock: LockId {
                backend: self.info.name.clone(),
                source: info.source.clone(),
                resource: Resource::from_bytes(name),
            },
            read_at: entry.read_at,
            is_stale: entry.state == domain::state::LockState::Stale,
            held_ms: acquired_at.map(|at| (backend_now - at).max(0)),
            more: u64::from(entry.reported_waiters()).saturating_sub(listed) + more_blockers,
            waiters,
        })
    }
}
