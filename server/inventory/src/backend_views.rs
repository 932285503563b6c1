//! Backends as shown by the status strip, the Backends page and the API.

use domain::access::Visible;
use domain::backend::{BackendStatus, BackendView, ClusterView, SourceView};
use domain::reported::Reported;

use super::backend_state::{Slot, SlotState};
use super::{Inventory, status};
use runtime::clock::ClockReading;

impl Inventory {
    /// Every configured backend, in the order of the configuration.
    pub fn backends(&self, now: ClockReading) -> Vec<BackendView> {
        self.slots()
            .iter()
            .map(|slot| slot.view(&slot.read(), now))
            .collect()
    }

    /// Statuses of the backends on which this viewer may see locks, in the same order.
    pub fn statuses(&self, visible: &Visible, now: ClockReading) -> Vec<BackendStatus> {
        self.slots()
            .iter()
            .filter(|slot| !visible.on(&slot.info.name).is_nothing())
            .map(|slot| slot.status(&slot.read(), now))
            .collect()
    }
}

impl Slot {
    pub(super) fn status(&self, state: &SlotState, now: ClockReading) -> BackendStatus {
        status::status(
            self.info.poll_interval_ms,
            &state.passes,
            &state.coverage,
            now.tick,
        )
    }

    /// The poll interval that ages are compared with.
    pub(super) fn period_ms(&self, state: &SlotState) -> i64 {
        status::period_ms(self.info.poll_interval_ms, &state.passes)
    }

    /// Why its rows are stale now; `None` if they are not.
    pub(super) fn blind(&self, state: &SlotState, now: ClockReading) -> Option<String> {
        self.status(state, now).blinds_rows().then(|| match &state.fault {
            Some(fault) => format!("{}: {}", self.info.name, fault.message),
            None => format!("{} has not finished a scan since", self.info.name),
        })
    }

    pub(super) fn view(&self, state: &SlotState, now: ClockReading) -> BackendView {
        let sums = state.shard.sums_over(&[state.shard.order.everything()], now.tick);
        let status = self.status(state, now);
        let reports_waiters = self
            .info
            .capabilities
            .iter()
            .any(|can| can.name == "waiters" && can.can);
        BackendView {
            name: self.info.name.clone(),
            kind: self.info.kind,
            address: self.info.address.clone(),
            status,
            observed_at: state.passes.last_end.map(|tick| now.wall_at(tick)),
            age_ms: state.passes.last_end.map(|tick| now.tick.since(tick)),
            poll_interval_ms: self.period_ms(state),
            coverage: state.coverage.clone(),
            fault: state.fault.clone(),
            locks: state.shard.slab.len() as u64,
            waiters: if reports_waiters {
                Reported::Value(sums.waiters)
            } else {
                Reported::unknown("this kind of backend keeps no queue of waiters")
            },
            needing_attention: if status.blinds_rows() {
                0
            } else {
                sums.states.needing_attention()
            },
            clock_offset_ms: state.offset_ms.clone(),
            clock_error_ms: state.clock_error_ms,
            answers_ms: state.answers_ms.iter().copied().collect(),
            version: state.version.clone(),
            watch: state.watch.clone(),
            passes: state.passes.count,
            relist_differences: state.relist_differences,
            sources: state
                .shard
                .sources
                .iter()
                .map(|info| SourceView {
                    source: info.source.clone(),
                    locks: info.locks,
                    fault: info.fault.clone(),
                })
                .collect(),
            capabilities: self.info.capabilities.clone(),
            rights: state.rights.clone(),
            past_faults: state.past_faults.iter().cloned().collect(),
            clusters: state
                .clusters
                .as_ref()
                .map_or_else(Vec::new, |(clusters, read_at)| {
                    let aged = |cluster: &ClusterView| ClusterView {
                        age_ms: now.tick.since(*read_at),
                        ..cluster.clone()
                    };
                    clusters.iter().map(aged).collect()
                }),
            is_limited: false,
        }
    }
}
