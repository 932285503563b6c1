//! Held locks and waiters per template and backend, for rollups, and whether they are known
//! now.

use domain::backend::{BackendKind, BackendStatus};
use domain::names::BackendName;

use super::Inventory;
use super::template_groups::GroupReading;
use runtime::clock::ClockReading;

/// One backend at one moment.
#[derive(Debug, Clone)]
pub struct WatchedBackend {
    pub name: BackendName,
    pub kind: BackendKind,
    /// Its rows are current.
    pub is_watched: bool,
    pub reports_waiters: bool,
    pub groups: Vec<GroupReading>,
}

impl Inventory {
    /// Every configured backend, in the order of the configuration.
    pub fn watched(&self, now: ClockReading) -> Vec<WatchedBackend> {
        let watched_backend = |slot: &std::sync::Arc<super::backend_state::Slot>| {
            let mut state = slot.write();
            let status = slot.status(&state, now);
            let is_watched = !status.blinds_rows() && status != BackendStatus::Starting;
            let can_wait = |can: &domain::backend::Capability| can.name == "waiters" && can.can;
            WatchedBackend {
                name: slot.info.name.clone(),
                kind: slot.info.kind,
                is_watched,
                reports_waiters: slot.info.capabilities.iter().any(can_wait),
                groups: state.shard.groups.read(now.tick, !is_watched),
            }
        };
        self.slots().iter().map(watched_backend).collect()
    }
}
