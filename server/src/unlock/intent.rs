//! The first step: a fresh read of the lock, and an intent bound to exactly that holding.

use chrono::TimeDelta;
use domain::access::{Grants, Permission};
use domain::audit::AuditPhase;
use domain::force_release::{BlastRadius, CasualtyKind, Holding};
use domain::generation::Generation;
use domain::lease::names;
use domain::names::{BackendName, Source};
use domain::reported::Reported;
use domain::unlock::{EndedHolding, Unlock, UnlockReason, UnlockState};
use serde_json::json;

use super::fresh_read::{match_holding, no_answer, observed};
use super::limits::INTENT_MAX;
use super::{UnlockError, Unlocks, audit_entries, store};
use crate::audit::Entry;
use crate::identity::Principal;
use runtime::random::prefixed_id;

/// Request for an intent.
#[derive(Debug, Clone)]
pub struct UnlockRequest {
    pub backend: BackendName,
    pub source: Option<Source>,
    /// Text form of the resource name.
    pub resource: String,
    pub generation: Generation,
    pub reason: String,
}

impl Unlocks {
    /// Records the intent. The lock is not touched.
    ///
    /// # Errors
    /// Each is recorded in the audit log.
    pub async fn begin(&self, who: &Principal, request: UnlockRequest) -> Result<Unlock, UnlockError> {
        let result = self.observe_and_record(who, &request).await;
        if let Err(error) = &result {
            let lock = (
                &request.backend,
                request.source.as_ref(),
                request.resource.as_str(),
            );
            self.record_rejected_intent(who, lock, &request.reason, error)
                .await;
        }
        result.map_err(|error| error.limited(who, &request.backend))
    }

    async fn observe_and_record(
        &self,
        who: &Principal,
        request: &UnlockRequest,
    ) -> Result<Unlock, UnlockError> {
        may_unlock(who, &request.backend, &request.resource)?;
        let reason = parse_reason("reason", &request.reason)?;
        let watched = self.find(&request.backend, request.source.as_ref(), &request.resource)?;
        // Two names can have the same text form.
        may_unlock(who, &request.backend, &watched.id.resource.text())?;
        let backend = self.unlockable_backend(&request.backend)?;
        let (source, resource) = (watched.id.source.clone(), watched.id.resource.clone());
        let read_at = self.clock.now().wall;
        let inspection = self.fresh(&*backend, &source, &resource).await;
        let inspection = inspection.map_err(|error| no_answer(&request.backend, &error))?;
        let seen_holding = self.observed_holding(&watched, &request.generation);
        let (lock, radius, inspection) =
            match_holding(inspection, &request.generation, seen_holding.as_ref())?;
        stays_in_scope(&who.grants, &request.backend, &radius)?;
        let protection = self
            .protection_of(&request.backend, &resource, Some(&radius))
            .await?;
        let now = self.clock.now().wall;
        let mut unlock = Unlock {
            id: prefixed_id("u_"),
            state: UnlockState::Pending,
            protection: protection.level,
            protection_reason: protection.reason,
            by_id: who.id().to_owned(),
            by_name: who.name().to_owned(),
            by_root_user_id: self.identity.lineage(who).root,
            backend: request.backend.clone(),
            source,
            resource,
            reason: reason.as_str().to_owned(),
            observed: observed(
                lock,
                radius,
                inspection,
                &watched,
                request.generation.clone(),
                read_at,
            ),
            created_at: now,
            expires_at: now + TimeDelta::from_std(INTENT_MAX).unwrap_or_default(),
            mismatches: 0,
            approval: None,
            break_glass: None,
            acted_at: None,
            ended_at: None,
            ending: EndedHolding::default(),
            intent_entry: 0,
            act_entry: None,
            outcome_entry: None,
            rereads: 0,
        };
        let scope = who.scope_on(Permission::View, &request.backend);
        self.note_weak_identity(&watched.id, scope, &mut unlock.observed)
            .await;
        self.record_intent(who, &mut unlock).await?;
        Ok(unlock)
    }

    async fn record_intent(&self, who: &Principal, unlock: &mut Unlock) -> Result<(), UnlockError> {
        let (actor, origin) = audit_entries::actor_and_origin(who, Permission::Unlock, unlock);
        let role = actor.role.clone();
        let entry = Entry {
            before: audit_entries::before(unlock),
            after: Some(json!({
                "protection": unlock.protection, "protectionReason": unlock.protection_reason, "expiresAt": unlock.expires_at
            })),
            ..audit_entries::entry(
                unlock,
                AuditPhase::Intent,
                UnlockState::Pending.as_str(),
                (actor, origin),
            )
        };
        let mut tx = self.db().begin().await?;
        let appended = self.audit.append_in(&mut tx, entry).await?;
        unlock.intent_entry = appended.seq;
        store::insert(&mut tx, unlock, role.as_deref()).await?;
        tx.commit().await?;
        self.audit.export(&appended).await;
        Ok(())
    }

    /// The holding that the caller saw, if the inventory still has it.
    fn observed_holding(&self, watched: &domain::lock::Lock, generation: &Generation) -> Option<Holding> {
        (watched.generation.known() == Some(generation)).then(|| Holding {
            owner_id: watched.owner_id.clone(),
            lease_id: watched.lease_id.clone(),
            generation: Reported::Value(generation.clone()),
            fencing_token: watched.fencing_token.clone(),
        })
    }
}

pub(super) fn parse_reason(field: &'static str, text: &str) -> Result<UnlockReason, UnlockError> {
    UnlockReason::parse(text).map_err(|weakness| UnlockError::WeakReason { field, weakness })
}

pub(super) fn may_unlock(who: &Principal, backend: &BackendName, resource: &str) -> Result<(), UnlockError> {
    if who.may(Permission::Unlock, backend, resource) {
        let is_reserved = *backend == BackendName::builtin() && names::is_reserved(resource);
        return if is_reserved {
            Err(UnlockError::Reserved)
        } else {
            Ok(())
        };
    }
    Err(UnlockError::forbidden(if who.read_only {
        "the console is read-only for now"
    } else {
        "this needs the permission `unlock` on this resource"
    }))
}

/// A user with a limited scope must not end other locks by ending the session that holds them all.
pub(super) fn stays_in_scope(
    grants: &Grants,
    backend: &BackendName,
    radius: &BlastRadius,
) -> Result<(), UnlockError> {
    let count = |kind: CasualtyKind| {
        radius
            .dies
            .iter()
            .filter(move |casualty| casualty.kind == kind)
            .count()
    };
    let others = count(CasualtyKind::Lock) + count(CasualtyKind::Key);
    let is_session = count(CasualtyKind::Session) > 0;
    if others == 0 || !is_session || grants.scope_on(Permission::Unlock, backend).is_everything() {
        return Ok(());
    }
    Err(UnlockError::forbidden(format!(
        "its session also holds {}, which would be released too; ask a user who may unlock all of {backend}",
        domain::format::counted(others as u64, "lock", "locks")
    )))
}
