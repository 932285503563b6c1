//! Audit entries of forced unlocks.
//!
//! An entry of phase `outcome` carries a final state. A step that was refused while the intent stays open, or before
//! there was one, is an entry of phase `intent` with the code of the refusal.

use domain::access::{Permission, Role};
use domain::audit::{Action, AuditPhase};
use domain::force_release::Holding;
use domain::names::{BackendName, Resource, Source};
use domain::unlock::{EndedHolding, Unlock, UnlockState};
use serde_json::{Value, json};

use super::{UnlockError, Unlocks};
use crate::audit::{Actor, Entry, EntrySubject, Origin};
use crate::identity::Principal;

/// The role that gives the principal this permission on this lock.
pub(super) fn role(
    who: &Principal,
    permission: Permission,
    backend: &BackendName,
    resource: &str,
) -> Option<Role> {
    who.grants.role_for(permission, backend, resource)
}

pub(super) fn subject(
    backend: &BackendName,
    source: Option<&Source>,
    resource: &str,
    unlock_id: Option<&str>,
) -> EntrySubject {
    EntrySubject {
        backend: Some(backend.to_string()),
        source: source.map(ToString::to_string),
        // NUL is the one character that Postgres text cannot store.
        resource: Some(resource.replace('\0', "\\u{0}")),
        unlock_id: unlock_id.map(str::to_owned),
    }
}

pub(super) fn subject_of(unlock: &Unlock) -> EntrySubject {
    subject(
        &unlock.backend,
        Some(&unlock.source),
        &unlock.resource.text(),
        Some(&unlock.id),
    )
}

/// An entry about an existing unlock.
pub(super) fn entry(
    unlock: &Unlock,
    phase: AuditPhase,
    outcome: &str,
    (actor, origin): (Actor, Origin),
) -> Entry {
    Entry {
        phase,
        subject: subject_of(unlock),
        reason: Some(unlock.reason.clone()),
        approver_id: unlock.approval.as_ref().map(|approval| approval.by_id.clone()),
        ..Entry::new(Action::ForceUnlock, outcome, actor, origin)
    }
}

/// Actor of automatic steps: expiry, an interrupted execution, a re-read.
pub(super) fn system_actor() -> (Actor, Origin) {
    let who = Principal::system("leasehold");
    (who.actor(None), who.origin)
}

/// Actor of a step, with the role that allows it.
pub(super) fn actor_and_origin(who: &Principal, permission: Permission, unlock: &Unlock) -> (Actor, Origin) {
    let role = role(who, permission, &unlock.backend, &unlock.resource.text());
    (who.actor(role), who.origin.clone())
}

/// The holding to end, as JSON for readers of the audit log; `None` if unknown or absent.
pub(super) fn before(unlock: &Unlock) -> Option<Value> {
    let observed = &unlock.observed;
    let mut value = holding(&observed.holding());
    let waiters = observed.waiters.iter().take(WAITERS_RECORDED_MAX);
    let waiters: Vec<&str> = waiters.map(|waiter| waiter.owner_id.as_str()).collect();
    let more_waiters = observed.waiters.len() - waiters.len();
    let casualties = observed.blast_radius.dies.iter();
    let casualties: Vec<String> = casualties
        .map(|casualty| format!("{}: {}", casualty.kind.as_str(), casualty.what))
        .collect();
    value["heldMs"] = json!(observed.held_ms.known());
    value["remainingMs"] = json!(observed.remaining_ms.known());
    value["renewing"] = json!(observed.renewing.known());
    value["readAt"] = json!(observed.read_at);
    value["waiters"] = json!(waiters);
    if more_waiters > 0 {
        value["moreWaiters"] = json!(more_waiters);
    }
    value["dies"] = json!(casualties);
    Some(value)
}

pub(super) fn after(state: UnlockState, ending: &EndedHolding) -> Option<Value> {
    let mut value = json!({"state": state.as_str()});
    if ending.is_read {
        value["now"] = ending.now.as_ref().map_or(Value::Null, holding);
    }
    for (name, text) in [("why", &ending.why), ("remedy", &ending.remedy)] {
        if let Some(text) = text {
            value[name] = json!(text);
        }
    }
    if !ending.nodes.is_empty() {
        value["nodes"] = json!(ending.nodes);
    }
    if ending.is_by_rereading {
        value["byRereading"] = json!(true);
    }
    Some(value)
}

fn holding(holding: &Holding) -> Value {
    json!({
        "ownerId": holding.owner_id.known().map(ToString::to_string),
        "leaseId": holding.lease_id.known(),
        "generation": holding.generation.known(),
        "fencingToken": holding.fencing_token.known().map(ToString::to_string),
    })
}

impl Unlocks {
    /// Records a refused step. The refusal takes effect even if it cannot be recorded.
    pub(super) async fn record_rejected_step(
        &self,
        who: &Principal,
        permission: Permission,
        unlock: &Unlock,
        error: &UnlockError,
    ) {
        let entry = Entry {
            after: Some(json!({"why": error.to_string()})),
            ..entry(
                unlock,
                AuditPhase::Intent,
                error.code(),
                actor_and_origin(who, permission, unlock),
            )
        };
        self.audit.append_refused(entry).await;
    }

    /// Records a refused step without an intent.
    pub(super) async fn record_rejected_intent(
        &self,
        who: &Principal,
        (backend, source, resource): (&BackendName, Option<&Source>, &str),
        reason: &str,
        error: &UnlockError,
    ) {
        let actor = who.actor(role(who, Permission::Unlock, backend, resource));
        let name: String = resource
            .chars()
            .take(domain::lease::limits::REASON_BYTES_MAX)
            .collect();
        let entry = Entry {
            phase: AuditPhase::Intent,
            subject: subject(backend, source, &name, None),
            reason: Some(
                domain::escape::visible(reason)
                    .chars()
                    .take(REASON_SHOWN_MAX)
                    .collect(),
            ),
            after: Some(json!({"why": error.to_string()})),
            ..Entry::new(Action::ForceUnlock, error.code(), actor, who.origin.clone())
        };
        self.audit.append_refused(entry).await;
    }
}

/// Names of waiters in an entry, from the head of the queue; the others are counted. Names are as long as clients choose.
const WAITERS_RECORDED_MAX: usize = 100;
/// Characters of a refused reason that are recorded.
const REASON_SHOWN_MAX: usize = domain::unlock::REASON_CHARS_MAX;

/// Shortened name for messages.
pub(super) fn short(resource: &Resource) -> String {
    let text = resource.text();
    let short: String = domain::escape::visible(&text).chars().take(200).collect();
    short
}
