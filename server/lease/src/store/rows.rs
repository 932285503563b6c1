//! Conversion of rows to and from SQL: one JSON text per statement, because a batch has one
//! statement per kind of row. Both stores read this way; Postgres also writes this way.
//! Conversions back are checked: an impossible value is [`StoreError::Corrupt`].

use domain::lease::{
    EndCause, Lease, LeaseEnd, LeaseId, Metadata, ResourceState, Revocation, StoreTime, Ttl,
};
use domain::names::{OwnerId, Resource};
use domain::token::FencingToken;
use serde::{Deserialize, Serialize};

use super::{HeldRow, StoreError, WaiterView};
use crate::batch::{Changes, HeldLease, KeyRow, QueueEntry};
use crate::operation::KeyName;

/// A JSON array in this order.
#[derive(Debug, Deserialize)]
pub(super) struct LeaseRow {
    pub(super) lease_id: LeaseId,
    pub(super) resource: String,
    pub(super) owner_id: String,
    pub(super) issuer: String,
    pub(super) fencing_token: u64,
    pub(super) ttl_seconds: i64,
    pub(super) metadata: String,
    pub(super) acquired_at: i64,
    pub(super) expires_at: i64,
    pub(super) renewed_at: i64,
    pub(super) renewals: i64,
    pub(super) ended_at: Option<i64>,
    pub(super) ended_how: Option<String>,
    pub(super) revoked_by: Option<String>,
    pub(super) revoke_reason: Option<String>,
    pub(super) audit_id: Option<String>,
}

/// Resource, last token, locked until, newest lease, queue.
#[derive(Debug, Deserialize)]
pub(super) struct StateRow(
    String,
    u64,
    Option<i64>,
    Option<LeaseRow>,
    Option<Vec<(LeaseId, String)>>,
);

/// Issuer, key, fingerprint, lease, whether it is claimed, creation time.
#[derive(Debug, Deserialize)]
pub(super) struct KeyRowDto(String, String, String, Option<LeaseId>, bool, i64);

#[derive(Debug, Serialize)]
struct JoinWrite<'a> {
    waiter_id: LeaseId,
    resource: String,
    owner_id: &'a str,
    replica_id: &'a str,
    waiting_since: i64,
}

#[derive(Debug, Serialize)]
struct RejectionWrite<'a> {
    resource: String,
    fencing_token: u64,
    highest_token: Option<u64>,
    owner_id: Option<&'a str>,
    source: &'a str,
    reason: &'a str,
    at: i64,
    recorded_at: i64,
}

/// Rows of a batch other than counters, leases and keys, one JSON text per kind; `None` for an empty
/// kind.
#[derive(Default)]
pub(super) struct Writes {
    pub(super) unbound: Option<String>,
    pub(super) left: Option<String>,
    pub(super) joined: Option<String>,
    pub(super) rejections: Option<String>,
}

pub(super) fn writes(changes: &Changes, replica: &str, now: StoreTime) -> Result<Writes, StoreError> {
    let unbound: Vec<[&str; 2]> = changes
        .unbound
        .iter()
        .map(|key| [&*key.issuer, &*key.key])
        .collect();
    let joined = changes.joined.iter().map(|join| JoinWrite {
        waiter_id: join.waiter,
        resource: join.resource.text(),
        owner_id: join.owner.as_str(),
        replica_id: replica,
        waiting_since: now.ms(),
    });
    let rejections = changes.rejections.iter().map(|rejection| RejectionWrite {
        resource: rejection.resource.text(),
        fencing_token: rejection.token.number(),
        highest_token: rejection.highest.map(FencingToken::number),
        owner_id: rejection.owner.as_ref().map(OwnerId::as_str),
        source: &rejection.source,
        reason: rejection.reason,
        at: rejection.at.unwrap_or(now).ms(),
        recorded_at: now.ms(),
    });
    Ok(Writes {
        unbound: some_json(&unbound)?,
        left: some_json(&changes.left)?,
        joined: some_json(&joined.collect::<Vec<_>>())?,
        rejections: some_json(&rejections.collect::<Vec<_>>())?,
    })
}

fn some_json<T: Serialize>(rows: &[T]) -> Result<Option<String>, StoreError> {
    if rows.is_empty() {
        return Ok(None);
    }
    to_json(rows).map(Some)
}

pub(super) fn to_json<T: Serialize + ?Sized>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Corrupt(error.to_string()))
}

pub(super) fn from_json<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::Corrupt(error.to_string()))
}

impl LeaseRow {
    pub(super) fn into_lease(self) -> Result<(Resource, Lease), StoreError> {
        let bad = |what: &str| StoreError::Corrupt(format!("lease {}: {what}", self.lease_id));
        let how = match self.ended_how.as_deref() {
            None => None,
            Some("released") => Some(EndCause::Released),
            Some("expired") => Some(EndCause::Expired),
            Some("revoked") => Some(EndCause::Revoked(Revocation {
                by: self.revoked_by.unwrap_or_default().into(),
                reason: self.revoke_reason.unwrap_or_default().into(),
                audit_id: self.audit_id.unwrap_or_default().into(),
            })),
            Some(_) => return Err(bad("unknown kind of ending")),
        };
        let ending = match (self.ended_at, how) {
            (Some(at), Some(how)) => Some(LeaseEnd {
                at: StoreTime::from_ms(at),
                how,
            }),
            _ => None,
        };
        let lease = Lease {
            id: self.lease_id,
            owner: OwnerId::new(&self.owner_id),
            issuer: self.issuer.into(),
            token: FencingToken::new(self.fencing_token),
            ttl: Ttl::from_stored(self.ttl_seconds)
                .ok_or_else(|| StoreError::Corrupt(format!("lease {}: its TTL", self.lease_id)))?,
            metadata: metadata_read(&self.metadata)?,
            acquired_at: StoreTime::from_ms(self.acquired_at),
            expires_at: StoreTime::from_ms(self.expires_at),
            renewed_at: StoreTime::from_ms(self.renewed_at),
            renewals: self.renewals,
            // The database's clock, or the one server's, judges.
            margin_ms: 0,
            ending,
        };
        Ok((Resource::from(self.resource.as_str()), lease))
    }
}

impl StateRow {
    pub(super) fn into_held(self) -> Result<(Resource, HeldLease), StoreError> {
        let Self(resource, last_token, locked_until, lease, queue) = self;
        let lease = lease
            .map(LeaseRow::into_lease)
            .transpose()?
            .map(|(_, lease)| lease);
        let queue = queue.unwrap_or_default();
        let held = HeldLease {
            state: ResourceState {
                last_token: FencingToken::new(last_token),
                touched_at: lease.as_ref().map_or(StoreTime::default(), touched_at),
                locked_until: locked_until.map(StoreTime::from_ms),
                lease,
            },
            queue: queue
                .into_iter()
                .map(|(waiter, replica)| QueueEntry {
                    waiter,
                    replica: replica.into(),
                })
                .collect(),
        };
        Ok((Resource::from(resource.as_str()), held))
    }
}

impl KeyRowDto {
    pub(super) fn into_key(self) -> (KeyName, KeyRow) {
        let Self(issuer, key, fingerprint, lease, is_claimed, created_at) = self;
        let name = KeyName {
            issuer: issuer.into(),
            key: key.into(),
        };
        let row = KeyRow {
            fingerprint: fingerprint.into(),
            lease,
            is_claimed,
            created_at: StoreTime::from_ms(created_at),
        };
        (name, row)
    }
}

/// The latest time in the rows of a lease.
fn touched_at(lease: &Lease) -> StoreTime {
    let ended = lease.ending.as_ref().map_or(lease.renewed_at, |ending| ending.at);
    lease.renewed_at.max(ended)
}

pub(super) fn metadata_text(metadata: &Metadata) -> String {
    if metadata.is_empty() {
        return "{}".to_owned();
    }
    // A map of strings always has a JSON text.
    serde_json::to_string(metadata).unwrap_or_else(|_| "{}".to_owned())
}

fn metadata_read(text: &str) -> Result<Metadata, StoreError> {
    if text == "{}" {
        return Ok(Metadata::default());
    }
    from_json(text)
}

/// Owner, and the beginning of its wait.
type QueuedDto = (String, i64);
type HeldRowDto = (LeaseRow, u32, Vec<QueuedDto>);

/// Array of lease, number of waiters, owner and beginning of the first waits.
pub(super) fn held_rows(text: &str) -> Result<Vec<HeldRow>, StoreError> {
    let rows: Vec<HeldRowDto> = from_json(text)?;
    let row = |(lease, waiters, queue): HeldRowDto| {
        let (resource, lease) = lease.into_lease()?;
        let waiter = |(owner, since): QueuedDto| WaiterView {
            owner: OwnerId::new(owner),
            since: StoreTime::from_ms(since),
        };
        let queue: Vec<WaiterView> = queue.into_iter().map(waiter).collect();
        Ok(HeldRow {
            resource,
            lease,
            waiters,
            first_since: queue.iter().map(|waiter| waiter.since).min(),
            queue,
        })
    };
    rows.into_iter().map(row).collect()
}
