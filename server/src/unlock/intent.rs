//! The first step: look at the lock fresh, and bind an intent to exactly what was seen.

use chrono::TimeDelta;
use domain::access::{Grants, Right};
use domain::audit::Phase;
use domain::generation::Generation;
use domain::known::Known;
use domain::lease::names;
use domain::names::{BackendName, Source};
use domain::release::{BlastRadius, CasualtyKind, Holding};
use domain::unlock::{Ending, Reason, Unlock, UnlockState};
use serde_json::json;

use super::limits::INTENT_MAX;
use super::look::{no_answer, observed, the_same};
use super::{UnlockError, Unlocks, note, store};
use crate::audit::Entry;
use crate::identity::{Who, new_id};

/// What somebody wants to unlock, as they sent it.
#[derive(Debug, Clone)]
pub struct Asked {
    pub backend: BackendName,
    pub source: Option<Source>,
    /// Its text form.
    pub resource: String,
    pub generation: Generation,
    pub reason: String,
}

impl Unlocks {
    /// Records the intent. The lock is not touched.
    ///
    /// # Errors
    /// Each is in the record, too.
    pub async fn begin(&self, who: &Who, asked: Asked) -> Result<Unlock, UnlockError> {
        let begun = self.look_and_bind(who, &asked).await;
        if let Err(error) = &begun {
            let what = (&asked.backend, asked.source.as_ref(), asked.resource.as_str());
            self.note_no_intent(who, what, &asked.reason, error).await;
        }
        begun.map_err(|error| error.limited(who, &asked.backend))
    }

    async fn look_and_bind(&self, who: &Who, asked: &Asked) -> Result<Unlock, UnlockError> {
        may_unlock(who, &asked.backend, &asked.resource)?;
        let reason = parse_reason("reason", &asked.reason)?;
        let watched = self.find(&asked.backend, asked.source.as_ref(), &asked.resource)?;
        // Two names may share a text form.
        may_unlock(who, &asked.backend, &watched.id.resource.text())?;
        let backend = self.able(&asked.backend)?;
        let (source, resource) = (watched.id.source.clone(), watched.id.resource.clone());
        let read_at = self.clock.now().wall;
        let seen = self.fresh(&*backend, &source, &resource).await;
        let seen = seen.map_err(|error| no_answer(&asked.backend, &error))?;
        let shown = self.shown(&watched, &asked.generation);
        let (lock, radius, seen) = the_same(seen, &asked.generation, shown.as_ref())?;
        stays_in_scope(&who.grants, &asked.backend, &radius)?;
        let protection = self
            .protection_of(&asked.backend, &resource, Some(&radius))
            .await?;
        let now = self.clock.now().wall;
        let mut unlock = Unlock {
            id: new_id("u_").map_err(|_| UnlockError::CutOff)?,
            state: UnlockState::Pending,
            tier: protection.tier,
            tier_reason: protection.reason,
            by_id: who.id().to_owned(),
            by_name: who.name().to_owned(),
            by_root_id: self.identity.lineage(who).root,
            backend: asked.backend.clone(),
            source,
            resource,
            reason: reason.as_str().to_owned(),
            observed: observed(lock, radius, seen, &watched, asked.generation.clone(), read_at),
            created_at: now,
            expires_at: now + TimeDelta::from_std(INTENT_MAX).unwrap_or_default(),
            mismatches: 0,
            approval: None,
            break_glass: None,
            acted_at: None,
            ended_at: None,
            ending: Ending::default(),
            intent_row: 0,
            act_row: None,
            outcome_row: None,
            rereads: 0,
        };
        self.record_intent(who, &mut unlock).await?;
        Ok(unlock)
    }

    async fn record_intent(&self, who: &Who, unlock: &mut Unlock) -> Result<(), UnlockError> {
        let (actor, origin) = note::by(who, Right::Unlock, unlock);
        let role = actor.role.clone();
        let entry = Entry {
            before: note::before(unlock),
            after: Some(json!({
                "tier": unlock.tier, "tierReason": unlock.tier_reason, "expiresAt": unlock.expires_at
            })),
            ..note::entry(
                unlock,
                Phase::Intent,
                UnlockState::Pending.wire(),
                (actor, origin),
            )
        };
        let mut tx = self.db().begin().await?;
        let appended = self.audit.append_in(&mut tx, entry).await?;
        unlock.intent_row = appended.seq;
        store::insert(&mut tx, unlock, role.as_deref()).await?;
        tx.commit().await?;
        self.audit.export(&appended).await;
        Ok(())
    }

    /// The holding that the caller had on the screen, if the inventory still knows it.
    fn shown(&self, watched: &domain::lock::Lock, generation: &Generation) -> Option<Holding> {
        (watched.generation.known() == Some(generation)).then(|| Holding {
            owner_id: watched.owner_id.clone(),
            lease_id: watched.lease_id.clone(),
            generation: Known::Known(generation.clone()),
            fencing_token: watched.fencing_token.clone(),
        })
    }
}

pub(super) fn parse_reason(field: &'static str, text: &str) -> Result<Reason, UnlockError> {
    Reason::parse(text).map_err(|weakness| UnlockError::WeakReason { field, weakness })
}

pub(super) fn may_unlock(who: &Who, backend: &BackendName, resource: &str) -> Result<(), UnlockError> {
    if who.may(Right::Unlock, backend, resource) {
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
        "this needs the right unlock on this resource"
    }))
}

/// Whoever may unlock only some names must not end others by ending the session that holds them all.
pub(super) fn stays_in_scope(
    grants: &Grants,
    backend: &BackendName,
    radius: &BlastRadius,
) -> Result<(), UnlockError> {
    let dies = |kind: CasualtyKind| radius.dies.iter().filter(move |one| one.kind == kind).count();
    let others = dies(CasualtyKind::Lock) + dies(CasualtyKind::Key);
    let is_session = dies(CasualtyKind::Session) > 0;
    if others == 0 || !is_session || grants.scope_on(Right::Unlock, backend).is_everything() {
        return Ok(());
    }
    Err(UnlockError::forbidden(format!(
        "its session holds {} more, which end with it and need not be yours; ask somebody who may unlock all of {backend}",
        domain::human::counted(others as u64, "lock", "locks")
    )))
}
