//! Transition of one resource by a command at one moment: a pure function.

use crate::names::OwnerId;
use crate::token::FencingToken;

use super::id::LeaseId;
use super::invariants::{self, InvariantError};
use super::limits::TOKEN_MAX;
use super::metadata::Metadata;
use super::state::{EndCause, Lease, LeaseEnd, ResourceState, Revocation};
use super::store_time::StoreTime;
use super::ttl::Ttl;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    Acquire(Acquire),
    Renew(Renew),
    Release {
        lease: LeaseId,
    },
    Revoke(Revoke),
    /// Records an expiry that has happened. Never ends a live lease.
    Expire,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acquire {
    /// Chosen by the caller; used only if granted.
    pub id: LeaseId,
    pub owner: OwnerId,
    pub issuer: std::sync::Arc<str>,
    pub ttl: Ttl,
    pub metadata: Metadata,
    /// Lower bound of the token: the floor of the store's epoch.
    pub floor: u64,
    /// See [`Lease::margin_ms`].
    pub margin_ms: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renew {
    pub lease: LeaseId,
    /// `None` keeps the stored one.
    pub ttl: Option<Ttl>,
    pub lifetime_ms_max: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revoke {
    pub lease: LeaseId,
    pub revocation: Revocation,
    /// No grant for this long afterwards.
    pub delay_ms: i64,
}

/// New state and outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    pub after: ResourceState,
    pub outcome: TransitionOutcome,
    /// The ended lease that a grant replaces, with its ending.
    pub displaced: Option<Lease>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransitionOutcome {
    Granted {
        lease: Lease,
        /// The previous lease had expired and the expiry was not recorded.
        reclaimed: bool,
    },
    Refused(Refusal),
    Renewed(Lease),
    /// The cap on a lease's lifetime is reached; the lease runs until it expires.
    LifetimeReached(Lease),
    Released(Lease),
    Revoked(Lease),
    Expired(Lease),
    /// This lease has ended, now or before.
    Lost(Lease, LeaseEnd),
    /// The newest lease of this resource has another id.
    NotThisLease,
    /// Nothing to change.
    Unchanged,
}

/// Why an acquire was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The owner of the live lease. `None`: no lease is live; a waiter is next, or the delay
    /// after a revocation runs.
    pub owner: Option<OwnerId>,
    /// The last token granted: that of the live lease, if there is one.
    pub token: FencingToken,
    /// Of the live lease; 0 without one.
    pub remaining_ms: i64,
    /// Recommended delay before the next attempt.
    pub retry_after_ms: i64,
}

/// # Errors
/// [`InvariantError`] if the step would violate an invariant: nothing may be written then.
pub fn transition(
    before: &ResourceState,
    command: &Command,
    now: StoreTime,
) -> Result<Transition, InvariantError> {
    // A clock that jumped back must not undo an expiry.
    let now = now.max(before.touched_at);
    let step = match command {
        Command::Acquire(acquire) => self::acquire(before, acquire, now)?,
        Command::Renew(renew) => self::renew(before, renew, now),
        Command::Release { lease } => end(before, *lease, EndCause::Released, now),
        Command::Revoke(revoke) => {
            let mut step = end(
                before,
                revoke.lease,
                EndCause::Revoked(revoke.revocation.clone()),
                now,
            );
            if matches!(step.outcome, TransitionOutcome::Revoked(_)) && revoke.delay_ms > 0 {
                step.after.locked_until = Some(now.plus(revoke.delay_ms));
            }
            step
        }
        Command::Expire => expire(before, now),
    };
    invariants::check(before, &step, now)?;
    Ok(step)
}

/// The refusal of an acquire at this moment.
pub fn refusal(state: &ResourceState, now: StoreTime) -> Refusal {
    let now = now.max(state.touched_at);
    // An ended lease is never named: another response may already have reported its end.
    let holder = state.holder_at(now);
    let remaining_ms = holder.map_or(0, |lease| lease.remaining_ms(now));
    let held_ms = holder.map_or(0, |lease| lease.held_until().since(now.max(lease.renewed_at)));
    let delay_ms = state.locked_until.map_or(0, |until| until.since(now).max(0));
    Refusal {
        owner: holder.map(|lease| lease.owner.clone()),
        token: state.last_token,
        remaining_ms,
        retry_after_ms: held_ms.max(delay_ms),
    }
}

/// Whether the next acquire may be granted.
pub fn is_free(state: &ResourceState, now: StoreTime) -> bool {
    let now = now.max(state.touched_at);
    state.holder_at(now).is_none() && state.locked_until.is_none_or(|until| until <= now)
}

fn acquire(before: &ResourceState, request: &Acquire, now: StoreTime) -> Result<Transition, InvariantError> {
    // Not re-entrant: the holder itself is refused as well.
    if !is_free(before, now) {
        return Ok(unchanged(
            before,
            TransitionOutcome::Refused(refusal(before, now)),
        ));
    }
    let last = before.last_token.number().max(request.floor);
    if last >= TOKEN_MAX {
        return Err(InvariantError(
            "this resource has used up all fencing tokens below 2^53",
        ));
    }
    let lease = Lease {
        id: request.id,
        owner: request.owner.clone(),
        issuer: request.issuer.clone(),
        token: FencingToken::new(last + 1),
        ttl: request.ttl,
        metadata: request.metadata.clone(),
        acquired_at: now,
        expires_at: now.plus(request.ttl.ms()),
        renewed_at: now,
        renewals: 0,
        margin_ms: request.margin_ms,
        ending: None,
    };
    let displaced = before.lease.as_ref().map(|old| ended(old, now));
    let reclaimed = before.lease.as_ref().is_some_and(|old| old.ending.is_none());
    Ok(Transition {
        after: ResourceState {
            last_token: lease.token,
            lease: Some(lease.clone()),
            locked_until: None,
            touched_at: now,
        },
        outcome: TransitionOutcome::Granted { lease, reclaimed },
        displaced,
    })
}

fn renew(before: &ResourceState, request: &Renew, now: StoreTime) -> Transition {
    let lease = match live_lease(before, request.lease, now) {
        Ok(lease) => lease,
        Err(step) => return *step,
    };
    let ttl = request.ttl.unwrap_or(lease.ttl);
    let cap = lease.acquired_at.plus(request.lifetime_ms_max);
    let requested_expiry = now.plus(ttl.ms());
    if requested_expiry > cap && cap <= lease.expires_at.max(now) {
        return unchanged(before, TransitionOutcome::LifetimeReached(lease.clone()));
    }
    let renewed = Lease {
        ttl,
        expires_at: requested_expiry.min(cap),
        renewed_at: now,
        renewals: lease.renewals + 1,
        ..lease.clone()
    };
    changed(before, renewed.clone(), TransitionOutcome::Renewed(renewed), now)
}

/// Release and revoke: both end a live lease, and leave an ended one unchanged.
fn end(before: &ResourceState, id: LeaseId, how: EndCause, now: StoreTime) -> Transition {
    let lease = match live_lease(before, id, now) {
        Ok(lease) => lease,
        Err(step) => return *step,
    };
    let ended = Lease {
        ending: Some(LeaseEnd {
            at: now,
            how: how.clone(),
        }),
        ..lease.clone()
    };
    let outcome = match how {
        EndCause::Released => TransitionOutcome::Released(ended.clone()),
        EndCause::Revoked(_) => TransitionOutcome::Revoked(ended.clone()),
        EndCause::Expired => TransitionOutcome::Expired(ended.clone()),
    };
    changed(before, ended, outcome, now)
}

fn expire(before: &ResourceState, now: StoreTime) -> Transition {
    match &before.lease {
        Some(lease) if lease.ending.is_none() && !lease.lives_at(now) => {
            let lease = ended(lease, now);
            changed(before, lease.clone(), TransitionOutcome::Expired(lease), now)
        }
        _ => unchanged(before, TransitionOutcome::Unchanged),
    }
}

/// The lease of this id if it is live; otherwise the step that reports why not.
fn live_lease(before: &ResourceState, id: LeaseId, now: StoreTime) -> Result<&Lease, Box<Transition>> {
    let Some(lease) = before.lease.as_ref().filter(|lease| lease.id == id) else {
        return Err(Box::new(unchanged(before, TransitionOutcome::NotThisLease)));
    };
    let Some(ending) = lease.ending_at(now) else {
        return Ok(lease);
    };
    let lost = TransitionOutcome::Lost(ended(lease, now), ending);
    Err(Box::new(if lease.ending.is_some() {
        unchanged(before, lost)
    } else {
        changed(before, ended(lease, now), lost, now)
    }))
}

fn ended(lease: &Lease, now: StoreTime) -> Lease {
    Lease {
        ending: lease.ending_at(now),
        ..lease.clone()
    }
}

fn changed(before: &ResourceState, lease: Lease, outcome: TransitionOutcome, now: StoreTime) -> Transition {
    Transition {
        after: ResourceState {
            lease: Some(lease),
            touched_at: now,
            ..before.clone()
        },
        outcome,
        displaced: None,
    }
}

fn unchanged(before: &ResourceState, outcome: TransitionOutcome) -> Transition {
    Transition {
        after: before.clone(),
        outcome,
        displaced: None,
    }
}
