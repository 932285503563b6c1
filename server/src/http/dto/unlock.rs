//! A forced unlock on the wire.

use chrono::{DateTime, Utc};
use domain::force_release::{Casualty, Holding, NodeRelease};
use domain::names::Resource;
use domain::observation::Waiter;
use domain::reported::Reported;
use domain::unlock::{Approval, ObservedHolding, ProtectionLevel, ProtectionReason, UnlockState};
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

use super::Missing;
use super::lock_detail::{NodeDto, WaiterDto};
use crate::unlock::VisibleUnlock;

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Unlock")]
pub struct UnlockDto {
    unlock_id: String,
    /// `pending`, `released`, `holder_changed`, `already_free`, `refused`, `outcome_unknown`, `expired` or `cancelled`.
    state: &'static str,
    /// `standard`, or `protected`: needs a fresh sign-in and a second approver.
    protection: &'static str,
    /// Why it is `protected`; null for `standard`.
    protection_reason: Option<ProtectionReasonDto>,
    backend: String,
    source: String,
    resource: String,
    reason: String,
    /// The only principal that can confirm it.
    by: String,
    created_at: DateTime<Utc>,
    expires_at: DateTime<Utc>,
    /// The lock as it was read for the intent.
    observed: ObservedDto,
    /// Everything else that ends with it.
    blast_radius: Vec<CasualtyDto>,
    /// The next waiter, if the backend orders its queue.
    next: Option<String>,
    warnings: Vec<String>,
    confirm: ConfirmDto,
    /// The approver and the time of approval.
    approval: Option<ActorDto>,
    break_glass: Option<BreakGlassDto>,
    acted_at: Option<DateTime<Utc>>,
    ended_at: Option<DateTime<Utc>>,
    outcome: Option<OutcomeDto>,
    audit: AuditRowsDto,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProtectionReasonDto {
    /// `resource`: the name itself is protected. `casualty`: a lock that would be released with it is. `unnamed_casualty`:
    /// not everything that would be released has a name, and this backend has protected names.
    because: &'static str,
    /// Name of a `casualty`; null for readers who may not see it.
    resource: Option<String>,
    sentence: String,
}

impl From<&ProtectionReason> for ProtectionReasonDto {
    fn from(reason: &ProtectionReason) -> Self {
        Self {
            because: reason.as_str(),
            resource: reason.casualty().map(str::to_owned),
            sentence: reason.to_string(),
        }
    }
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObservedDto {
    owner_id: Option<String>,
    owner_count: u32,
    lease_id: Option<String>,
    generation: String,
    fencing_token: Option<String>,
    acquired_at: Option<DateTime<Utc>>,
    held_ms: Option<i64>,
    ttl_ms: Option<i64>,
    remaining_ms: Option<i64>,
    /// Whether its holder still renews.
    renewing: Option<bool>,
    waiters: Vec<WaiterDto>,
    /// For a lock on several independent nodes: each of them, in configured order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    nodes: Vec<NodeDto>,
    read_at: DateTime<Utc>,
    unknown: BTreeMap<String, String>,
    absent: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct CasualtyDto {
    /// `key`, `session`, `transaction` or `lock`.
    kind: &'static str,
    what: String,
    /// Name of the lock on the same backend; null for what has none.
    resource: Option<String>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ConfirmDto {
    /// To be typed by a user, byte for byte.
    #[serde(rename = "type")]
    to_type: String,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ActorDto {
    by: String,
    at: DateTime<Utc>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct BreakGlassDto {
    reason: String,
    /// Null: flagged until another user has reviewed it.
    reviewed: Option<ActorDto>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutcomeDto {
    /// The current holder; null when the lock is free or could not be read.
    now: Option<HoldingDto>,
    /// Whether `now` was read.
    read: bool,
    /// The result on each node, for a lock on several independent nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    nodes: Vec<NodeReleaseDto>,
    why: Option<String>,
    remedy: Option<String>,
    /// The answer to the act was lost; the lock was read again.
    by_rereading: bool,
    rereads: u32,
}

/// The result on one of several independent nodes.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct NodeReleaseDto {
    node: String,
    /// `deleted`, `no_key`, `other_value`, `refused`, `unreachable` or `unknown`.
    result: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

impl From<&NodeRelease> for NodeReleaseDto {
    fn from(one: &NodeRelease) -> Self {
        Self {
            node: one.node.clone(),
            result: one.result.as_str(),
            why: one.why.clone(),
        }
    }
}

/// Entries of the audit log.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct AuditRowsDto {
    intent: String,
    act: Option<String>,
    outcome: Option<String>,
}

/// One holding of a lock: the values that identify it.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HoldingDto {
    owner_id: Option<String>,
    lease_id: Option<String>,
    generation: Option<String>,
    fencing_token: Option<String>,
}

impl From<&Holding> for HoldingDto {
    fn from(holding: &Holding) -> Self {
        Self {
            owner_id: holding.owner_id.known().map(ToString::to_string),
            lease_id: holding.lease_id.known().cloned(),
            generation: holding.generation.known().map(ToString::to_string),
            fencing_token: holding.fencing_token.known().map(ToString::to_string),
        }
    }
}

impl From<&Approval> for ActorDto {
    fn from(approval: &Approval) -> Self {
        Self {
            by: approval.by_name.clone(),
            at: approval.at,
        }
    }
}

impl From<ObservedHolding> for ObservedDto {
    fn from(seen: ObservedHolding) -> Self {
        let mut missing = Missing::default();
        Self {
            owner_id: missing.take("ownerId", seen.owner_id.map(|id| id.to_string())),
            owner_count: seen.owner_count,
            lease_id: missing.take("leaseId", seen.lease_id),
            generation: seen.generation.to_string(),
            fencing_token: missing.take("fencingToken", seen.fencing_token.map(|token| token.to_string())),
            acquired_at: missing.take("acquiredAt", seen.acquired_at),
            held_ms: missing.take("heldMs", seen.held_ms),
            ttl_ms: missing.take("ttlMs", seen.ttl_ms),
            remaining_ms: missing.take("remainingMs", seen.remaining_ms),
            renewing: missing.take("renewing", seen.renewing),
            waiters: seen.waiters.into_iter().map(waiter).collect(),
            nodes: seen
                .quorum
                .into_iter()
                .flat_map(|quorum| quorum.nodes)
                .map(NodeDto::from)
                .collect(),
            read_at: seen.read_at,
            unknown: missing.unknown,
            absent: missing.absent,
        }
    }
}

fn waiter(waiter: Waiter) -> WaiterDto {
    WaiterDto {
        position: waiter.position,
        owner_id: waiter.owner_id.to_string(),
        waited_ms: match waiter.waited_ms {
            Reported::Value(ms) => Some(ms),
            Reported::Unknown(_) | Reported::NotApplicable(_) => None,
        },
        lease_remaining_ms: waiter.lease_remaining_ms,
    }
}

fn casualty(one: &Casualty) -> CasualtyDto {
    CasualtyDto {
        kind: one.kind.as_str(),
        what: one.what.clone(),
        resource: one.resource.as_ref().map(Resource::text),
    }
}

impl From<VisibleUnlock> for UnlockDto {
    fn from(unlock: VisibleUnlock) -> Self {
        let unlock = unlock.into_inner();
        let radius = &unlock.observed.blast_radius;
        let has_ended = unlock.state != UnlockState::Pending;
        let outcome = has_ended.then(|| OutcomeDto {
            now: unlock.ending.now.as_ref().map(HoldingDto::from),
            read: unlock.ending.is_read,
            why: unlock.ending.why.clone(),
            nodes: unlock.ending.nodes.iter().map(NodeReleaseDto::from).collect(),
            remedy: unlock.ending.remedy.clone(),
            by_rereading: unlock.ending.is_by_rereading,
            rereads: unlock.rereads,
        });
        let break_glass = unlock.break_glass.as_ref().map(|break_glass| BreakGlassDto {
            reason: break_glass.reason.clone(),
            reviewed: break_glass.review.as_ref().map(ActorDto::from),
        });
        Self {
            state: unlock.state.as_str(),
            protection: ProtectionLevel::as_str(unlock.protection),
            protection_reason: unlock.protection_reason.as_ref().map(ProtectionReasonDto::from),
            blast_radius: radius.dies.iter().map(casualty).collect(),
            next: radius.next.as_ref().map(ToString::to_string),
            warnings: radius.warnings.clone(),
            confirm: ConfirmDto {
                to_type: unlock.to_type(),
            },
            approval: unlock.approval.as_ref().map(ActorDto::from),
            break_glass,
            ended_at: unlock.ended_at.filter(|_| !unlock.is_open()),
            acted_at: unlock.acted_at,
            outcome,
            audit: AuditRowsDto {
                intent: unlock.intent_entry.to_string(),
                act: unlock.act_entry.map(|row| row.to_string()),
                outcome: unlock.outcome_entry.map(|row| row.to_string()),
            },
            unlock_id: unlock.id,
            backend: unlock.backend.to_string(),
            source: unlock.source.to_string(),
            resource: unlock.resource.text(),
            reason: unlock.reason,
            by: unlock.by_name,
            created_at: unlock.created_at,
            expires_at: unlock.expires_at,
            observed: unlock.observed.into(),
        }
    }
}
