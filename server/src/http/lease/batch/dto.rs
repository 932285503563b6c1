//! JSON of a batch: each operation and each result is an object with one member, its kind.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::http::json_body;
use crate::http::lease::dto::{AcquireDto, AcquiredDto, ReleasedDto, RenewedDto};
use crate::http::problem::Problem;

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(title = "BatchRequest", example = json!({"operations": [
    {"acquire": {"resource": "billing:close:2026-04", "ownerId": "worker-7", "ttlSeconds": 30}},
    {"renew": {"leaseId": "019db1f2-6f3a-7c55-9d0e-2b8a41c7e6f0", "ttlSeconds": 30}},
    {"release": {"leaseId": "019db1f2-6f3a-7c55-9d0e-2b8a41c7e6f1"}}
]}))]
pub(in crate::http) struct BatchDto {
    /// 1 to 512; the body has at most 256 KiB.
    #[serde(deserialize_with = "json_body::objects")]
    pub(super) operations: Vec<OperationDto>,
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "BatchOperation")]
pub(in crate::http) enum OperationDto {
    Acquire(BatchAcquireDto),
    Renew(BatchRenewDto),
    Release(BatchLeaseDto),
}

/// As the body of `POST /v1/locks/acquire`, without `waitSeconds`.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(title = "BatchAcquire")]
pub(in crate::http) struct BatchAcquireDto {
    resource: String,
    owner_id: String,
    ttl_seconds: i64,
    #[serde(default, deserialize_with = "json_body::optional_strings")]
    metadata: Option<BTreeMap<String, String>>,
}

impl From<BatchAcquireDto> for AcquireDto {
    fn from(dto: BatchAcquireDto) -> Self {
        Self {
            resource: dto.resource,
            owner_id: dto.owner_id,
            ttl_seconds: dto.ttl_seconds,
            wait_seconds: None,
            metadata: dto.metadata,
        }
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(title = "BatchRenew")]
pub(in crate::http) struct BatchRenewDto {
    pub(super) lease_id: String,
    /// Replaces the stored TTL; absent or null keeps it.
    pub(super) ttl_seconds: Option<i64>,
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(title = "BatchRelease")]
pub(in crate::http) struct BatchLeaseDto {
    pub(super) lease_id: String,
}

#[derive(Serialize, ToSchema)]
#[schema(title = "BatchResults")]
pub(in crate::http) struct BatchResultsDto {
    /// One for each operation, in its order.
    pub(super) results: Vec<BatchResultDto>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "BatchResult")]
pub(in crate::http) enum BatchResultDto {
    Acquire(AcquiredDto),
    Renew(RenewedDto),
    Release(ReleasedDto),
    /// The error that the single call would have answered with.
    Problem(Box<Problem>),
}
