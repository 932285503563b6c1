//! What is written down, told to the metrics too: twice a second, when no client waits for it.

use std::sync::Arc;

use domain::backend::BackendKind;
use domain::detail::EventKind;
use domain::names::BackendName;

use crate::inventory::Change;
use crate::lease::{Tallied, What};
use crate::telemetry::meters;
use crate::telemetry::meters::Of;

/// What the lease service of this process did.
pub(super) fn tallied(of: &Of, template: &Arc<str>, one: &Tallied) {
    let meters = meters();
    match &one.what {
        What::Granted { reclaimed, .. } => {
            meters.acquired(of, template, "acquired");
            if *reclaimed {
                meters.reclaimed(of);
            }
        }
        What::Refused => meters.acquired(of, template, "contended"),
        What::TimedOut => meters.acquired(of, template, "timeout"),
        What::Waited { ms, outcome, .. } => meters.waited(of, template, outcome, *ms),
        What::Released { held_ms } => meters.held(of, template, "released", *held_ms),
        What::Revoked { held_ms } => meters.held(of, template, "revoked", *held_ms),
        What::Expired { held_ms } => {
            meters.held(of, template, "expired", *held_ms);
            meters.expired(of);
        }
        // Counted where it happens: alerts rely on it. How long a lost lease was believed in is told once, by who adds up.
        What::Lost { .. } | What::Rejected { .. } => {}
    }
}

/// What was seen on another backend. Only the server that writes history tells it, so that none is counted twice.
pub(super) fn changed(kind: Option<BackendKind>, change: &Change) {
    let Some(kind) = kind.filter(|_| change.backend != BackendName::builtin()) else {
        return;
    };
    let (meters, of) = (
        meters(),
        Of {
            name: change.backend.as_str().into(),
            system: kind.wire(),
        },
    );
    let held = |end| {
        if let Some(ms) = change.held_ms {
            meters.held(&of, &change.template, end, ms);
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
