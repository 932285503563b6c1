//! The backend object of `/v1/backends`.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use domain::backend::{
    AccountPermission, BackendFailure, BackendView, Capability, OUTSIDE_SCOPE, SourceView, WatchState,
};
use domain::observation::Coverage;
use serde::Serialize;
use utoipa::ToSchema;

use super::Missing;
use super::cluster::ClusterDto;

/// Coverage of the last scan of a backend.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoverageDto {
    complete: bool,
    /// Whole per cent, if known.
    percent: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seen: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

impl CoverageDto {
    /// `is_limited`: the reader may see only a part of the backend; how much of the whole was read is left out.
    pub(super) fn from_coverage(coverage: Coverage, is_limited: bool) -> Self {
        let (complete, percent) = (coverage.is_complete(), coverage.percent());
        match coverage {
            Coverage::Complete => Self {
                complete,
                percent,
                seen: None,
                why: None,
            },
            Coverage::Partial { seen, why, .. } => Self {
                complete,
                percent,
                seen: (!is_limited).then_some(seen),
                why: Some(why.into_owned()),
            },
        }
    }
}

/// The error and its remedy.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct FaultDto {
    message: String,
    remedy: String,
    at: DateTime<Utc>,
    times: u32,
}

impl From<BackendFailure> for FaultDto {
    fn from(fault: BackendFailure) -> Self {
        Self {
            message: fault.message,
            remedy: fault.remedy,
            at: fault.at,
            times: fault.times,
        }
    }
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Backend")]
pub struct BackendDto {
    name: String,
    kind: &'static str,
    /// Null in a backend of which the caller may see a part, like everything that describes the whole of it.
    address: Option<String>,
    status: &'static str,
    observed_at: Option<DateTime<Utc>>,
    age_ms: Option<i64>,
    poll_interval_ms: i64,
    coverage: CoverageDto,
    error: Option<FaultDto>,
    locks: u64,
    waiters: Option<u64>,
    needing_attention: u64,
    /// Its clock minus ours, in milliseconds.
    clock_offset_ms: Option<i64>,
    clock_error_ms: i64,
    version: Option<String>,
    /// `live`, `reconnecting` or `off`, and why.
    watch: &'static str,
    watch_why: Option<String>,
    relist_differences: Option<u64>,
    sources: Option<Vec<SourceDto>>,
    capabilities: Vec<CapabilityDto>,
    rights: Option<Vec<RightDto>>,
    past_errors: Option<Vec<FaultDto>>,
    /// Members of a replicated backend, of each shard for a sharded lease store; empty for the others.
    clusters: Option<Vec<ClusterDto>>,
    unknown: BTreeMap<String, String>,
    absent: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SourceDto {
    source: String,
    locks: u64,
    error: Option<String>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct CapabilityDto {
    name: String,
    can: bool,
    how: String,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct RightDto {
    what: String,
    /// Null: unknown.
    allowed: Option<bool>,
    wanted: bool,
    remedy: String,
}

impl From<SourceView> for SourceDto {
    fn from(view: SourceView) -> Self {
        Self {
            source: view.source.to_string(),
            locks: view.locks,
            error: view.fault,
        }
    }
}

impl From<Capability> for CapabilityDto {
    fn from(can: Capability) -> Self {
        Self {
            name: can.name,
            can: can.can,
            how: can.how,
        }
    }
}

impl From<AccountPermission> for RightDto {
    fn from(right: AccountPermission) -> Self {
        let allowed = right.allowed.known().copied();
        Self {
            what: right.what,
            allowed,
            wanted: right.wanted,
            remedy: right.remedy,
        }
    }
}

/// Fields that a reader of a part of a backend gets as null, with the reason in `unknown`.
const OF_THE_WHOLE: [&str; 7] = [
    "address",
    "error",
    "relistDifferences",
    "sources",
    "rights",
    "pastErrors",
    "clusters",
];

impl From<BackendView> for BackendDto {
    fn from(view: BackendView) -> Self {
        let mut missing = Missing::default();
        let is_whole = !view.is_limited;
        if view.is_limited {
            let withheld = OF_THE_WHOLE.map(|field| (field.to_owned(), OUTSIDE_SCOPE.to_owned()));
            missing.unknown.extend(withheld);
        }
        let (watch, watch_why) = match view.watch {
            WatchState::Live => ("live", None),
            WatchState::Reconnecting { why, .. } => ("reconnecting", Some(why)),
            WatchState::Off { why } => ("off", Some(why)),
        };
        Self {
            name: view.name.to_string(),
            kind: view.kind.as_str(),
            address: is_whole.then_some(view.address),
            status: view.status.as_str(),
            observed_at: view.observed_at,
            age_ms: view.age_ms,
            poll_interval_ms: view.poll_interval_ms,
            coverage: CoverageDto::from_coverage(view.coverage, view.is_limited),
            error: view.fault.map(FaultDto::from),
            locks: view.locks,
            waiters: missing.take("waiters", view.waiters),
            needing_attention: view.needing_attention,
            clock_offset_ms: missing.take("clockOffsetMs", view.clock_offset_ms),
            clock_error_ms: view.clock_error_ms,
            version: missing.take("version", view.version),
            watch,
            watch_why,
            relist_differences: is_whole.then_some(view.relist_differences),
            sources: is_whole.then(|| view.sources.into_iter().map(SourceDto::from).collect()),
            capabilities: view.capabilities.into_iter().map(CapabilityDto::from).collect(),
            rights: is_whole.then(|| view.rights.into_iter().map(RightDto::from).collect()),
            past_errors: is_whole.then(|| view.past_faults.into_iter().map(FaultDto::from).collect()),
            clusters: is_whole.then(|| view.clusters.into_iter().map(ClusterDto::from).collect()),
            unknown: missing.unknown,
            absent: missing.absent,
        }
    }
}
