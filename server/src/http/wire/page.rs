//! One page of the list.

use chrono::{DateTime, Utc};
use domain::backend::BackendView;
use domain::query::InventoryPage;
use serde::Serialize;
use utoipa::ToSchema;

use super::backend::{CoverageWire, FaultWire};
use super::lock::LockWire;

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "InventoryPage")]
pub struct PageWire {
    locks: Vec<LockWire>,
    next_cursor: Option<String>,
    /// Locks that match, over all pages.
    total: u64,
    /// Every backend that was asked is live and was seen whole.
    complete: bool,
    backends: Vec<BackendSummaryWire>,
}

/// How much to believe of one backend's part of the list.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackendSummaryWire {
    name: String,
    kind: &'static str,
    /// `starting`, `live`, `partial`, `stale` or `down`.
    status: &'static str,
    observed_at: Option<DateTime<Utc>>,
    age_ms: Option<i64>,
    coverage: CoverageWire,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<FaultWire>,
}

impl From<BackendView> for BackendSummaryWire {
    fn from(view: BackendView) -> Self {
        Self {
            name: view.name.to_string(),
            kind: view.kind.wire(),
            status: view.status.wire(),
            observed_at: view.observed_at,
            age_ms: view.age_ms,
            coverage: CoverageWire::of(view.coverage, view.is_limited),
            error: view.fault.map(FaultWire::from),
        }
    }
}

impl From<InventoryPage> for PageWire {
    fn from(page: InventoryPage) -> Self {
        Self {
            locks: page.locks.into_iter().map(LockWire::from).collect(),
            next_cursor: page.next_cursor,
            total: page.total,
            complete: page.complete,
            backends: page.backends.into_iter().map(BackendSummaryWire::from).collect(),
        }
    }
}
