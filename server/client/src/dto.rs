//! JSON of the lease API, parsed leniently: unknown fields are ignored.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AcquireBody<'a> {
    pub(crate) resource: &'a str,
    pub(crate) owner_id: &'a str,
    pub(crate) ttl_seconds: u64,
    pub(crate) wait_seconds: u64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) metadata: &'a BTreeMap<String, String>,
}

/// An operation of a batch call.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum BatchOperation<'a> {
    Acquire(BatchAcquireBody<'a>),
    Release(LeaseBody),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BatchAcquireBody<'a> {
    pub(crate) resource: &'a str,
    pub(crate) owner_id: &'a str,
    pub(crate) ttl_seconds: u64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) metadata: &'a BTreeMap<String, String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LeaseBody {
    pub(crate) lease_id: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct BatchBody<'a> {
    pub(crate) operations: &'a [BatchOperation<'a>],
}

#[derive(Debug, Deserialize)]
pub(crate) struct BatchResults {
    pub(crate) results: Vec<BatchItem>,
}

/// Result of one operation.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum BatchItem {
    Acquire(Acquired),
    Release(serde::de::IgnoredAny),
    Problem(Problem),
}

/// Both responses to acquire; `acquired` distinguishes them.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Acquired {
    pub(crate) acquired: bool,
    #[serde(flatten)]
    pub(crate) grant: Option<Grant>,
    pub(crate) held_by: Option<Holder>,
    #[serde(default)]
    pub(crate) waiters: u32,
    #[serde(default)]
    pub(crate) retry_after_ms: u64,
}

/// Lease of a grant or a renewal.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Grant {
    pub(crate) lease_id: String,
    pub(crate) fencing_token: u64,
    pub(crate) ttl_seconds: u64,
    pub(crate) remaining_ms: i64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Holder {
    pub(crate) owner_id: String,
    pub(crate) fencing_token: u64,
    pub(crate) remaining_ms: i64,
}

/// `application/problem+json`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Problem {
    /// Empty if a response is not one of our problems.
    pub(crate) code: String,
    pub(crate) status: u16,
    pub(crate) detail: String,
    pub(crate) by: Option<String>,
    pub(crate) reason: Option<String>,
    pub(crate) audit_id: Option<String>,
    pub(crate) remaining_ms: Option<i64>,
    pub(crate) request_id: String,
}

/// Data of one event of a lease.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Event {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) lease_id: String,
    pub(crate) by: Option<String>,
    pub(crate) reason: Option<String>,
    pub(crate) audit_id: Option<String>,
}
