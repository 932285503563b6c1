//! What is known of one resource: its last token, and its last lease, living or ended.

use std::sync::Arc;

use crate::names::OwnerId;
use crate::token::FencingToken;

use super::id::LeaseId;
use super::metadata::Metadata;
use super::time::StoreTime;
use super::ttl::Ttl;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceState {
    /// The last token granted; 0 when none ever was.
    pub last_token: FencingToken,
    /// The newest lease. That it has no ending does not mean that it lives: see [`Lease::lives_at`].
    pub lease: Option<Lease>,
    /// After a revocation with a delay: no grant before this.
    pub locked_until: Option<StoreTime>,
    /// The latest moment at which anything happened here: the store's clock may jump back, this does not.
    pub touched_at: StoreTime,
}

/// One acquisition. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub id: LeaseId,
    pub owner: OwnerId,
    /// Whose token acquired it; empty while nobody signs in.
    pub issuer: Arc<str>,
    pub token: FencingToken,
    pub ttl: Ttl,
    pub metadata: Metadata,
    pub acquired_at: StoreTime,
    pub expires_at: StoreTime,
    /// When it was last renewed; the acquisition before the first renewal.
    pub renewed_at: StoreTime,
    pub renewals: i64,
    pub ending: Option<Ending>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    pub at: StoreTime,
    pub how: How,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum How {
    Released,
    Expired,
    Revoked(Revocation),
}

/// Who broke it, why, and under which record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revocation {
    pub by: Arc<str>,
    pub reason: Arc<str>,
    pub audit_id: Arc<str>,
}

impl How {
    pub const fn wire(&self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::Expired => "expired",
            Self::Revoked(_) => "revoked",
        }
    }
}

impl Lease {
    /// **Expiry is this predicate**, whatever the reaper has done so far.
    pub fn lives_at(&self, now: StoreTime) -> bool {
        self.ending.is_none() && self.expires_at > now
    }

    /// How it ended, or has ended by time without anyone having written it down.
    pub fn ending_at(&self, now: StoreTime) -> Option<Ending> {
        match &self.ending {
            Some(ending) => Some(ending.clone()),
            None if self.expires_at <= now => Some(Ending {
                at: self.expires_at,
                how: How::Expired,
            }),
            None => None,
        }
    }

    pub fn state_at(&self, now: StoreTime) -> &'static str {
        self.ending_at(now).map_or("held", |ending| ending.how.wire())
    }

    /// Never negative: what has run out has nothing left. Never more than was given with the last renewal: a clock that
    /// was set back shows a moment before it, and may be put right again at any time.
    pub fn remaining_ms(&self, now: StoreTime) -> i64 {
        if self.lives_at(now) {
            self.expires_at.since(now.max(self.renewed_at))
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
