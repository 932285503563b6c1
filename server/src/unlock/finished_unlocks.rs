//! Finished forced unlocks, for charts, lists and the inventory.

use std::sync::atomic::Ordering;

use domain::access::Permission;
use domain::duration::millis;
use domain::names::{BackendName, Resource};
use domain::unlock::Unlock;

use super::Unlocks;
use super::limits::{ACTED_PAGE, RELEASES_OVERLAP};
use super::store::{self, Value};
use crate::identity::Principal;
use inventory::{FORCE_RELEASES_MAX, ForceRelease};

impl Unlocks {
    /// Passes stored forced releases to the inventory: those of earlier processes, of other replicas, and those
    /// whose answer was lost.
    ///
    /// # Errors
    /// The store does not answer.
    pub(super) async fn pass_on_releases(&self) -> Result<(), sqlx::Error> {
        let newest = self.newest_release.load(Ordering::Relaxed);
        let from = newest.saturating_sub(millis(RELEASES_OVERLAP));
        let most = i64::try_from(FORCE_RELEASES_MAX).unwrap_or(i64::MAX);
        let filter = "state = 'released' AND ended_at >= $1 ORDER BY ended_at DESC LIMIT $2";
        let found = store::select(self.db(), filter, &[Value::Int(from), Value::Int(most)]).await?;
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
            self.inventory.record_force_release(&unlock.backend, release);
        }
        Ok(())
    }

    /// Forced unlocks that released this lock, newest first.
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
        let filter =
            "resource = $1 AND backend = $2 AND state = 'released' ORDER BY created_at DESC LIMIT $3";
        let found = store::select(self.db(), filter, &values).await?;
        Ok(found.into_iter().map(|row| row.unlock).collect())
    }

    /// Executed unlocks of visible locks between two times in milliseconds since 1970, newest first, limited. SQL
    /// cannot apply a scope, so pages of [`ACTED_PAGE`] rows are read until enough are found.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn acted(
        &self,
        who: &Principal,
        from: i64,
        until: i64,
        most: usize,
    ) -> Result<Vec<Unlock>, sqlx::Error> {
        let filter = "acted_at >= $1 AND (acted_at < $2 OR (acted_at = $2 AND id < $3))
            ORDER BY acted_at DESC, id DESC LIMIT $4";
        let page_size = i64::from(ACTED_PAGE);
        let (mut acted, mut before) = (Vec::new(), (until, String::new()));
        loop {
            let values = [
                Value::Int(from),
                Value::Int(before.0),
                Value::Text(&before.1),
                Value::Int(page_size),
            ];
            let page = store::select(self.db(), filter, &values).await?;
            let Some(last) = page.last().map(|row| &row.unlock) else {
                return Ok(acted);
            };
            let acted_at = last.acted_at.unwrap_or(last.created_at);
            before = (acted_at.timestamp_millis(), last.id.clone());
            let visible = page
                .into_iter()
                .map(|row| row.unlock)
                .filter(|unlock| who.may(Permission::View, &unlock.backend, &unlock.resource.text()));
            acted.extend(visible.take(most - acted.len()));
            if acted.len() == most {
                return Ok(acted);
            }
        }
    }
}
