//! One page of the list.

use chrono::{DateTime, Utc};
use domain::backend::BackendView;
use domain::query::InventoryPage;
use serde::Serialize;
use utoipa::ToSchema;

use super::backend::{CoverageDto, FaultDto};
use super::lock::LockDto;

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "InventoryPage")]
pub struct PageDto {
    locks: Vec<LockDto>,
    next_cursor: Option<String>,
    /// Locks that match, over all pages.
    total: u64,
    /// Every backend of this list is live and was read completely.
    complete: bool,
    backends: Vec<BackendSummaryDto>,
}

/// Coverage and age of one backend's part of the list.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackendSummaryDto {
    name: String,
    kind: &'static str,
    /// `starting`, `live`, `partial`, `stale` or `down`.
    status: &'static str,
    observed_at: Option<DateTime<Utc>>,
    age_ms: Option<i64>,
    coverage: CoverageDto,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<FaultDto>,
}

impl From<BackendView> for BackendSummaryDto {
    fn from(view: BackendView) -> Self {
        Self {
            name: view.name.to_string(),
            kind: view.kind.as_str(),
            status: view.status.as_str(),
            observed_at: view.observed_at,
            age_ms: view.age_ms,
            coverage: CoverageDto::from_coverage(view.coverage, view.is_limited),
            error: view.fault.map(FaultDto::from),
        }
    }
}

impl From<InventoryPage> for PageDto {
    fn from(page: InventoryPage) -> Self {
        Self {
            locks: page.locks.into_iter().map(LockDto::from).collect(),
            next_cursor: page.next_cursor,
            total: page.total,
            complete: page.complete,
            backends: page.backends.into_iter().map(BackendSummaryDto::from).collect(),
        }
    }
}
