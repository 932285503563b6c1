//! Looking before an intent: a fresh reading of the lock, and whether the one who looks could unlock it. Changes nothing
//! and is no row of the record.

use domain::access::Right;
use domain::backend::BackendView;
use domain::known::Known;
use domain::lease::Scope;
use domain::lock::Lock;
use domain::names::{BackendName, Source};
use domain::release::BlastRadius;
use domain::unlock::{Observed, Tier, TierReason};

use super::intent::{may_unlock, stays_in_scope};
use super::look::{believed, no_answer, observed, offered, the_same};
use super::visible::limit_radius;
use super::{UnlockError, Unlocks, seen_by};
use crate::backends::Backend;
use crate::identity::Who;

/// A lock as somebody is about to unlock it.
#[derive(Debug)]
pub struct Preview {
    /// As the inventory has it.
    pub lock: Box<Lock>,
    /// The strictest of the lock and of everything that would be released with it.
    pub tier: Tier,
    /// None where the tier is `standard`.
    pub tier_reason: Option<TierReason>,
    /// Read just now; none when it could not be, or not well enough to act on.
    pub observed: Option<Observed>,
    /// Why whoever looks cannot unlock it now.
    pub hindrance: Option<UnlockError>,
}

impl Unlocks {
    /// # Errors
    /// It is not held, or not to be seen by the caller, which is told alike; or several sources hold the name.
    pub async fn preview(
        &self,
        who: &Who,
        backend: &BackendName,
        source: Option<&Source>,
        resource: &str,
    ) -> Result<Preview, UnlockError> {
        let unseen = || UnlockError::NotFound {
            what: format!("this resource is not held on {backend}"),
        };
        if !who.may(Right::View, backend, resource) {
            return Err(unseen());
        }
        let lock = self.find(backend, source, resource)?;
        let scope = who.scope_on(Right::View, backend);
        let name = lock.id.resource.text();
        // Two names may share a text form.
        if !who.may(Right::View, backend, &name) {
            return Err(unseen());
        }
        let (observed, unread) = match self.look(&lock).await {
            Ok(observed) => (Some(observed), None),
            Err(error) => (None, Some(error)),
        };
        let radius = observed.as_ref().map(|seen| &seen.blast_radius);
        let protection = self.protection_of(backend, &lock.id.resource, radius).await?;
        let wide = radius.and_then(|radius| stays_in_scope(&who.grants, backend, radius).err());
        let hindrance = may_unlock(who, backend, &name).err().or(unread).or(wide);
        let hindrance = hindrance.map(|error| error.limited(who, backend));
        Ok(Preview {
            observed: observed.map(|seen| as_far_as_allowed(seen, hindrance.as_ref(), &scope)),
            lock: if scope.is_everything() {
                lock
            } else {
                Box::new(lock.limited())
            },
            tier: protection.tier,
            tier_reason: seen_by(who, backend, protection.reason),
            hindrance,
        })
    }

    async fn look(&self, watched: &Lock) -> Result<Observed, UnlockError> {
        let id = &watched.id;
        let backend = self.able(&id.backend)?;
        let read_at = self.clock.now().wall;
        let seen = self.fresh(&*backend, &id.source, &id.resource).await;
        let seen = seen.map_err(|error| no_answer(&id.backend, &error))?;
        let generation = match seen.lock.as_ref().map(|lock| &lock.generation) {
            Some(Known::Known(generation)) => generation.clone(),
            Some(Known::Unknown(why) | Known::Absent(why)) => {
                return Err(UnlockError::Unavailable {
                    why: format!("this holding cannot be told from the next one: {why}"),
                    mend: None,
                });
            }
            None => {
                return Err(UnlockError::HolderChanged {
                    before: None,
                    now: None,
                });
            }
        };
        let (lock, radius, seen) = the_same(seen, &generation, None)?;
        Ok(observed(lock, radius, seen, watched, generation, read_at))
    }
}

/// What dies with it may have names that only those may see who may unlock it.
fn as_far_as_allowed(seen: Observed, hindrance: Option<&UnlockError>, scope: &Scope) -> Observed {
    if matches!(hindrance, Some(UnlockError::Forbidden { .. })) {
        return Observed {
            blast_radius: BlastRadius::default(),
            ..seen
        };
    }
    Observed {
        blast_radius: limit_radius(seen.blast_radius, scope),
        ..seen
    }
}

/// Why somebody cannot unlock a lock, as far as that is known without asking its backend.
pub fn hindrance(
    who: &Who,
    lock: &Lock,
    backend: &dyn Backend,
    view: Option<&BackendView>,
) -> Option<String> {
    let name = &lock.id.backend;
    let may = may_unlock(who, name, &lock.id.resource.text());
    let error = may
        .and_then(|()| offered(name, backend))
        .and_then(|()| believed(name, view))
        .err();
    match (error, &lock.generation) {
        (Some(error), _) => Some(error.limited(who, name).to_string()),
        (None, Known::Known(_)) => None,
        (None, Known::Unknown(why) | Known::Absent(why)) => {
            Some(format!("this holding cannot be told from the next one: {why}"))
        }
    }
}
