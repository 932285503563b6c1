//! The scene with a deadlock: three owners across the lease service, Postgres and etcd, four more behind them, and two
//! waits that are no part of it.

use std::sync::Arc;

use domain::backend::BackendKind;
use domain::generation::Generation;
use domain::names::{BackendName, OwnerId};
use domain::observation::{InLine, WaitIdentity};
use domain::waits::WaitParty;
use domain::waits::identity::{IdentityMatch, IdentityRule, IdentityTemplate};

use crate::backends::{KINDS, Kind};
use crate::locks::{CannedLock, Life, M, S, renewed};

/// A waiter, and for how long when the gallery opened.
#[derive(Debug, Clone)]
pub(crate) struct CannedWait {
    pub(crate) owner: &'static str,
    pub(crate) waited: i64,
}

type Row = (
    &'static str,
    &'static str,
    &'static str,
    i64,
    Life,
    &'static [(&'static str, i64)],
);

#[rustfmt::skip]
const ROWS: [Row; 5] = [
    ("etcd-coord", "/jobs/billing-close/tenant_123", "worker-7", 52 * M + 37 * S, renewed(30 * S, 10 * S),
        &[("worker-12", 33 * M + 10 * S), ("worker-3", 28 * M), ("worker-9", 21 * M + 35 * S)]),
    ("pg-orders", "advisory:orders:4021", "worker-9", 19 * M + 2 * S, Life::Session,
        &[("exporter-1", 18 * M + 30 * S), ("api-14", 17 * M + 49 * S), ("exporter-2", 15 * M + 31 * S)]),
    ("builtin", "tenant_123:nightly-export", "exporter-1", 373 * M, renewed(60 * S, 20 * S), &[("worker-7", 16 * M + 58 * S)]),
    ("pg-orders", "advisory:orders:72707369", "deploy-2", 26 * M + 2 * S, Life::Session, &[("migrate-1", 25 * M + 24 * S)]),
    ("builtin", "tenant_123:stock-sync:eu", "worker-2", 11 * S, renewed(30 * S, 9 * S), &[("worker-18", 9 * S)]),
];

pub(crate) fn locks() -> Vec<CannedLock> {
    let lock = |(backend, resource, owner, held, life, queue): Row| CannedLock {
        source: matches!(life, Life::Session).then_some("advisory"),
        queue: queue
            .iter()
            .map(|&(owner, waited)| CannedWait { owner, waited })
            .collect(),
        ..(backend, resource, owner, held, life, 0).into()
    };
    ROWS.into_iter().map(lock).collect()
}

/// Recognizes a worker by the same name on every backend that identifies waiters.
pub(crate) fn identity_rule() -> Option<IdentityRule> {
    let template = IdentityTemplate::parse("{worker}").ok()?;
    let matched = |kind: &Kind| {
        Some(IdentityMatch {
            backend: BackendName::parse(kind.name).ok()?,
            field: *kind.kind.identity_fields().first()?,
            template: template.clone(),
        })
    };
    Some(IdentityRule {
        name: "workers".to_owned(),
        matches: KINDS.iter().filter_map(matched).collect(),
    })
}

impl CannedWait {
    /// As a backend of this kind reports it behind `holder`. etcd reports no beginning of a wait.
    pub(crate) fn observe(&self, kind: &Kind, holder: &str, elapsed_ms: i64) -> InLine {
        let party = |owner: &str| {
            let fields = kind.kind.identity_fields().first();
            let fields = fields.map(|field| (*field, Some(owner)));
            Arc::new(WaitParty::new(owner, OwnerId::new(owner), fields))
        };
        InLine {
            generation: Generation::new(format!("wait:{}", self.owner)),
            waited_ms: (kind.kind != BackendKind::Etcd).then_some(self.waited + elapsed_ms),
            identity: Some(Box::new(WaitIdentity {
                party: party(self.owner),
                wants: None,
                blocked_by: vec![party(holder)],
                more_blockers: 0,
            })),
        }
    }
}
