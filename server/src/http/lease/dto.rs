//! JSON of the lease API, names as the contract has them.

use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat, Utc};
use domain::lease::{Lease, LeaseId, Refusal, StoreTime};
use serde::{Deserialize, Serialize, Serializer};
use utoipa::ToSchema;

use crate::http::json_body;
use lease::{LeaseCaller, LeaseView, ResourceNow};

/// A moment by the store's clock, for display.
pub(in crate::http) fn moment(time: StoreTime) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(time.ms()).unwrap_or_default()
}

/// As chrono writes it, but handed over as one text: chrono hands over digit by digit, and each is searched for escapes.
fn serialize_time<S: Serializer>(time: &DateTime<Utc>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&time.to_rfc3339_opts(SecondsFormat::AutoSi, true))
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(title = "AcquireRequest", example = json!({
    "resource": "billing:close:2026-04", "ownerId": "worker-7", "ttlSeconds": 30, "waitSeconds": 0,
    "metadata": {"host": "app-3"}
}))]
pub struct AcquireDto {
    /// 1 to 512 bytes of UTF-8, no control or bidi-control characters, no white space at the ends.
    pub(super) resource: String,
    /// 1 to 256 bytes, likewise.
    pub(super) owner_id: String,
    /// 1 to 3600 (configurable).
    pub(super) ttl_seconds: i64,
    /// 0 to 60: how long to wait in the queue.
    pub(super) wait_seconds: Option<i64>,
    /// An object of strings, at most 4096 bytes as JSON.
    #[serde(default, deserialize_with = "json_body::optional_strings")]
    pub(super) metadata: Option<BTreeMap<String, String>>,
}

/// `acquired` says which of the two it is.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub enum AcquiredDto {
    Granted(GrantedDto),
    Refused(RefusedDto),
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Granted")]
pub struct GrantedDto {
    pub(super) acquired: bool,
    #[schema(value_type = String)]
    pub(super) lease_id: LeaseId,
    /// Rises with each grant of this resource; always below 2^53.
    pub(super) fencing_token: u64,
    /// For display: count `remainingMs` from before you sent the request.
    #[serde(serialize_with = "serialize_time")]
    pub(super) expires_at: DateTime<Utc>,
    pub(super) ttl_seconds: i64,
    pub(super) remaining_ms: i64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Refused")]
pub struct RefusedDto {
    acquired: bool,
    /// The live lease. Null: no lease is live, but waiters are next, or the lock delay after a forced release runs.
    held_by: Option<HeldByDto>,
    /// Other acquires in the queue of this resource, without this one.
    waiters: u32,
    /// An earlier acquire without `waitSeconds` is refused again.
    retry_after_ms: i64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "HeldBy")]
pub struct HeldByDto {
    owner_id: String,
    fencing_token: u64,
    /// Always more than 0.
    remaining_ms: i64,
}

/// Shortest `retryAfterMs`.
const RETRY_MS_MIN: i64 = 10;

impl RefusedDto {
    pub(super) fn new(refusal: Refusal, waiters: u32) -> Self {
        let held_by = refusal.owner.map(|owner| HeldByDto {
            owner_id: owner.to_string(),
            fencing_token: refusal.token.number(),
            remaining_ms: refusal.remaining_ms,
        });
        Self {
            acquired: false,
            held_by,
            waiters,
            retry_after_ms: refusal.retry_after_ms.max(RETRY_MS_MIN),
        }
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(title = "RenewRequest", example = json!({"ttlSeconds": 30}))]
pub struct RenewDto {
    /// Replaces the stored TTL; absent, null or an empty body keeps it.
    pub(super) ttl_seconds: Option<i64>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Renewed")]
pub struct RenewedDto {
    pub(super) renewed: bool,
    #[schema(value_type = String)]
    pub(super) lease_id: LeaseId,
    pub(super) fencing_token: u64,
    #[serde(serialize_with = "serialize_time")]
    pub(super) expires_at: DateTime<Utc>,
    pub(super) ttl_seconds: i64,
    pub(super) remaining_ms: i64,
}

#[derive(Serialize, ToSchema)]
#[schema(title = "Released")]
pub struct ReleasedDto {
    /// True for the call that released it.
    pub(super) released: bool,
    /// Its earlier end: `released`, `expired` or `revoked`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) state: Option<&'static str>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Lease")]
pub struct LeaseDto {
    /// Shown only to the principal that acquired it; null for all others.
    #[schema(value_type = Option<String>)]
    lease_id: Option<LeaseId>,
    resource: String,
    owner_id: String,
    fencing_token: u64,
    ttl_seconds: i64,
    remaining_ms: i64,
    expires_at: DateTime<Utc>,
    acquired_at: DateTime<Utc>,
    metadata: BTreeMap<String, String>,
    /// `held`, `released`, `expired` or `revoked`.
    state: &'static str,
}

impl LeaseDto {
    pub(super) fn new(caller: &LeaseCaller, seen: &LeaseView) -> Self {
        let lease: &Lease = &seen.lease;
        let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        Self {
            lease_id: caller.principal.owns(lease).then_some(lease.id),
            resource: seen.resource.text(),
            owner_id: lease.owner.to_string(),
            fencing_token: lease.token.number(),
            ttl_seconds: lease.ttl.seconds(),
            remaining_ms: seen.remaining_ms,
            expires_at: moment(lease.expires_at),
            acquired_at: moment(lease.acquired_at),
            metadata: lease.metadata.iter().map(own).collect(),
            state: seen.state(),
        }
    }
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "LeasePage")]
pub struct LeasePageDto {
    pub(super) locks: Vec<LeaseDto>,
    pub(super) next_cursor: Option<String>,
    /// Every shard of the lease store answered; false: leases of one or more are missing from the list.
    pub(super) complete: bool,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Resource")]
pub struct ResourceDto {
    resource: String,
    holder: Option<HolderDto>,
    /// 0 when it was never granted.
    last_fencing_token: u64,
    /// In order: the first gets it next.
    waiters: Vec<QueuedOwnerDto>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Holder")]
pub struct HolderDto {
    owner_id: String,
    fencing_token: u64,
    ttl_seconds: i64,
    remaining_ms: i64,
    acquired_at: DateTime<Utc>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "LeaseWaiter")]
pub struct QueuedOwnerDto {
    owner_id: String,
    waited_ms: i64,
}

impl ResourceDto {
    pub(super) fn new(resource: String, now: ResourceNow) -> Self {
        let waiter = |waiter: lease::WaiterNow| QueuedOwnerDto {
            owner_id: waiter.owner.to_string(),
            waited_ms: waiter.waited_ms,
        };
        Self {
            resource,
            holder: now.holder.as_ref().map(HolderDto::new),
            last_fencing_token: now.last_token.number(),
            waiters: now.waiters.into_iter().map(waiter).collect(),
        }
    }
}

impl HolderDto {
    pub(in crate::http) fn new(seen: &LeaseView) -> Self {
        Self {
            owner_id: seen.lease.owner.to_string(),
            fencing_token: seen.lease.token.number(),
            ttl_seconds: seen.lease.ttl.seconds(),
            remaining_ms: seen.remaining_ms,
            acquired_at: moment(seen.lease.acquired_at),
        }
    }
}
