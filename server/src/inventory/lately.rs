//! What was seen lately of one lock, whether or not it is held.

use domain::detail::SeenEvent;
use domain::names::{BackendName, Resource, Source};

use super::Inventory;
use super::query::SEEN_MAX;

impl Inventory {
    /// What was seen, newest first, and on which source.
    pub fn seen_lately(
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
        let seen = state.recent.of(number, resource.as_bytes(), SEEN_MAX);
        let info = state.shard.sources.get(usize::from(number))?;
        (!seen.is_empty()).then(|| (info.source.clone(), seen))
    }
}
