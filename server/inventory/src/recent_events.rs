//! Recent events of one lock, held or not.

use domain::lock_detail::SeenEvent;
use domain::names::{BackendName, Resource, Source};

use super::Inventory;
use super::query::SEEN_MAX;

impl Inventory {
    /// Events, newest first, with their source.
    pub fn recent_events_of(
        &self,
        backend: &BackendName,
        source: Option<&Source>,
        resource: &Resource,
    ) -> Option<(Source, Vec<SeenEvent>)> {
        let slot = self.slot(backend)?;
        let state = slot.read();
        let number = match source {
            Some(source) => state.shard.source_number(source)?,
            None => state.recent.newest_of_name(resource.as_bytes())?.source,
        };
        let seen = state.recent.for_lock(number, resource.as_bytes(), SEEN_MAX);
        let info = state.shard.sources.get(usize::from(number))?;
        (!seen.is_empty()).then(|| (info.source.clone(), seen))
    }
}
