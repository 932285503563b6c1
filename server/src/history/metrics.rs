//! Updates metrics from history, twice a second and outside of requests.

use std::sync::Arc;

use domain::backend::BackendKind;
use domain::lock_detail::EventKind;
use domain::names::BackendName;

use inventory::LockChange;
use lease::{Activity, ActivityEntry};
use runtime::telemetry::instruments;
use runtime::telemetry::instruments::Of;

/// Activity of the local lease service.
pub(super) fn tallied(of: &Of, template: &Arc<str>, one: &ActivityEntry) {
    let meters = instruments();
    match &one.what {
        Activity::Granted { reclaimed, .. } => {
            meters.acquired(of, template, "acquired");
            if *reclaimed {
                meters.reclaimed(of);
            }
        }
        Activity::Refused => meters.acquired(of, template, "contended"),
        Activity::TimedOut => meters.acquired(of, template, "timeout"),
        Activity::Waited { ms, outcome, .. } => meters.waited(of, template, outcome, *ms),
        Activity::Released { held_ms } => meters.record_hold(of, template, "released", *held_ms),
        Activity::Revoked { held_ms } => meters.record_hold(of, template, "revoked", *held_ms),
        Activity::Expired { held_ms } => {
            meters.record_hold(of, template, "expired", *held_ms);
            meters.expired(of);
        }
        // Counted where it happens, because alerts depend on it; the time a lost lease was held is added by the
        // roll-ups.
        Activity::Lost { .. } | Activity::Rejected { .. } => {}
    }
}

/// A change on another backend. Only the leader counts it, so that none is counted twice.
pub(super) fn changed(kind: Option<BackendKind>, change: &LockChange) {
    let Some(kind) = kind.filter(|_| change.backend != BackendName::builtin()) else {
        return;
    };
    let (meters, of) = (
        instruments(),
        Of {
            name: change.backend.as_str().into(),
            system: kind.as_str(),
        },
    );
    let held = |end| {
        if let Some(ms) = change.held_ms {
            meters.record_hold(&of, &change.template, end, ms);
        }
    };
    match change.kind {
        EventKind::Acquired => meters.acquired(&of, &change.template, "acquired"),
        EventKind::Reclaimed => {
            meters.acquired(&of, &change.template, "acquired");
            meters.reclaimed(&of);
        }
        EventKind::Released => held("released"),
        EventKind::Revoked => held("revoked"),
        EventKind::Expired => {
            held("expired");
            meters.expired(&of);
        }
        EventKind::GrantedAfterWait => {
            if let Some(ms) = change.waited_ms {
                meters.waited(&of, &change.template, "acquired", ms);
            }
        }
        _ => {}
    }
}
