//! Force-released holdings whose record the backend keeps with an expiry in the past (a lease
//! table whose release sets the expiry). Such a record is a free lock, not an expired one.
//!
//! **Invariant:** a record counts as free only while it is the released holding, unchanged: the
//! same generation, with no expiry after the release.

use std::collections::HashMap;

use chrono::{DateTime, TimeDelta, Utc};
use domain::generation::Generation;
use domain::names::{BackendName, Resource, Source};
use domain::observation::{Lifetime, ObservedLock};
use parking_lot::RwLock;

use super::Inventory;
use backends::Batch;

/// Releases stored; beyond that the oldest is evicted, and its record counts as an expired
/// lock.
pub const FORCE_RELEASES_MAX: usize = 10_000;
/// Tolerance of the comparison of expiry and release time: clocks of servers differ.
const CLOCKS_DIFFER: TimeDelta = TimeDelta::seconds(10);

/// One forced release.
#[derive(Debug, Clone)]
pub struct ForceRelease {
    pub source: Source,
    pub resource: Resource,
    /// The holding that it ended.
    pub generation: Generation,
    /// Time of the release, by our wall clock.
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
    pub(super) fn record(&self, backend: &BackendName, release: ForceRelease) {
        let mut releases = self.0.write();
        let name = (backend.clone(), release.source, release.resource);
        if releases.get(&name).is_some_and(|known| known.at > release.at) {
            return;
        }
        if releases.len() >= FORCE_RELEASES_MAX && !releases.contains_key(&name) {
            let oldest = releases.iter().min_by_key(|(_, ended)| ended.at);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                releases.remove(&oldest);
            }
        }
        let ended = Ended {
            generation: release.generation,
            at: release.at,
        };
        releases.insert(name, ended);
    }

    /// Removes the records of released holdings from a batch read at `read_at`, and returns
    /// their names.
    pub(super) fn take_from(
        &self,
        backend: &BackendName,
        batch: &mut Batch,
        read_at: DateTime<Utc>,
    ) -> Vec<(Source, Resource)> {
        if !batch.locks.iter().any(ObservedLock::is_expired) {
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
        let releases = self.0.read();
        let name = (backend.clone(), lock.source.clone(), lock.resource.clone());
        let Some(ended) = releases.get(&name) else {
            return false;
        };
        let expired_at =
            TimeDelta::try_milliseconds(remaining_ms).and_then(|ago| read_at.checked_add_signed(ago));
        lock.generation.known() == Some(&ended.generation)
            && expired_at.is_none_or(|expired_at| expired_at <= ended.at + CLOCKS_DIFFER)
    }
}

impl Inventory {
    /// Counts the record of this holding as a free lock if it stays in the backend with its
    /// expiry in the past.
    pub fn record_force_release(&self, backend: &BackendName, release: ForceRelease) {
        self.force_releases.record(backend, release);
    }

    /// Whether a lock read at `read_at` is the record of a force-released holding.
    pub fn is_force_released(
        &self,
        backend: &BackendName,
        lock: &ObservedLock,
        read_at: DateTime<Utc>,
    ) -> bool {
        self.force_releases.is_free(backend, lock, read_at)
    }
}
