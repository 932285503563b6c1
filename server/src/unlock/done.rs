//! Forced unlocks that are over, for charts and lists, and for the inventory.

use std::sync::atomic::Ordering;

use domain::names::{BackendName, Resource};
use domain::unlock::Unlock;

use super::limits::RELEASES_OVERLAP;
use super::store::{self, Value};
use super::{Unlocks, tending};
use crate::inventory::{FORCE_RELEASES_MAX, ForceRelease};

impl Unlocks {
    /// Passes forced releases that are in the store to the inventory: those of before this process, of other servers, and
    /// those whose answer was lost.
    ///
    /// # Errors
    /// The store does not answer.
    pub(super) async fn pass_on_releases(&self) -> Result<(), sqlx::Error> {
        let newest = self.newest_release.load(Ordering::Relaxed);
        let from = newest.saturating_sub(tending::ms(RELEASES_OVERLAP));
        let most = i64::try_from(FORCE_RELEASES_MAX).unwrap_or(i64::MAX);
        let wanted = "state = 'released' AND ended_at >= $1 ORDER BY ended_at DESC LIMIT $2";
        let found = store::select(self.db(), wanted, &[Value::Int(from), Value::Int(most)]).await?;
        for unlock in found.into_iter().map(|row| row.unlock) {
            let Some(at) = unlock.ended_at else { continue };
            self.newest_release
                .fetch_max(at.timestamp_millis(), Ordering::Relaxed);
            let release = ForceRelease {
                source: unlock.source,
                resource: unlock.resource,
                generation: unlock.observed.generation,
                at,
            };
            self.inventory.note_force_release(&unlock.backend, release);
        }
        Ok(())
    }

    /// Those that released this lock, newest first.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn released(
        &self,
        backend: &BackendName,
        resource: &Resource,
        most: u32,
    ) -> Result<Vec<Unlock>, sqlx::Error> {
        let json = serde_json::to_string(resource).map_err(|error| sqlx::Error::Encode(Box::new(error)))?;
        let values = [
            Value::Text(&json),
            Value::Text(backend.as_str()),
            Value::Int(i64::from(most)),
        ];
        let wanted =
            "resource = $1 AND backend = $2 AND state = 'released' ORDER BY created_at DESC LIMIT $3";
        let found = store::select(self.db(), wanted, &values).await?;
        Ok(found.into_iter().map(|row| row.unlock).collect())
    }

    /// Those that were acted on between two moments, milliseconds since 1970, newest first; of whatever lock.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn acted(&self, from: i64, until: i64, most: u32) -> Result<Vec<Unlock>, sqlx::Error> {
        let values = [Value::Int(from), Value::Int(until), Value::Int(i64::from(most))];
        let wanted = "acted_at >= $1 AND acted_at < $2 ORDER BY acted_at DESC LIMIT $3";
        let found = store::select(self.db(), wanted, &values).await?;
        Ok(found.into_iter().map(|row| row.unlock).collect())
    }
}
