//! Invariants of every step, checked in every build: a step that violates one is not written.

use thiserror::Error;

use super::limits::TOKEN_MAX;
use super::state::ResourceState;
use super::store_time::StoreTime;
use super::transition::{Transition, TransitionOutcome};

/// A violated invariant: a bug, or a store that was changed by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct InvariantError(pub &'static str);

/// # Errors
/// The invariant that the step would violate.
pub fn check(before: &ResourceState, step: &Transition, now: StoreTime) -> Result<(), InvariantError> {
    let after = &step.after;
    let granted = matches!(step.outcome, TransitionOutcome::Granted { .. });
    let must = |holds: bool, promise: &'static str| {
        if holds {
            Ok(())
        } else {
            Err(InvariantError(promise))
        }
    };
    must(after.last_token.number() <= TOKEN_MAX, "a token reached 2^53")?;
    must(
        after.touched_at >= before.touched_at,
        "a resource went back in time",
    )?;
    if let Some(lease) = &before.lease {
        must(
            lease.token <= before.last_token,
            "a lease holds a token above its resource's last",
        )?;
    }
    if !granted {
        must(
            after.last_token == before.last_token,
            "a token changed without a grant",
        )?;
        let is_same_lease = before.lease.as_ref().map(|it| it.id) == after.lease.as_ref().map(|it| it.id);
        must(is_same_lease, "a lease changed places without a grant")?;
        return check_not_revived(before, after);
    }
    must(before.holder_at(now).is_none(), "a grant while it is held")?;
    must(
        after.last_token > before.last_token,
        "a grant without a higher token",
    )?;
    let lease = after
        .lease
        .as_ref()
        .ok_or(InvariantError("a grant without a lease"))?;
    must(
        lease.token == after.last_token,
        "a grant with a token not its own",
    )?;
    must(lease.lives_at(now), "a lease born expired")?;
    let is_new_id = before.lease.as_ref().is_none_or(|old| old.id != lease.id);
    must(is_new_id, "a lease id used twice")?;
    let is_displaced = step.displaced.as_ref().map(|it| it.id) == before.lease.as_ref().map(|it| it.id);
    must(is_displaced, "a lease lost its place without an ending")
}

fn check_not_revived(before: &ResourceState, after: &ResourceState) -> Result<(), InvariantError> {
    match (&before.lease, &after.lease) {
        (Some(old), Some(new)) if old.ending.is_some() && new != old => {
            Err(InvariantError("a lease that had ended was changed"))
        }
        _ => Ok(()),
    }
}
