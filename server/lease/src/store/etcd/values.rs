//! Values of the keys, as JSON, so that `etcdctl get` shows them. Conversions back are checked: an impossible value is
//! [`StoreError::Corrupt`].

use std::collections::VecDeque;

use domain::lease::{
    EndCause, Lease, LeaseEnd, LeaseId, Metadata, ResourceState, Revocation, StoreTime, Ttl,
};
use domain::names::{OwnerId, Resource};
use domain::token::FencingToken;
use serde::{Deserialize, Serialize};

use crate::batch::HeldLease;
use crate::operation::Rejection;
use crate::shards::ShardIdentity;
use crate::store::StoreError;
use crate::store::rows::to_json;

/// Value of the keys `free/…` and `held/…`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct StateValue {
    token: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    locked_until: Option<i64>,
    touched_at: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lease: Option<LeaseValue>,
    /// Random id of the transaction that wrote it: tells a writer without an answer whether it was committed.
    pub(super) write: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct LeaseValue {
    id: LeaseId,
    owner: String,
    issuer: String,
    token: u64,
    ttl_seconds: i64,
    #[serde(default, skip_serializing_if = "Metadata::is_empty")]
    metadata: Metadata,
    acquired_at: i64,
    expires_at: i64,
    renewed_at: i64,
    renewals: i64,
    /// Margin of the server that granted it, in milliseconds: all servers wait for it.
    margin_ms: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end: Option<EndValue>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct EndValue {
    at: i64,
    how: EndHow,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    audit_id: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum EndHow {
    Released,
    Expired,
    Revoked,
}

/// Value of the keys `leases/…`: the resource of the lease, and the lease itself once it has ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct LeaseRecord {
    pub(super) resource: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ended: Option<LeaseValue>,
}

/// Value of the keys `queue/…`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct WaiterValue {
    pub(super) owner: String,
    pub(super) replica: String,
    pub(super) since: i64,
    /// Order of the waiters that one transaction added.
    pub(super) place: u32,
}

/// Value of the keys `keys/…`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct IdempotencyValue {
    pub(super) fingerprint: String,
    pub(super) lease: Option<LeaseId>,
    pub(super) is_claimed: bool,
    pub(super) created_at: i64,
}

/// Value of the keys `rejections/…`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RejectionValue {
    pub(super) resource: String,
    pub(super) token: u64,
    pub(super) highest: Option<u64>,
    pub(super) owner: Option<String>,
    pub(super) source: String,
    pub(super) reason: String,
    pub(super) at: i64,
    pub(super) recorded_at: i64,
    /// Order of the rejections that one transaction added.
    pub(super) place: u32,
}

/// Value of the key `meta/clock`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ClockValue {
    /// The store's time.
    pub(super) ms: i64,
    /// How far it was behind the wall clock of the server that wrote it.
    #[serde(default)]
    pub(super) behind_ms: i64,
    /// Index and term of the cluster's log when this was written: a restored cluster begins with smaller ones.
    pub(super) raft_index: u64,
    pub(super) raft_term: u64,
}

/// Value of the key `meta/identity`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct IdentityValue {
    /// Layout of the keys.
    pub(super) layout: u32,
    pub(super) store_id: String,
    /// Id of the console that the leases belong to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) installation: Option<String>,
    /// Identity of a store that is a shard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) shard: Option<ShardIdentity>,
    pub(super) epoch: i64,
    /// Tokens are above this number.
    pub(super) token_floor: u64,
    /// Id of the etcd cluster, in hexadecimal digits.
    pub(super) cluster_id: String,
}

pub(super) fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, StoreError> {
    to_json(value).map(String::into_bytes)
}

pub(super) fn decode<'a, T: Deserialize<'a>>(key: &[u8], value: &'a [u8]) -> Result<T, StoreError> {
    serde_json::from_slice(value)
        .map_err(|error| StoreError::Corrupt(format!("{}: {error}", domain::escape::text(key))))
}

impl ClockValue {
    /// The last argument: index and term of the cluster's log.
    pub(super) fn new(ms: i64, wall_ms: i64, (raft_index, raft_term): (u64, u64)) -> Self {
        Self {
            ms,
            behind_ms: wall_ms.saturating_sub(ms).max(0),
            raft_index,
            raft_term,
        }
    }

    /// The store's time, if no wall clock has been set since this was written.
    pub(super) fn continued_ms(&self, wall_ms: i64) -> i64 {
        self.ms.max(wall_ms.saturating_sub(self.behind_ms))
    }
}

impl StateValue {
    pub(super) fn new(state: &ResourceState, write: String) -> Self {
        Self {
            token: state.last_token.number(),
            locked_until: state.locked_until.map(StoreTime::ms),
            touched_at: state.touched_at.ms(),
            lease: state.lease.as_ref().map(LeaseValue::new),
            write,
        }
    }

    pub(super) fn token(&self) -> u64 {
        self.token
    }

    /// Store time of the write, in milliseconds.
    pub(super) fn touched_at(&self) -> i64 {
        self.touched_at
    }

    pub(super) fn into_state(self) -> Result<ResourceState, StoreError> {
        Ok(ResourceState {
            last_token: FencingToken::new(self.token),
            lease: self.lease.map(LeaseValue::into_lease).transpose()?,
            locked_until: self.locked_until.map(StoreTime::from_ms),
            touched_at: StoreTime::from_ms(self.touched_at),
        })
    }
}

impl LeaseValue {
    pub(super) fn new(lease: &Lease) -> Self {
        Self {
            id: lease.id,
            owner: lease.owner.to_string(),
            issuer: lease.issuer.to_string(),
            token: lease.token.number(),
            ttl_seconds: lease.ttl.seconds(),
            metadata: lease.metadata.clone(),
            acquired_at: lease.acquired_at.ms(),
            expires_at: lease.expires_at.ms(),
            renewed_at: lease.renewed_at.ms(),
            renewals: lease.renewals,
            margin_ms: lease.margin_ms,
            end: lease.ending.as_ref().map(EndValue::new),
        }
    }

    pub(super) fn into_lease(self) -> Result<Lease, StoreError> {
        Ok(Lease {
            id: self.id,
            owner: OwnerId::new(&self.owner),
            issuer: self.issuer.into(),
            token: FencingToken::new(self.token),
            ttl: Ttl::from_stored(self.ttl_seconds)
                .ok_or_else(|| StoreError::Corrupt(format!("lease {}: its TTL", self.id)))?,
            metadata: self.metadata,
            acquired_at: StoreTime::from_ms(self.acquired_at),
            expires_at: StoreTime::from_ms(self.expires_at),
            renewed_at: StoreTime::from_ms(self.renewed_at),
            renewals: self.renewals,
            margin_ms: self.margin_ms,
            ending: self.end.map(EndValue::into_end),
        })
    }

    /// When it ended, and whether its owner released it; `None`: it has not ended.
    pub(super) fn ended(&self) -> Option<(StoreTime, bool)> {
        let end = self.end.as_ref()?;
        Some((StoreTime::from_ms(end.at), end.how == EndHow::Released))
    }
}

impl EndValue {
    fn new(end: &LeaseEnd) -> Self {
        let (how, revocation) = match &end.how {
            EndCause::Released => (EndHow::Released, None),
            EndCause::Expired => (EndHow::Expired, None),
            EndCause::Revoked(revocation) => (EndHow::Revoked, Some(revocation)),
        };
        Self {
            at: end.at.ms(),
            how,
            by: revocation.map(|revocation| revocation.by.to_string()),
            reason: revocation.map(|revocation| revocation.reason.to_string()),
            audit_id: revocation.map(|revocation| revocation.audit_id.to_string()),
        }
    }

    fn into_end(self) -> LeaseEnd {
        let how = match self.how {
            EndHow::Released => EndCause::Released,
            EndHow::Expired => EndCause::Expired,
            EndHow::Revoked => EndCause::Revoked(Revocation {
                by: self.by.unwrap_or_default().into(),
                reason: self.reason.unwrap_or_default().into(),
                audit_id: self.audit_id.unwrap_or_default().into(),
            }),
        };
        LeaseEnd {
            at: StoreTime::from_ms(self.at),
            how,
        }
    }
}

impl RejectionValue {
    pub(super) fn new(rejection: &Rejection, now: StoreTime, place: u32) -> Self {
        Self {
            resource: rejection.resource.text(),
            token: rejection.token.number(),
            highest: rejection.highest.map(FencingToken::number),
            owner: rejection.owner.as_ref().map(ToString::to_string),
            source: rejection.source.clone(),
            reason: rejection.reason.to_owned(),
            at: rejection.at.unwrap_or(now).ms(),
            recorded_at: now.ms(),
            place,
        }
    }
}

/// A resource as it is before its first lease.
pub(super) fn empty() -> HeldLease {
    HeldLease {
        state: ResourceState::default(),
        queue: VecDeque::new(),
    }
}

pub(super) fn resource(text: &str) -> Resource {
    Resource::from(text)
}
