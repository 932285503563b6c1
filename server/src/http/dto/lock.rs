//! The lock object of the API.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use domain::lock::Lock;
use serde::Serialize;
use utoipa::ToSchema;

use super::Missing;

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Lock")]
pub struct LockDto {
    backend: String,
    kind: &'static str,
    /// Where in the backend it was found: `key`, `hash`, `mutex`, `advisory`, `relation`, `table:…`.
    source: String,
    /// The name; bytes that are not UTF-8 as `\xnn`.
    resource: String,
    /// The name's bytes in base64, when they are not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_bytes: Option<String>,
    owner_id: Option<String>,
    owner_count: u32,
    lease_id: Option<String>,
    generation: Option<String>,
    /// A string: foreign tokens exceed 2^53.
    fencing_token: Option<String>,
    acquired_at: Option<DateTime<Utc>>,
    expires_at: Option<DateTime<Utc>>,
    held_ms: Option<i64>,
    /// Time since this acquisition was first observed; always known.
    held_at_least_ms: i64,
    ttl_ms: Option<i64>,
    /// Negative once expired.
    remaining_ms: Option<i64>,
    waiter_count: Option<u32>,
    /// The worst of the states that apply.
    state: &'static str,
    reasons: Vec<ReasonDto>,
    safety: SafetyDto,
    renewal: Option<RenewalDto>,
    observed_at: DateTime<Utc>,
    age_ms: i64,
    /// Null fields whose value exists and is unknown, with the reason.
    unknown: BTreeMap<String, String>,
    /// Null fields that do not apply, with the reason.
    absent: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ReasonDto {
    state: &'static str,
    why: String,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SafetyDto {
    /// `correctness` or `efficiency`.
    class: &'static str,
    why: String,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RenewalDto {
    last_at: DateTime<Utc>,
    interval_ms: i64,
    count: u32,
}

impl From<Lock> for LockDto {
    fn from(lock: Lock) -> Self {
        let mut missing = Missing::default();
        let resource = &lock.id.resource;
        let renewal = lock.renewal.map(|renewal| RenewalDto {
            last_at: renewal.last_at,
            interval_ms: renewal.interval_ms,
            count: renewal.count,
        });
        let reason = |reason: domain::state::StateReason| ReasonDto {
            state: reason.state.as_str(),
            why: reason.why,
        };
        Self {
            backend: lock.id.backend.to_string(),
            kind: lock.kind.as_str(),
            source: lock.id.source.to_string(),
            resource: resource.text(),
            resource_bytes: (!resource.is_utf8()).then(|| STANDARD.encode(resource.as_bytes())),
            owner_id: missing.take("ownerId", lock.owner_id.map(|owner| owner.to_string())),
            owner_count: lock.owner_count,
            lease_id: missing.take("leaseId", lock.lease_id),
            generation: missing.take("generation", lock.generation.map(|it| it.to_string())),
            fencing_token: missing.take("fencingToken", lock.fencing_token.map(|token| token.to_string())),
            acquired_at: missing.take("acquiredAt", lock.acquired_at),
            expires_at: missing.take("expiresAt", lock.expires_at),
            held_ms: missing.take("heldMs", lock.held_ms),
            held_at_least_ms: lock.held_at_least_ms,
            ttl_ms: missing.take("ttlMs", lock.ttl_ms),
            remaining_ms: missing.take("remainingMs", lock.remaining_ms),
            waiter_count: missing.take("waiterCount", lock.waiter_count),
            state: lock.state.as_str(),
            reasons: lock.reasons.into_iter().map(reason).collect(),
            safety: SafetyDto {
                class: lock.safety.class.as_str(),
                why: lock.safety.why.into_owned(),
            },
            renewal: missing.take("renewal", renewal),
            observed_at: lock.observed_at,
            age_ms: lock.age_ms,
            unknown: missing.unknown,
            absent: missing.absent,
        }
    }
}
