//! Rows of the forced unlock's pages.

use app::pages::unlock::data::{
    CandidateRow, CasualtyRow, HolderData, NothingToUnlock, ReleaseEffects, UnlockData,
};
use domain::lock::Lock;
use domain::names::LockId;
use domain::state::LockState;
use domain::unlock::{ObservedHolding, Unlock};

use super::why;
use crate::http::unlock::status;
use crate::unlock::UnlockError;

pub(super) fn holder(observed: &ObservedHolding) -> HolderData {
    HolderData {
        owner_id: observed.owner_id.clone(),
        owner_count: observed.owner_count,
        lease_id: observed.lease_id.clone(),
        fencing_token: observed.fencing_token.clone(),
        acquired_at: observed.acquired_at.clone(),
        held_ms: observed.held_ms.clone(),
        held_at_least_ms: observed.held_at_least_ms,
        ttl_ms: observed.ttl_ms.clone(),
        remaining_ms: observed.remaining_ms.clone(),
        renewal: observed.renewal.clone(),
        is_silent: observed.renewing.known() == Some(&false),
        read_at: observed.read_at,
    }
}

/// The last observation, where there is no fresh reading.
pub(super) fn last_holder(lock: &Lock) -> HolderData {
    let mut states = lock.reasons.iter().map(|reason| reason.state);
    HolderData {
        owner_id: lock.owner_id.clone(),
        owner_count: lock.owner_count,
        lease_id: lock.lease_id.clone(),
        fencing_token: lock.fencing_token.clone(),
        acquired_at: lock.acquired_at.clone(),
        held_ms: lock.held_ms.clone(),
        held_at_least_ms: Some(lock.held_at_least_ms),
        ttl_ms: lock.ttl_ms.clone(),
        remaining_ms: lock.remaining_ms.clone(),
        renewal: lock.renewal.clone(),
        is_silent: states.any(|state| state == LockState::NotRenewing),
        read_at: lock.observed_at,
    }
}

pub(super) fn effects(observed: &ObservedHolding) -> ReleaseEffects {
    let radius = &observed.blast_radius;
    let casualties = radius.dies.iter().map(|casualty| CasualtyRow {
        kind: casualty.kind,
        what: casualty.what.clone(),
    });
    ReleaseEffects {
        casualties: casualties.collect(),
        next: radius.next.clone(),
        warnings: radius.warnings.clone(),
        waiters: observed.waiters.clone(),
    }
}

pub(super) fn unlock_data(unlock: Unlock) -> UnlockData {
    let last_entry = unlock.outcome_entry.or(unlock.act_entry);
    UnlockData {
        holding: unlock.observed.holding(),
        holder: holder(&unlock.observed),
        effects: effects(&unlock.observed),
        lock: LockId {
            backend: unlock.backend,
            source: unlock.source,
            resource: unlock.resource,
        },
        id: unlock.id,
        state: unlock.state,
        by_name: unlock.by_name,
        reason: unlock.reason,
        created_at: unlock.created_at,
        expires_at: unlock.expires_at,
        approval: unlock.approval,
        break_glass: unlock.break_glass,
        acted_at: unlock.acted_at,
        ended_at: unlock.ended_at,
        ending: unlock.ending,
        intent_entry: unlock.intent_entry,
        last_entry: last_entry.unwrap_or(unlock.intent_entry),
        rereads: unlock.rereads,
    }
}

pub(super) fn candidate(lock: Lock) -> CandidateRow {
    CandidateRow {
        id: lock.id,
        generation: lock.generation,
        owner_id: lock.owner_id,
        held_ms: lock.held_ms,
        held_at_least_ms: lock.held_at_least_ms,
        state: lock.state,
    }
}

/// A page without a lock, for this error.
pub(super) fn nothing(error: &UnlockError, name: Option<String>) -> NothingToUnlock {
    NothingToUnlock {
        status: status(error).as_u16(),
        why: why(error),
        name,
    }
}
