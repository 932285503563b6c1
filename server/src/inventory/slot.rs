//! One backend's place in the inventory: its shard, its passes, its health.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use domain::backend::{BackendKind, Capability, Fault, Right, WatchState};
use domain::known::Known;
use domain::names::{BackendName, Resource, Source};
use domain::observation::{Coverage, Tick};

use super::events::Recent;
use super::long_held::{BackendClock, Judge, LongHeld};
use super::shard::Shard;
use super::status::Passes;

/// Answer times kept for the sparkline, and past faults for the Backends page.
pub(super) const ANSWERS_KEPT: usize = 60;
pub(super) const FAULTS_KEPT: usize = 10;

/// What does not change while a backend is configured.
#[derive(Debug, Clone)]
pub struct BackendInfo {
    pub name: BackendName,
    pub kind: BackendKind,
    pub address: String,
    pub poll_ms: i64,
    pub capabilities: Vec<Capability>,
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
    /// Number of the pass that runs, or ran last.
    pub(super) pass: u32,
    pub(super) pass_began: Option<Tick>,
    pub(super) last_flush: Tick,
    pub(super) coverage: Coverage,
    pub(super) fault: Option<Fault>,
    pub(super) past_faults: VecDeque<Fault>,
    pub(super) offset_ms: Known<i64>,
    /// Our wall clock at tick 0, in milliseconds since 1970.
    pub(super) epoch_ms: i64,
    /// The offset by which all locks were last judged long-held.
    pub(super) judged_offset_ms: i64,
    pub(super) clock_error_ms: i64,
    pub(super) answers_ms: VecDeque<Option<u32>>,
    pub(super) version: Known<String>,
    pub(super) rights: Vec<Right>,
    pub(super) watch: WatchState,
    pub(super) relist_differences: u64,
    /// Locks that a re-list found gone before the watch had said so, and when: most often the hint is on its way.
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
            offset_ms: Known::unknown("it has not been asked yet"),
            epoch_ms: 0,
            judged_offset_ms: 0,
            clock_error_ms: 0,
            answers_ms: VecDeque::new(),
            version: Known::unknown("it has not been asked yet"),
            rights: Vec::new(),
            watch: WatchState::Off {
                why: "it has not been asked yet".to_owned(),
            },
            relist_differences: 0,
            suspects: Vec::new(),
        };
        Self {
            info,
            long_held,
            state: RwLock::new(state),
        }
    }

    /// By the rules of this moment.
    pub(super) fn judge(&self) -> Judge {
        Judge::new(&self.long_held, &self.info.name)
    }

    /// A panic while writing is a bug that tests catch; readers then still get what was there.
    pub(super) fn read(&self) -> RwLockReadGuard<'_, SlotState> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, SlotState> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A watch that has not told of a change this long after a re-list found it has missed it, in milliseconds.
const HINT_LATE_MS: i64 = 2_000;
/// Offsets that differ by less are the same, in milliseconds: they are measured anew with each pass.
const OFFSET_MOVED_MS: i64 = 500;
/// Suspects kept; beyond that a flood is under way and the count is off anyway.
const SUSPECTS_MAX: usize = 1_000;

impl SlotState {
    pub(super) fn clock(&self) -> BackendClock {
        BackendClock {
            epoch_ms: self.epoch_ms,
            offset_ms: self.offset_ms.known().copied().unwrap_or(0),
        }
    }

    /// The backend's clock is another one than the locks were judged by: they are judged again.
    pub(super) fn is_clock_moved(&mut self) -> bool {
        let offset_ms = self.clock().offset_ms;
        let is_moved = (offset_ms - self.judged_offset_ms).abs() > OFFSET_MOVED_MS;
        if is_moved {
            self.judged_offset_ms = offset_ms;
        }
        is_moved
    }

    /// A re-list removed these locks although the watch was live.
    pub(super) fn suspect(&mut self, gone: Vec<(Source, Resource)>, at: Tick) {
        let room = SUSPECTS_MAX.saturating_sub(self.suspects.len());
        self.suspects.extend(
            gone.into_iter()
                .take(room)
                .map(|(source, name)| (source, name, at)),
        );
    }

    /// The watch did tell of these.
    pub(super) fn heard(&mut self, names: &[(Source, Resource)]) {
        self.suspects
            .retain(|(source, name, _)| !names.iter().any(|(s, n)| s == source && n == name));
    }

    /// Whoever the watch has not told of by now, it missed.
    pub(super) fn convict(&mut self, now: Tick) {
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

    /// Notes a failure; the same one again only counts up.
    pub(super) fn failed(&mut self, fault: Fault) {
        match &mut self.fault {
            Some(same) if same.message == fault.message => same.times += 1,
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
