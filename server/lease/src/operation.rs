//! Operations that the service submits to a store, and their results. An operation concerns one
//! resource, or one idempotency key.

use std::sync::Arc;

use domain::lease::{Lease, LeaseEnd, LeaseId, Metadata, Refusal, Revocation, Scope, StoreTime, Ttl};
use domain::names::{OwnerId, Resource};
use domain::tick::Tick;
use domain::token::FencingToken;

use super::activity_log::ActivityEntry;
use super::caller::LeasePrincipal;

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
        /// The key to delete with it: a grant that no client received must not be replayed. Nothing is released if a retry
        /// with this key has received the lease.
        unbind: Option<KeyName>,
    },
    Revoke {
        lease: LeaseId,
        revocation: Revocation,
        delay_ms: i64,
    },
    /// Records that the lease of this resource has expired, if it has.
    Expire {
        resource: Resource,
    },
    /// A waiter leaves the queue without a grant.
    Leave {
        resource: Resource,
        waiter: LeaseId,
    },
    Reject(Box<Rejection>),
    /// Binds an idempotency key to its request and grants nothing: `KeyReused` if it is bound to another one. For a key
    /// whose shard is not that of the resource.
    ClaimKey(Box<IdempotencyKey>),
}

impl Operation {
    pub(super) const fn is_release(&self) -> bool {
        matches!(self, Self::Release { .. })
    }
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
    pub key: Option<IdempotencyKey>,
    pub mode: AcquireMode,
}

impl AcquireOp {
    /// Whether a grant is released when its client has disconnected. A client with an idempotency key that does not wait will retry
    /// and must find its lease.
    pub(super) fn is_released_undelivered(&self) -> bool {
        self.key.is_none() || self.mode.waits()
    }

    /// One of several attempts of a client that does not wait in the queue, counted from 0.
    pub(super) fn attempt(&self, number: usize) -> Box<Self> {
        let mode = if number == 0 {
            self.mode
        } else {
            AcquireMode::OnceAgain
        };
        Box::new(Self { mode, ..self.clone() })
    }
}

/// What to do when the lock cannot be granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcquireMode {
    Once,
    /// As `Once`, after an attempt that has bound the key.
    OnceAgain,
    /// Join the queue.
    OrWait,
    /// Already queued, with a bound key.
    Waiting,
}

impl AcquireMode {
    /// Whether the client waits in the queue.
    pub(super) const fn waits(self) -> bool {
        matches!(self, Self::OrWait | Self::Waiting)
    }

    /// Whether an earlier attempt has bound the key, if there is one.
    pub(super) const fn has_bound_key(self) -> bool {
        matches!(self, Self::OnceAgain | Self::Waiting)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KeyName {
    pub issuer: Arc<str>,
    pub key: Arc<str>,
}

/// An idempotency key with the fingerprint of its request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    pub name: KeyName,
    pub fingerprint: Arc<str>,
}

/// A write that was rejected because of its token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    pub resource: Resource,
    pub token: FencingToken,
    pub highest: Option<FencingToken>,
    pub owner: Option<OwnerId>,
    pub source: String,
    /// `stale`, `never_issued`, or `reported` by a resource that compares tokens itself.
    pub reason: &'static str,
    /// When it was rejected; `None`: now.
    pub at: Option<StoreTime>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum OperationResult {
    Acquired {
        lease: Lease,
        reclaimed: bool,
        /// Granted earlier to the same key.
        replayed: bool,
    },
    /// Held, or reserved for the first waiter. `waiters` does not include the caller.
    Refused {
        refusal: Refusal,
        waiters: u32,
        /// The lock is free, but other waiters are queued.
        reserved_for_waiter: bool,
    },
    Queued {
        refusal: Refusal,
        /// Number of waiters ahead of this one.
        ahead: u32,
        /// Its idempotency key was bound to this request before, perhaps by a waiter of another replica: a grant to that one
        /// answers this one too.
        is_repeated: bool,
    },
    KeyReused,
    Renewed(Lease),
    LifetimeReached(Lease),
    Released(Lease),
    Revoked(Lease),
    Expired(Lease),
    /// The lease had already ended.
    Lost(Lease, LeaseEnd),
    /// Unknown, out of scope, or the lease of another principal.
    NotFound,
    Nothing,
    /// The store did not commit this operation, or did not answer: the outcome is unknown. The others of its batch are
    /// committed.
    Failed,
}

/// The first waiter of a queue, and in how many milliseconds it should try (0: now).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueHead {
    pub resource: Resource,
    pub waiter: LeaseId,
    pub replica: Arc<str>,
    pub in_ms: i64,
}

/// Until when the lease of a resource is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldUntil {
    pub resource: Resource,
    pub token: FencingToken,
    /// `None`: it has ended.
    pub until: Option<StoreTime>,
}

impl HeldUntil {
    pub fn new(resource: Resource, lease: &Lease) -> Self {
        Self {
            resource,
            token: lease.token,
            until: lease.ending.is_none().then(|| lease.held_until()),
        }
    }
}

/// A committed batch.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// Store time on which the batch is based.
    pub now: StoreTime,
    /// Our clock just before `now` was read: the time elapsed since on our clock is at least
    /// that elapsed on the store's.
    pub read_at: Tick,
    pub done: Vec<OperationResult>,
    pub heads: Vec<QueueHead>,
    /// Resources whose state changed.
    pub changed: Vec<Resource>,
    /// Expiry of each lease that was granted, renewed or ended.
    pub held: Vec<HeldUntil>,
    /// Leases whose expiry this batch recorded.
    pub expired: Vec<Lease>,
    /// Activity per resource.
    pub activity: Vec<ActivityEntry>,
}
