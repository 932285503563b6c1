//! Holdings that were released by force, and whose record the backend keeps with its expiry in the past (a lease table whose
//! forced release ends the expiry). Such a record is a free lock, not an expired one.
//!
//! **Invariant:** a record counts as free only while it is the released holding, unchanged: the same generation, with no expiry
//! after the release.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use chrono::{DateTime, TimeDelta, Utc};
use domain::generation::Generation;
use domain::names::{BackendName, Resource, Source};
use domain::observation::{Lifetime, ObservedLock};

use super::Inventory;
use crate::backends::Batch;

/// Releases that are remembered; beyond that the oldest is forgotten, and its record is an expired lock.
pub const FORCE_RELEASES_MAX: usize = 10_000;
/// By how much the expiry may seem later than the release: clocks of servers differ.
const CLOCKS_DIFFER: TimeDelta = TimeDelta::seconds(10);

/// One forced release.
#[derive(Debug, Clone)]
pub struct ForceRelease {
    pub source: Source,
    pub resource: Resource,
    /// The holding that it ended.
    pub generation: Generation,
    /// When it was done, by our wall clock.
    pub at: DateTime<Utc>,
}

#[derive(Debug, Default)]
pub(super) struct ForceReleases(RwLock<HashMap<Name, Ended>>);

type Name = (BackendName, Source, Resource);

#[derive(Debug)]
struct Ended {
    generation: Generation,
    at: DateTime<Utc>,
}

impl ForceReleases {
    pub(super) fn note(&self, backend: &BackendName, release: ForceRelease) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let name = (backend.clone(), release.source, release.resource);
        if all.get(&name).is_some_and(|known| known.at > release.at) {
            return;
        }
        if all.len() >= FORCE_RELEASES_MAX && !all.contains_key(&name) {
            let oldest = all.iter().min_by_key(|(_, ended)| ended.at);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                all.remove(&oldest);
            }
        }
        let ended = Ended {
            generation: release.generation,
            at: release.at,
        };
        all.insert(name, ended);
    }

    /// Takes the records of released holdings out of a batch that was read at `read_at`, and answers their names.
    pub(super) fn take_from(
        &self,
        backend: &BackendName,
        batch: &mut Batch,
        read_at: DateTime<Utc>,
    ) -> Vec<(Source, Resource)> {
        if !batch.locks.iter().any(is_expired) {
            return Vec::new();
        }
        let free = |lock: &mut ObservedLock| self.is_free(backend, lock, read_at);
        let free = batch.locks.extract_if(.., free);
        free.map(|lock| (lock.source, lock.resource)).collect()
    }

    fn is_free(&self, backend: &BackendName, lock: &ObservedLock, read_at: DateTime<Utc>) -> bool {
        let Lifetime::Leased { remaining_ms, .. } = lock.lifetime else {
            return false;
        };
        if remaining_ms > 0 {
            return false;
        }
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let name = (backend.clone(), lock.source.clone(), lock.resource.clone());
        let Some(ended) = all.get(&name) else {
            return false;
        };
        let expired_at =
            TimeDelta::try_milliseconds(remaining_ms).and_then(|ago| read_at.checked_add_signed(ago));
        lock.generation.known() == Some(&ended.generation)
            && expired_at.is_none_or(|expired_at| expired_at <= ended.at + CLOCKS_DIFFER)
    }
}

fn is_expired(lock: &ObservedLock) -> bool {
    matches!(
        lock.lifetime,
        Lifetime::Leased {
            remaining_ms: ..=0,
            ..
        }
    )
}

impl Inventory {
    /// The record of this holding, should it stay in the backend with its expiry in the past, is a free lock.
    pub fn note_force_release(&self, backend: &BackendName, release: ForceRelease) {
        self.force_releases.note(backend, release);
    }

    /// Whether a lock that was read at `read_at` is the record of a holding that was released by force.
    pub fn is_force_released(
        &self,
        backend: &BackendName,
        lock: &ObservedLock,
        read_at: DateTime<Utc>,
    ) -> bool {
        self.force_releases.is_free(backend, lock, read_at)
    }
}
