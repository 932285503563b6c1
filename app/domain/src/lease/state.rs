//! State of one resource: its last token and its last lease, live or ended.

use std::sync::Arc;

use crate::names::OwnerId;
use crate::token::FencingToken;

use super::id::LeaseId;
use super::metadata::Metadata;
use super::store_time::StoreTime;
use super::ttl::Ttl;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceState {
    /// The last token granted; 0 before the first.
    pub last_token: FencingToken,
    /// The newest lease. A lease without an ending may still have expired: see
    /// [`Lease::lives_at`].
    pub lease: Option<Lease>,
    /// After a revocation with a delay: no grant before this.
    pub locked_until: Option<StoreTime>,
    /// Time of the latest change: the store's clock may jump back, this value does not.
    pub touched_at: StoreTime,
}

/// One acquisition. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub id: LeaseId,
    pub owner: OwnerId,
    /// Principal of the token that acquired it; empty without authentication.
    pub issuer: Arc<str>,
    pub token: FencingToken,
    pub ttl: Ttl,
    pub metadata: Metadata,
    pub acquired_at: StoreTime,
    pub expires_at: StoreTime,
    /// Time of the last renewal; the acquisition before the first.
    pub renewed_at: StoreTime,
    pub renewals: i64,
    /// Milliseconds that the lease stays held after its expiry: as much as two servers' clocks may differ. 0 where one clock
    /// judges.
    pub margin_ms: i64,
    pub ending: Option<LeaseEnd>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseEnd {
    pub at: StoreTime,
    pub how: EndCause,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndCause {
    Released,
    Expired,
    Revoked(Revocation),
}

/// Who revoked it, the reason, and the id of the unlock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revocation {
    pub by: Arc<str>,
    pub reason: Arc<str>,
    pub audit_id: Arc<str>,
}

impl EndCause {
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::Expired => "expired",
            Self::Revoked(_) => "revoked",
        }
    }
}

impl Lease {
    /// **Expiry is this predicate**, regardless of what the expiry recorder has written.
    pub fn lives_at(&self, now: StoreTime) -> bool {
        self.ending.is_none() && self.held_until() > now
    }

    /// When it ends unless it is renewed.
    pub fn held_until(&self) -> StoreTime {
        self.expires_at.plus(self.margin_ms)
    }

    /// The recorded end, or the expiry if it is not recorded yet.
    pub fn ending_at(&self, now: StoreTime) -> Option<LeaseEnd> {
        match &self.ending {
            Some(ending) => Some(ending.clone()),
            None if self.held_until() <= now => Some(LeaseEnd {
                at: self.expires_at,
                how: EndCause::Expired,
            }),
            None => None,
        }
    }

    pub fn state_at(&self, now: StoreTime) -> &'static str {
        self.ending_at(now).map_or("held", |ending| ending.how.as_str())
    }

    /// Never negative. Never more than the last renewal granted: a clock that was set back
    /// shows a moment before it and may be corrected at any time.
    pub fn remaining_ms(&self, now: StoreTime) -> i64 {
        if self.lives_at(now) {
            self.expires_at.since(now.max(self.renewed_at)).max(0)
        } else {
            0
        }
    }
}

impl ResourceState {
    pub fn holder_at(&self, now: StoreTime) -> Option<&Lease> {
        self.lease.as_ref().filter(|lease| lease.lives_at(now))
    }
}
