//! What is written into the audit record about an unlock.
//!
//! A row of phase `outcome` carries a final state. A step that was refused while its intent lives on, or before there was
//! one, is a row of phase `intent` with the refusal's word.

use domain::access::{Right, Role};
use domain::audit::{Action, Phase};
use domain::names::{BackendName, Resource, Source};
use domain::release::Holding;
use domain::unlock::{Ending, Unlock, UnlockState};
use serde_json::{Value, json};

use super::{UnlockError, Unlocks};
use crate::audit::{Actor, Entry, Origin, Subject};
use crate::identity::Who;

/// By which role somebody does this to this lock.
pub(super) fn role(who: &Who, right: Right, backend: &BackendName, resource: &str) -> Option<Role> {
    who.grants.role_for(right, backend, resource)
}

pub(super) fn subject(
    backend: &BackendName,
    source: Option<&Source>,
    resource: &str,
    unlock_id: Option<&str>,
) -> Subject {
    Subject {
        backend: Some(backend.to_string()),
        source: source.map(ToString::to_string),
        // The one character that Postgres keeps in no text.
        resource: Some(resource.replace('\0', "\\u{0}")),
        unlock_id: unlock_id.map(str::to_owned),
    }
}

pub(super) fn subject_of(unlock: &Unlock) -> Subject {
    subject(
        &unlock.backend,
        Some(&unlock.source),
        &unlock.resource.text(),
        Some(&unlock.id),
    )
}

/// A row about an unlock that exists.
pub(super) fn entry(unlock: &Unlock, phase: Phase, outcome: &str, (actor, origin): (Actor, Origin)) -> Entry {
    Entry {
        phase,
        subject: subject_of(unlock),
        reason: Some(unlock.reason.clone()),
        approver_id: unlock.approval.as_ref().map(|approval| approval.by_id.clone()),
        ..Entry::new(Action::ForceUnlock, outcome, actor, origin)
    }
}

/// What nobody asked for: running out, an act that was cut off, reading again.
pub(super) fn by_itself() -> (Actor, Origin) {
    let who = Who::system("leasehold");
    (who.actor(None), who.origin)
}

/// Who does a step of an unlock, with the role that allows it.
pub(super) fn by(who: &Who, right: Right, unlock: &Unlock) -> (Actor, Origin) {
    let role = role(who, right, &unlock.backend, &unlock.resource.text());
    (who.actor(role), who.origin.clone())
}

/// What the act is to end, in plain words for whoever reads the record: null is unknown, or there is none.
pub(super) fn before(unlock: &Unlock) -> Option<Value> {
    let seen = &unlock.observed;
    let mut value = holding(&seen.holding());
    let waiters: Vec<&str> = seen
        .waiters
        .iter()
        .map(|waiter| waiter.owner_id.as_str())
        .collect();
    let dies = seen.blast_radius.dies.iter();
    let dies: Vec<String> = dies
        .map(|one| format!("{}: {}", one.kind.word(), one.what))
        .collect();
    value["heldMs"] = json!(seen.held_ms.known());
    value["remainingMs"] = json!(seen.remaining_ms.known());
    value["renewing"] = json!(seen.renewing.known());
    value["readAt"] = json!(seen.read_at);
    value["waiters"] = json!(waiters);
    value["dies"] = json!(dies);
    Some(value)
}

pub(super) fn after(state: UnlockState, ending: &Ending) -> Option<Value> {
    let mut value = json!({"state": state.wire()});
    if ending.is_read {
        value["now"] = ending.now.as_ref().map_or(Value::Null, holding);
    }
    for (name, text) in [("why", &ending.why), ("mend", &ending.mend)] {
        if let Some(text) = text {
            value[name] = json!(text);
        }
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
    /// Writes down that a step was refused. The refusal stands even where it cannot be written.
    pub(super) async fn note_refusal(&self, who: &Who, right: Right, unlock: &Unlock, error: &UnlockError) {
        let entry = Entry {
            after: Some(json!({"why": error.to_string()})),
            ..entry(unlock, Phase::Intent, error.code(), by(who, right, unlock))
        };
        self.append_or_log(entry).await;
    }

    /// The same where there is no intent yet.
    pub(super) async fn note_no_intent(
        &self,
        who: &Who,
        (backend, source, resource): (&BackendName, Option<&Source>, &str),
        reason: &str,
        error: &UnlockError,
    ) {
        let actor = who.actor(role(who, Right::Unlock, backend, resource));
        let shown: String = resource
            .chars()
            .take(domain::lease::limits::REASON_BYTES_MAX)
            .collect();
        let entry = Entry {
            phase: Phase::Intent,
            subject: subject(backend, source, &shown, None),
            reason: Some(
                domain::escape::visible(reason)
                    .chars()
                    .take(REASON_SHOWN_MAX)
                    .collect(),
            ),
            after: Some(json!({"why": error.to_string()})),
            ..Entry::new(Action::ForceUnlock, error.code(), actor, who.origin.clone())
        };
        self.append_or_log(entry).await;
    }

    pub(super) async fn append_or_log(&self, entry: Entry) {
        if let Err(error) = self.audit.append(entry).await {
            tracing::error!("a refused forced unlock could not be recorded: {error}");
        }
    }
}

/// A reason that was refused is recorded as far as this, in characters.
const REASON_SHOWN_MAX: usize = domain::unlock::REASON_CHARS_MAX;

/// For sentences about a resource of any length.
pub(super) fn short(resource: &Resource) -> String {
    let text = resource.text();
    let shown: String = domain::escape::visible(&text).chars().take(200).collect();
    shown
}
