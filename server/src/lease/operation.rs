//! What the service asks a store to do, and what the store says happened. One operation concerns one resource.

use std::sync::Arc;

use domain::lease::{Ending, Lease, LeaseId, Metadata, Refusal, Revocation, Scope, StoreTime, Ttl};
use domain::names::{OwnerId, Resource};
use domain::observation::Tick;
use domain::token::FencingToken;

use super::caller::LeasePrincipal;
use super::tally::Tallied;

#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    Acquire(Box<AcquireOp>),
    Renew {
        lease: LeaseId,
        ttl: Option<Ttl>,
        lifetime_ms_max: i64,
        principal: LeasePrincipal,
        scope: Scope,
    },
    Release {
        lease: LeaseId,
        principal: LeasePrincipal,
        scope: Scope,
        /// The key to forget with it: a grant given back unseen must not be replayed.
        unbind: Option<KeyName>,
    },
    Revoke {
        lease: LeaseId,
        revocation: Revocation,
        delay_ms: i64,
    },
    /// Writes down that time has ended the lease of this resource, if it has.
    Expire {
        resource: Resource,
    },
    /// A waiter goes without a grant.
    Leave {
        resource: Resource,
        waiter: LeaseId,
    },
    Reject(Box<Rejection>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct AcquireOp {
    pub resource: Resource,
    /// Id of the lease if granted, and of the waiter until then.
    pub id: LeaseId,
    pub owner: OwnerId,
    pub issuer: Arc<str>,
    pub ttl: Ttl,
    pub metadata: Metadata,
    pub key: Option<Key>,
    pub turn: Turn,
}

/// What to do when it cannot be granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    Once,
    /// Stand in line from now on.
    OrWait,
    /// Stands in line already.
    Waiting,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KeyName {
    pub issuer: Arc<str>,
    pub key: Arc<str>,
}

/// An idempotency key with what its request meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    pub name: KeyName,
    pub fingerprint: Arc<str>,
}

/// A write that was refused because of its token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    pub resource: Resource,
    pub token: FencingToken,
    pub highest: Option<FencingToken>,
    pub owner: Option<OwnerId>,
    pub source: String,
    /// `stale`, `never_issued`, or `reported` by a resource that compares itself.
    pub reason: &'static str,
    /// When it was refused; none: now.
    pub at: Option<StoreTime>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Done {
    Acquired {
        lease: Lease,
        reclaimed: bool,
        /// Granted before, to the same key.
        replayed: bool,
    },
    /// Held, or a waiter is next. `waiters` leaves out the caller.
    Refused {
        refusal: Refusal,
        waiters: u32,
        /// Nobody holds it, but others stand in line.
        turn_of_others: bool,
    },
    Queued {
        refusal: Refusal,
        /// How many stand before it.
        ahead: u32,
    },
    KeyReused,
    Renewed(Lease),
    LifetimeReached(Lease),
    Released(Lease),
    Revoked(Lease),
    Expired(Lease),
    /// This lease has ended before.
    Lost(Lease, Ending),
    /// Never known, out of scope, or the lease of another principal.
    NotFound,
    Nothing,
}

/// Who stands first in line, and when it should try: 0 for now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    pub resource: Resource,
    pub waiter: LeaseId,
    pub replica: Arc<str>,
    pub in_ms: i64,
}

/// A batch that was committed.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// The store's time at which it was decided.
    pub now: StoreTime,
    /// Our clock just before `now` was read: what has passed since is at least what has passed by the store's.
    pub read_at: Tick,
    pub done: Vec<Done>,
    pub heads: Vec<Head>,
    /// Resources that look different now.
    pub changed: Vec<Resource>,
    /// Leases that time had ended, written down now.
    pub expired: Vec<Lease>,
    /// What was done to which resource.
    pub tally: Vec<Tallied>,
}
