//! State of one backend in the inventory: its shard, its scans, its health.

use std::collections::VecDeque;
use std::sync::Arc;

use domain::backend::{
    AccountPermission, BackendFailure, BackendKind, BackendTraits, Capability, ClusterView, WatchState,
};
use domain::names::{BackendName, Resource, Source};
use domain::observation::Coverage;
use domain::reported::Reported;
use domain::tick::Tick;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::events::Recent;
use super::long_held::{BackendClock, Judge, LongHeld};
use super::shard::Shard;
use super::status::Passes;

/// Response times stored for the sparkline, and past failures for the Backends page.
pub(super) const ANSWERS_KEPT: usize = 60;
pub(super) const FAULTS_KEPT: usize = 10;

/// Constant while a backend is configured.
#[derive(Debug, Clone)]
pub struct BackendInfo {
    pub name: BackendName,
    pub kind: BackendKind,
    pub address: String,
    pub poll_interval_ms: i64,
    pub capabilities: Vec<Capability>,
    pub traits: BackendTraits,
}

#[derive(Debug)]
pub(super) struct Slot {
    pub(super) info: BackendInfo,
    long_held: Arc<LongHeld>,
    state: RwLock<SlotState>,
}

#[derive(Debug)]
pub(super) struct SlotState {
    pub(super) shard: Shard,
    pub(super) recent: Recent,
    pub(super) passes: Passes,
    /// Number of the current or last scan.
    pub(super) pass: u32,
    pub(super) pass_began: Option<Tick>,
    pub(super) last_flush: Tick,
    pub(super) coverage: Coverage,
    pub(super) fault: Option<BackendFailure>,
    pub(super) past_faults: VecDeque<BackendFailure>,
    pub(super) offset_ms: Reported<i64>,
    /// Our wall clock at tick 0, in milliseconds since 1970.
    pub(super) epoch_ms: i64,
    /// The clock offset with which long-held was last evaluated for all locks.
    pub(super) judged_offset_ms: i64,
    pub(super) clock_error_ms: i64,
    pub(super) answers_ms: VecDeque<Option<u32>>,
    pub(super) version: Reported<String>,
    pub(super) rights: Vec<AccountPermission>,
    pub(super) watch: WatchState,
    /// As last read, and when.
    pub(super) clusters: Option<(Vec<ClusterView>, Tick)>,
    pub(super) relist_differences: u64,
    /// Locks that a resync found gone before a notification arrived, with the time: usually the
    /// notification is only late.
    pub(super) suspects: Vec<(Source, Resource, Tick)>,
}

impl Slot {
    pub(super) fn new(info: BackendInfo, long_held: Arc<LongHeld>) -> Self {
        let state = SlotState {
            shard: Shard::default(),
            recent: Recent::default(),
            passes: Passes::default(),
            pass: 0,
            pass_began: None,
            last_flush: Tick::default(),
            coverage: Coverage::Complete,
            fault: None,
            past_faults: VecDeque::new(),
            offset_ms: Reported::unknown("the backend has not been read yet"),
            epoch_ms: 0,
            judged_offset_ms: 0,
            clock_error_ms: 0,
            answers_ms: VecDeque::new(),
            version: Reported::unknown("the backend has not been read yet"),
            rights: Vec::new(),
            watch: WatchState::Off {
                why: "the backend has not been read yet".to_owned(),
            },
            clusters: None,
            relist_differences: 0,
            suspects: Vec::new(),
        };
        Self {
            info,
            long_held,
            state: RwLock::new(state),
        }
    }

    /// With the current rules.
    pub(super) fn diagnosis_settings(&self) -> Judge {
        Judge::new(&self.long_held, &self.info.name)
    }

    /// A panic during a write is a bug that tests catch; readers then see the state as written
    /// so far.
    pub(super) fn read(&self) -> RwLockReadGuard<'_, SlotState> {
        self.state.read()
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, SlotState> {
        self.state.write()
    }
}

/// A notification later than this after a resync found the change counts as missed, in
/// milliseconds.
const HINT_LATE_MS: i64 = 2_000;
/// Smaller changes of the offset are ignored, in milliseconds: each scan measures it again.
const OFFSET_MOVED_MS: i64 = 500;
/// Suspects stored; beyond that the count is inexact anyway.
const SUSPECTS_MAX: usize = 1_000;

impl SlotState {
    pub(super) fn clock(&self) -> BackendClock {
        BackendClock {
            epoch_ms: self.epoch_ms,
            offset_ms: self.offset_ms.known().copied().unwrap_or(0),
        }
    }

    /// The backend's clock offset changed: long-held must be evaluated again.
    pub(super) fn is_clock_moved(&mut self) -> bool {
        let offset_ms = self.clock().offset_ms;
        let is_moved = (offset_ms - self.judged_offset_ms).abs() > OFFSET_MOVED_MS;
        if is_moved {
            self.judged_offset_ms = offset_ms;
        }
        is_moved
    }

    /// A resync removed these locks although the watch was live.
    pub(super) fn mark_missed(&mut self, missing: Vec<(Source, Resource)>, at: Tick) {
        let room = SUSPECTS_MAX.saturating_sub(self.suspects.len());
        self.suspects.extend(
            missing
                .into_iter()
                .take(room)
                .map(|(source, name)| (source, name, at)),
        );
    }

    /// Notifications for these arrived.
    pub(super) fn confirm_notified(&mut self, names: &[(Source, Resource)]) {
        self.suspects
            .retain(|(source, name, _)| !names.iter().any(|(s, n)| s == source && n == name));
    }

    /// Counts locks without a notification in time as missed.
    pub(super) fn confirm_missed(&mut self, now: Tick) {
        let before = self.suspects.len();
        self.suspects.retain(|(_, _, at)| now.since(*at) < HINT_LATE_MS);
        self.relist_differences += (before - self.suspects.len()) as u64;
    }

    pub(super) fn answered(&mut self, ms: Option<u32>) {
        if self.answers_ms.len() == ANSWERS_KEPT {
            self.answers_ms.pop_front();
        }
        self.answers_ms.push_back(ms);
    }

    /// Records a failure; a repeated one only increases its count.
    pub(super) fn failed(&mut self, fault: BackendFailure) {
        match &mut self.fault {
            Some(last) if last.message == fault.message => last.times += 1,
            _ => {
                self.recovered();
                self.fault = Some(fault);
            }
        }
    }

    pub(super) fn recovered(&mut self) {
        if let Some(fault) = self.fault.take() {
            self.past_faults.push_front(fault);
            self.past_faults.truncate(FAULTS_KEPT);
        }
    }
}
