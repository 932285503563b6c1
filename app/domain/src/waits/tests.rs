//! Tests of the graph as a whole: joins, deadlocks, doubts, and what a scoped reader sees.

mod joins;
mod scopes;

use std::sync::Arc;

use super::graph::WaitGraph;
use super::identity::{IdentityMatch, IdentityRule, IdentityTemplate};
use super::observed::{BackendWaits, LockWaits, WaitingParty};
use super::view::GraphView;
use super::{IdentityField, WaitParty};
use crate::access::Visible;
use crate::backend::{BackendKind, BackendStatus};
use crate::names::{BackendName, LockId, OwnerId, Resource, Source};
use crate::tick::Tick;

pub(super) const NOW: Tick = Tick(100_000);

pub(super) fn name(text: &str) -> BackendName {
    BackendName::parse(text).unwrap()
}

pub(super) fn party(id: &str) -> Arc<WaitParty> {
    let owner = OwnerId::new(id);
    let fields = [
        (IdentityField::Owner, Some(id)),
        (IdentityField::ApplicationName, Some(id)),
    ];
    Arc::new(WaitParty::new(format!("id-{id}"), owner, fields))
}

/// `waiter` waits for `lock`, which `holder` holds, since tick 10 000; read at tick 99 000.
pub(super) fn wait(backend: &str, lock: &str, waiter: &str, holder: &str) -> LockWaits {
    LockWaits {
        lock: LockId {
            backend: name(backend),
            source: Source::fixed("lock"),
            resource: Resource::from(lock),
        },
        read_at: Tick(99_000),
        is_stale: false,
        held_ms: Some(95_000),
        waiters: vec![WaitingParty {
            party: party(waiter),
            since: Tick(10_000),
            is_since_reported: true,
            wants: None,
            blocked_by: vec![party(holder)],
        }],
        more: 0,
    }
}

pub(super) fn backend(text: &str, kind: BackendKind, locks: Vec<LockWaits>) -> BackendWaits {
    BackendWaits {
        backend: name(text),
        kind,
        status: BackendStatus::Live,
        age_ms: Some(1_000),
        reports_waiters: true,
        locks,
        unidentified_locks: 0,
    }
}

/// Joins by application name in `db`, and by owner in `coord` and `zk`.
pub(super) fn rules() -> Vec<IdentityRule> {
    let part = |backend: &str, field, template: &str| IdentityMatch {
        backend: name(backend),
        field,
        template: IdentityTemplate::parse(template).unwrap(),
    };
    vec![IdentityRule {
        name: "workers".to_owned(),
        matches: vec![
            part("db", IdentityField::ApplicationName, "app-{worker}"),
            part("coord", IdentityField::Owner, "{worker}"),
            part("zk", IdentityField::Owner, "host/{worker}"),
        ],
    }]
}

/// Three systems: w1 waits in db for w2, w2 in coord for w3, w3 in zk for w1.
pub(super) fn three_systems() -> Vec<BackendWaits> {
    vec![
        backend(
            "db",
            BackendKind::Postgres,
            vec![wait("db", "a:close", "app-w1", "app-w2")],
        ),
        backend(
            "coord",
            BackendKind::Etcd,
            vec![wait("coord", "b:index", "w2", "w3")],
        ),
        backend(
            "zk",
            BackendKind::Zookeeper,
            vec![wait("zk", "c:export", "host/w3", "host/w1")],
        ),
    ]
}

pub(super) fn graph(backends: &[BackendWaits]) -> WaitGraph {
    WaitGraph::new(&rules(), backends)
}

#[test]
fn waits_of_backends_never_read_are_unknown() {
    // Before the first scans; then one answered, of a kind that reports no waiters; then one that does.
    let mut backends = three_systems();
    for backend in &mut backends {
        (backend.status, backend.age_ms) = (BackendStatus::Starting, None);
        backend.locks.clear();
    }
    let page = |backends: &[BackendWaits]| GraphView::new(&graph(backends), &Visible::default(), NOW).page();
    let shown = page(&backends);
    assert!(shown.is_unread());
    assert_eq!(shown.title, "Deadlocks: unknown");
    assert!(
        shown.lead.contains("unknown whether owners wait"),
        "{}",
        shown.lead
    );
    (backends[0].age_ms, backends[0].reports_waiters) = (Some(1_000), false);
    assert!(page(&backends).is_unread());
    backends[1].age_ms = Some(1_000);
    let shown = page(&backends);
    assert!(!shown.is_unread());
    assert_eq!(shown.title, "No deadlock in what was read");
}
