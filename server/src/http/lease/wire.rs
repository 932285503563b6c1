//! JSON of the lease API, names as the contract has them. Requests are read strictly elsewhere; their types are here for
//! the description alone.

use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat, Utc};
use domain::lease::{Lease, LeaseId, Refusal, StoreTime};
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use crate::lease::{Caller, ResourceNow, Seen};

/// A moment by the store's clock, for people.
pub(in crate::http) fn moment(time: StoreTime) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(time.ms()).unwrap_or_default()
}

/// As chrono writes it, but handed over as one text: chrono hands over digit by digit, and each is searched for escapes.
fn whole<S: Serializer>(time: &DateTime<Utc>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&time.to_rfc3339_opts(SecondsFormat::AutoSi, true))
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "AcquireRequest", example = json!({
    "resource": "billing:close:2026-04", "ownerId": "worker-7", "ttlSeconds": 30, "waitSeconds": 0,
    "metadata": {"host": "app-3"}
}))]
pub struct AcquireWire {
    /// 1 to 512 bytes of UTF-8, no control or bidi-control characters, no white space at the ends.
    resource: String,
    /// 1 to 256 bytes, likewise.
    owner_id: String,
    /// 1 to 3600 (configurable).
    ttl_seconds: i64,
    /// 0 to 60: how long to stand in line.
    wait_seconds: Option<i64>,
    /// An object of strings, at most 4096 bytes as JSON.
    metadata: Option<BTreeMap<String, String>>,
}

/// `acquired` says which of the two it is.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub enum AcquiredWire {
    Granted(GrantedWire),
    Refused(RefusedWire),
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Granted")]
pub struct GrantedWire {
    pub(super) acquired: bool,
    #[schema(value_type = String)]
    pub(super) lease_id: LeaseId,
    /// Rises with each grant of this resource; always below 2^53.
    pub(super) fencing_token: u64,
    /// For people: count `remainingMs` from before you sent the request.
    #[serde(serialize_with = "whole")]
    pub(super) expires_at: DateTime<Utc>,
    pub(super) ttl_seconds: i64,
    pub(super) remaining_ms: i64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Refused")]
pub struct RefusedWire {
    acquired: bool,
    /// The live lease. Null: no lease is live, but waiters are next, or the lock delay after a forced release runs.
    held_by: Option<HeldByWire>,
    /// Other acquires in the queue of this resource, without this one.
    waiters: u32,
    /// An earlier acquire without `waitSeconds` is refused again.
    retry_after_ms: i64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "HeldBy")]
pub struct HeldByWire {
    owner_id: String,
    fencing_token: u64,
    /// Always more than 0.
    remaining_ms: i64,
}

/// Whoever was refused need not come back sooner than this, in milliseconds.
const RETRY_MS_MIN: i64 = 10;

impl RefusedWire {
    pub(super) fn new(refusal: Refusal, waiters: u32) -> Self {
        let held_by = refusal.owner.map(|owner| HeldByWire {
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

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "RenewRequest", example = json!({"ttlSeconds": 30}))]
pub struct RenewWire {
    /// Replaces the stored TTL; absent, null or an empty body keeps it.
    ttl_seconds: Option<i64>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Renewed")]
pub struct RenewedWire {
    pub(super) renewed: bool,
    #[schema(value_type = String)]
    pub(super) lease_id: LeaseId,
    pub(super) fencing_token: u64,
    #[serde(serialize_with = "whole")]
    pub(super) expires_at: DateTime<Utc>,
    pub(super) ttl_seconds: i64,
    pub(super) remaining_ms: i64,
}

#[derive(Serialize, ToSchema)]
#[schema(title = "Released")]
pub struct ReleasedWire {
    /// True for the call that released it.
    pub(super) released: bool,
    /// How it had ended before: `released`, `expired` or `revoked`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) state: Option<&'static str>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Lease")]
pub struct LeaseWire {
    /// Shown to the principal that acquired it alone; null for everyone else.
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

impl LeaseWire {
    pub(super) fn new(caller: &Caller, seen: &Seen) -> Self {
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
pub struct LeasePageWire {
    pub(super) locks: Vec<LeaseWire>,
    pub(super) next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Resource")]
pub struct ResourceWire {
    resource: String,
    holder: Option<HolderWire>,
    /// 0 when it was never granted.
    last_fencing_token: u64,
    /// In order: the first gets it next.
    waiters: Vec<WaiterWire>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Holder")]
pub struct HolderWire {
    owner_id: String,
    fencing_token: u64,
    ttl_seconds: i64,
    remaining_ms: i64,
    acquired_at: DateTime<Utc>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "LeaseWaiter")]
pub struct WaiterWire {
    owner_id: String,
    waited_ms: i64,
}

impl ResourceWire {
    pub(super) fn new(resource: String, now: ResourceNow) -> Self {
        let waiter = |waiter: crate::lease::WaiterNow| WaiterWire {
            owner_id: waiter.owner.to_string(),
            waited_ms: waiter.waited_ms,
        };
        Self {
            resource,
            holder: now.holder.as_ref().map(HolderWire::new),
            last_fencing_token: now.last_token.number(),
            waiters: now.waiters.into_iter().map(waiter).collect(),
        }
    }
}

impl HolderWire {
    pub(in crate::http) fn new(seen: &Seen) -> Self {
        Self {
            owner_id: seen.lease.owner.to_string(),
            fencing_token: seen.lease.token.number(),
            ttl_seconds: seen.lease.ttl.seconds(),
            remaining_ms: seen.remaining_ms,
            acquired_at: moment(seen.lease.acquired_at),
        }
    }
}
