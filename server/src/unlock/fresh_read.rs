//! Lookup and fresh reading of a lock before and after an unlock, and the checks of its backend.

use std::sync::Arc;

use domain::backend::{BackendStatus, BackendView};
use domain::duration::millis;
use domain::force_release::{BlastRadius, Holding};
use domain::generation::Generation;
use domain::lock::Lock;
use domain::names::{BackendName, Resource, Source};
use domain::observation::{Inspection, Lifetime, ObservedLock};
use domain::reported::Reported;
use domain::state::LockState;
use domain::unlock::ObservedHolding;

use super::limits::{FRESH_READ_TIMEOUT, SECOND_READ_DELAY};
use super::{UnlockError, Unlocks};
use backends::{Backend, BackendError, no_release};
use inventory::LookUp;

impl Unlocks {
    /// The lock with this name, from the inventory.
    pub(super) fn find(
        &self,
        backend: &BackendName,
        source: Option<&Source>,
        resource: &str,
    ) -> Result<Box<Lock>, UnlockError> {
        match self
            .inventory
            .find_lock(backend, source, resource, self.clock.now())
        {
            LookUp::Found(lock, _) => Ok(lock),
            LookUp::Ambiguous(sources) => Err(UnlockError::Ambiguous { sources }),
            LookUp::NoSuchBackend => Err(UnlockError::NotFound {
                what: format!("no backend is named {backend}"),
            }),
            LookUp::NotHeld(seen) if seen.is_empty() => Err(self.not_held(backend)),
            LookUp::NotHeld(_) => {
                let changed = UnlockError::HolderChanged {
                    before: None,
                    now: None,
                };
                Err(self.unread(backend).unwrap_or(changed))
            }
        }
    }

    /// The error for a name that no scan has found, or that the caller may not see.
    pub(super) fn not_held(&self, backend: &BackendName) -> UnlockError {
        self.unread(backend).unwrap_or_else(|| UnlockError::NotFound {
            what: format!("this resource is not held on {backend}"),
        })
    }

    /// The error for a backend whose locks without an observation may be held.
    fn unread(&self, backend: &BackendName) -> Option<UnlockError> {
        let views = self.inventory.backends(self.clock.now());
        let mut views = views.into_iter();
        let view = views.find(|view| view.name == *backend && view.is_unread())?;
        Some(UnlockError::Stale {
            why: format!(
                "it is unknown whether this resource is held on {backend}, which is {}",
                status_text(&view)
            ),
            remedy: view.fault.map(|fault| fault.remedy),
        })
    }

    /// The adapter, if it supports unlocks and is reachable.
    pub(super) fn unlockable_backend(&self, name: &BackendName) -> Result<Arc<dyn Backend>, UnlockError> {
        let backend = self.backends.get(name).ok_or_else(|| UnlockError::NotFound {
            what: format!("no backend is named {name}"),
        })?;
        check_release_supported(name, &*backend)?;
        let views = self.inventory.backends(self.clock.now());
        check_scan_is_recent(name, views.iter().find(|view| view.name == *name))?;
        Ok(backend)
    }

    pub(super) async fn fresh(
        &self,
        backend: &dyn Backend,
        source: &Source,
        resource: &Resource,
    ) -> Result<Inspection, BackendError> {
        let read = async {
            let inspection = backend.inspect(source, resource).await?;
            let has_generation = |lock: &ObservedLock| !matches!(lock.generation, Reported::Unknown(_));
            if inspection.lock.as_ref().is_none_or(has_generation) {
                return Ok(inspection);
            }
            // The holder was just releasing: after a short delay the lock is free or has its next holder.
            tokio::time::sleep(SECOND_READ_DELAY).await;
            backend.inspect(source, resource).await
        };
        within_limit(read).await
    }
}

/// `read`, or that there is no answer in [`FRESH_READ_TIMEOUT`].
pub(super) async fn within_limit(
    read: impl Future<Output = Result<Inspection, BackendError>>,
) -> Result<Inspection, BackendError> {
    tokio::time::timeout(FRESH_READ_TIMEOUT, read)
        .await
        .unwrap_or(Err(BackendError::NoAnswer {
            after_ms: millis(FRESH_READ_TIMEOUT).unsigned_abs(),
        }))
}

/// Checks that the adapter supports unlocks.
pub(super) fn check_release_supported(name: &BackendName, backend: &dyn Backend) -> Result<(), UnlockError> {
    match no_release(backend) {
        None => Ok(()),
        Some(why) => Err(UnlockError::Unavailable {
            why: format!("no forced unlock on {name}: {why}"),
            remedy: None,
        }),
    }
}

/// Checks that the backend's last scan is recent enough to act on.
pub(super) fn check_scan_is_recent(
    name: &BackendName,
    view: Option<&BackendView>,
) -> Result<(), UnlockError> {
    let Some(view) = view else {
        return Err(UnlockError::NotFound {
            what: format!("no backend is named {name}"),
        });
    };
    match view.status {
        BackendStatus::Live | BackendStatus::Partial => Ok(()),
        BackendStatus::Starting | BackendStatus::Stale | BackendStatus::Down => {
            let remedy = view.fault.as_ref().map(|fault| fault.remedy.clone());
            let why = format!("{name} is {}", status_text(view));
            Err(UnlockError::Stale { why, remedy })
        }
    }
}

/// The status with the fault, for readers of the whole backend.
fn status_text(view: &BackendView) -> String {
    let status = view.status.as_str();
    match &view.fault {
        Some(fault) => format!("{status}: {}", fault.message),
        None => status.to_owned(),
    }
}

/// The error for a backend that does not answer a fresh read.
pub(super) fn no_answer(name: &BackendName, error: &BackendError) -> UnlockError {
    UnlockError::Stale {
        why: format!("{name} could not be read: {error}"),
        remedy: Some(error.remedy()),
    }
}

/// The holding that `expected` names, with its blast radius; or why it cannot be unlocked.
pub(super) fn match_holding(
    inspection: Inspection,
    expected: &Generation,
    before: Option<&Holding>,
) -> Result<(ObservedLock, BlastRadius, Inspection), UnlockError> {
    let before = || before.cloned().map(Box::new);
    let Some(lock) = inspection.lock.clone() else {
        return Err(UnlockError::HolderChanged {
            before: before(),
            now: None,
        });
    };
    match &lock.generation {
        Reported::Value(now) if now == expected => {}
        Reported::Value(_) => {
            return Err(UnlockError::HolderChanged {
                before: before(),
                now: Some(Box::new(Holding::from(&lock))),
            });
        }
        Reported::Unknown(why) | Reported::NotApplicable(why) => {
            return Err(UnlockError::Unavailable {
                why: format!("this grant cannot be distinguished from the next one: {why}"),
                remedy: None,
            });
        }
    }
    match &inspection.blast_radius {
        Reported::Value(radius) => Ok((lock, radius.clone(), inspection)),
        Reported::Unknown(why) | Reported::NotApplicable(why) => Err(UnlockError::BlastRadiusUnknown {
            why: why.clone().into_owned(),
        }),
    }
}

const ACQUIRED_SINCE_SCAN: &str = "it was acquired after the last scan";

/// The observation an intent is bound to. Fields known only from continuous scans come from the inventory, if it has
/// the same holding.
pub(super) fn observed(
    fresh: ObservedLock,
    radius: BlastRadius,
    inspection: Inspection,
    watched: &Lock,
    generation: Generation,
    read_at: chrono::DateTime<chrono::Utc>,
) -> ObservedHolding {
    let is_same = watched.generation.known() == Some(&generation);
    let (remaining_ms, ttl_ms) = match fresh.lifetime {
        Lifetime::Leased { remaining_ms, ttl_ms } => (Reported::Value(remaining_ms), ttl_ms),
        Lifetime::Heartbeat { why, .. } | Lifetime::NoTtl { why } | Lifetime::Session { why } => {
            (Reported::NotApplicable(why.clone()), Reported::NotApplicable(why))
        }
        Lifetime::SessionTtl { ttl_ms, why } => (Reported::Unknown(why), ttl_ms),
        Lifetime::Unknown { why } => (Reported::Unknown(why.clone()), Reported::Unknown(why)),
    };
    let renewal = if is_same {
        watched.renewal.clone()
    } else {
        Reported::unknown(ACQUIRED_SINCE_SCAN)
    };
    let is_silent = watched
        .reasons
        .iter()
        .any(|reason| reason.state == LockState::NotRenewing);
    ObservedHolding {
        owner_id: fresh.owner,
        owner_count: fresh.owner_count,
        lease_id: fresh.lease_id.map(String::from),
        generation,
        fencing_token: fresh.fencing_token,
        acquired_at: fresh.acquired_at,
        held_ms: if is_same {
            watched.held_ms.clone()
        } else {
            Reported::unknown(ACQUIRED_SINCE_SCAN)
        },
        held_at_least_ms: is_same.then_some(watched.held_at_least_ms),
        ttl_ms,
        remaining_ms,
        renewing: renewal.as_ref().map(|_| !is_silent),
        renewal,
        waiters: inspection.waiters,
        quorum: inspection.quorum,
        blast_radius: radius,
        read_at,
    }
}
