//! Preview before an intent: a fresh read of the lock, and whether the caller could unlock it. Changes nothing and
//! makes no audit entry.

use domain::access::Permission;
use domain::backend::BackendView;
use domain::force_release::BlastRadius;
use domain::lease::Scope;
use domain::lock::Lock;
use domain::names::{BackendName, Source};
use domain::quorum::Quorum;
use domain::reported::Reported;
use domain::unlock::{ObservedHolding, ProtectionLevel, ProtectionReason};

use super::fresh_read::{
    check_release_supported, check_scan_is_recent, match_holding, no_answer, observed, within_limit,
};
use super::intent::{may_unlock, stays_in_scope};
use super::visibility::limit_radius;
use super::{UnlockError, Unlocks, seen_by};
use crate::identity::Principal;
use backends::Backend;

/// A lock as shown before an unlock.
#[derive(Debug)]
pub struct Preview {
    /// From the inventory.
    pub lock: Box<Lock>,
    /// The strictest level of the lock and of all its casualties.
    pub protection: ProtectionLevel,
    /// `None` if the level is `standard`.
    pub protection_reason: Option<ProtectionReason>,
    /// Fresh read; `None` if it failed or is not sufficient to act on.
    pub observed: Option<ObservedHolding>,
    /// Why the caller cannot unlock it now.
    pub blocked_reason: Option<UnlockError>,
}

impl Unlocks {
    /// # Errors
    /// The lock is not held or not visible to the caller (same answer), it is unknown whether it is held, or several
    /// sources hold the name.
    pub async fn preview(
        &self,
        who: &Principal,
        backend: &BackendName,
        source: Option<&Source>,
        resource: &str,
    ) -> Result<Preview, UnlockError> {
        if !who.may(Permission::View, backend, resource) {
            // Also of a backend outside of the scope, whose status stays hidden.
            return Err(UnlockError::NotFound {
                what: format!("this resource is not held on {backend}"),
            });
        }
        let lock = self.find(backend, source, resource);
        let lock = lock.map_err(|error| error.limited(who, backend))?;
        let scope = who.scope_on(Permission::View, backend);
        let name = lock.id.resource.text();
        // Two names can have the same text form.
        if !who.may(Permission::View, backend, &name) {
            return Err(self.not_held(backend).limited(who, backend));
        }
        let may = may_unlock(who, backend, &name);
        let (mut observed, read_error) = match self.observe(&lock).await {
            Ok(observed) => (Some(observed), None),
            Err(error) => (None, Some(error)),
        };
        // Others are not shown what the release would end.
        if may.is_ok()
            && let Some(observed) = &mut observed
        {
            self.note_weak_identity(&lock.id, scope.clone(), observed).await;
        }
        let radius = observed.as_ref().map(|observed| &observed.blast_radius);
        let protection = self.protection_of(backend, &lock.id.resource, radius).await?;
        let scope_error = radius.and_then(|radius| stays_in_scope(&who.grants, backend, radius).err());
        let hindrance = may.err().or(read_error).or(scope_error);
        let hindrance = hindrance.map(|error| error.limited(who, backend));
        Ok(Preview {
            observed: observed.map(|observed| limit_to_permissions(observed, hindrance.as_ref(), &scope)),
            lock: if scope.is_everything() {
                lock
            } else {
                Box::new(lock.limited())
            },
            protection: protection.level,
            protection_reason: seen_by(who, backend, protection.reason),
            blocked_reason: hindrance,
        })
    }

    async fn observe(&self, watched: &Lock) -> Result<ObservedHolding, UnlockError> {
        let id = &watched.id;
        let backend = self.unlockable_backend(&id.backend)?;
        let read_at = self.clock.now().wall;
        let reading = async {
            let _permit = self.backends.page_read(&id.backend).await;
            self.fresh(&*backend, &id.source, &id.resource).await
        };
        let inspection = within_limit(reading).await;
        let inspection = inspection.map_err(|error| no_answer(&id.backend, &error))?;
        let generation = match inspection.lock.as_ref().map(|lock| &lock.generation) {
            Some(Reported::Value(generation)) => generation.clone(),
            Some(Reported::Unknown(why) | Reported::NotApplicable(why)) => {
                return Err(UnlockError::Unavailable {
                    why: format!("this grant cannot be distinguished from the next one: {why}"),
                    remedy: None,
                });
            }
            None => {
                return Err(UnlockError::HolderChanged {
                    before: None,
                    now: None,
                });
            }
        };
        let (lock, radius, inspection) = match_holding(inspection, &generation, None)?;
        Ok(observed(lock, radius, inspection, watched, generation, read_at))
    }
}

/// Removes the blast radius if `hindrance` is `Forbidden`; otherwise limits it and the nodes to `scope`.
fn limit_to_permissions(
    observed: ObservedHolding,
    hindrance: Option<&UnlockError>,
    scope: &Scope,
) -> ObservedHolding {
    if matches!(hindrance, Some(UnlockError::Forbidden { .. })) {
        return ObservedHolding {
            blast_radius: BlastRadius::default(),
            ..observed
        };
    }
    if scope.is_everything() {
        return observed;
    }
    ObservedHolding {
        blast_radius: limit_radius(observed.blast_radius, scope),
        quorum: observed.quorum.map(Quorum::limited),
        ..observed
    }
}

/// Why a principal cannot unlock a lock, as far as known without calling the backend.
pub fn find_blocked_reason(
    who: &Principal,
    lock: &Lock,
    backend: &dyn Backend,
    view: Option<&BackendView>,
) -> Option<String> {
    let name = &lock.id.backend;
    let may = may_unlock(who, name, &lock.id.resource.text());
    let error = may
        .and_then(|()| check_release_supported(name, backend))
        .and_then(|()| check_scan_is_recent(name, view))
        .err();
    match (error, &lock.generation) {
        (Some(error), _) => Some(error.limited(who, name).to_string()),
        (None, Reported::Value(_)) => None,
        (None, Reported::Unknown(why) | Reported::NotApplicable(why)) => Some(format!(
            "this grant cannot be distinguished from the next one: {why}"
        )),
    }
}
