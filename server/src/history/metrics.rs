//! Updates metrics from history, twice a second and outside of requests.

use std::collections::HashMap;
use std::sync::Arc;

use domain::backend::BackendKind;
use domain::lock_detail::EventKind;
use domain::names::BackendName;

use inventory::LockChange;
use lease::{Activity, ActivityEntry};
use runtime::telemetry::instruments;
use runtime::telemetry::instruments::BackendAttributes;

/// Activity of the local lease service, summed before it is recorded: an instrument looks its attributes up for each value.
#[derive(Default)]
pub(super) struct ActivitySums {
    acquires: HashMap<(Arc<str>, &'static str), u64>,
    /// Milliseconds.
    holds: HashMap<(Arc<str>, &'static str), Vec<i64>>,
    reclaimed: u64,
    expired: u64,
}

impl ActivitySums {
    pub(super) fn add(&mut self, of: &BackendAttributes, template: &Arc<str>, one: &ActivityEntry) {
        match &one.what {
            Activity::Granted { reclaimed, .. } => {
                self.acquired(template, "acquired");
                self.reclaimed += u64::from(*reclaimed);
            }
            Activity::Refused => self.acquired(template, "contended"),
            Activity::TimedOut => self.acquired(template, "timeout"),
            Activity::Waited { ms, outcome, .. } => instruments().waited(of, template, outcome, *ms),
            Activity::Released { held_ms } => self.held(template, "released", *held_ms),
            Activity::Revoked { held_ms } => self.held(template, "revoked", *held_ms),
            Activity::Expired { held_ms } => {
                self.held(template, "expired", *held_ms);
                self.expired += 1;
            }
            // Counted where it happens, because alerts depend on it; the time a lost lease was held is added by the
            // roll-ups.
            Activity::Lost { .. } | Activity::Rejected { .. } => {}
        }
    }

    fn acquired(&mut self, template: &Arc<str>, outcome: &'static str) {
        *self.acquires.entry((template.clone(), outcome)).or_default() += 1;
    }

    fn held(&mut self, template: &Arc<str>, end: &'static str, ms: i64) {
        self.holds.entry((template.clone(), end)).or_default().push(ms);
    }

    pub(super) fn record(self, of: &BackendAttributes) {
        let meters = instruments();
        for ((template, outcome), times) in self.acquires {
            meters.acquired(of, &template, outcome, times);
        }
        for ((template, end), holds) in self.holds {
            meters.record_holds(of, &template, end, &holds);
        }
        meters.reclaimed(of, self.reclaimed);
        meters.expired(of, self.expired);
    }
}

/// A change on another backend. Only the leader counts it, so that none is counted twice.
pub(super) fn changed(kind: Option<BackendKind>, change: &LockChange) {
    let Some(kind) = kind.filter(|_| change.backend != BackendName::builtin()) else {
        return;
    };
    let (meters, of) = (
        instruments(),
        BackendAttributes {
            name: change.backend.as_str().into(),
            system: kind.as_str(),
        },
    );
    let held = |end| {
        if let Some(ms) = change.held_ms {
            meters.record_holds(&of, &change.template, end, &[ms]);
        }
    };
    match change.kind {
        EventKind::Acquired | EventKind::ShareAcquired => {
            meters.acquired(&of, &change.template, "acquired", 1)
        }
        EventKind::Reclaimed => {
            meters.acquired(&of, &change.template, "acquired", 1);
            meters.reclaimed(&of, 1);
        }
        EventKind::Released | EventKind::ShareReleased => held("released"),
        EventKind::Revoked => held("revoked"),
        EventKind::Expired => {
            held("expired");
            meters.expired(&of, 1);
        }
        EventKind::GrantedAfterWait => {
            if let Some(ms) = change.waited_ms {
                meters.waited(&of, &change.template, "acquired", ms);
            }
        }
        _ => {}
    }
}
