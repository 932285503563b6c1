//! Reads locks by name, after change notifications.

use domain::names::{Resource, Source};
use futures::StreamExt;

use super::ZookeeperBackend;
use super::connection::IN_FLIGHT_MAX;
use super::error::ZookeeperError;
use super::node::{self, Found};
use super::row;
use crate::{BackendError, Batch, Sink};

impl ZookeeperBackend {
    /// The node of a name; names outside the configured paths are missing: they are not
    /// observed. As recent as the last `sync` of the link.
    pub(super) async fn find(&self, source: &Source, resource: &Resource) -> Result<Found, ZookeeperError> {
        let path = std::str::from_utf8(resource.as_bytes()).ok();
        match path.filter(|path| *source == row::source() && self.link.settings.covers(path)) {
            None => Ok(Found::Missing),
            Some(path) => Ok(node::read(&self.link, &self.cache, path).await?.found),
        }
    }

    /// Reads these locks and delivers them; missing ones are delivered as gone.
    ///
    /// # Errors
    /// The first lock that could not be read. The others are delivered.
    pub(super) async fn refresh_named(
        &self,
        names: &[(Source, Resource)],
        sink: &mut dyn Sink,
    ) -> Result<(), BackendError> {
        // The notification may be from the session of the watches, on another server.
        self.link.sync().await.map_err(|fault| fault.error)?;
        let started = self.link.clock.tick();
        let reads = futures::stream::iter(names.to_vec()).map(|(source, resource)| async move {
            let found = self.find(&source, &resource).await;
            (source, resource, found)
        });
        let mut reads = reads.buffer_unordered(IN_FLIGHT_MAX);
        let mut refreshed = Ok(());
        // One by one: a read that gets no answer delays none of the others.
        while let Some((source, resource, found)) = reads.next().await {
            let mut batch = Batch {
                sent_at: started,
                locks: Vec::new(),
                gone: Vec::new(),
            };
            match found {
                Ok(Found::Lock(node)) => batch.locks.push(node.lock()),
                // A configured path may be no lock, or a held one: the scan reports the error.
                Ok(Found::Hidden(_)) if self.link.settings.is_configured(&resource.text()) => {}
                Ok(Found::Hidden(_)) => batch.locks.push(row::hidden(&resource.text())),
                Ok(Found::Free | Found::Missing) => batch.gone.push((source, resource)),
                Err(fault) => refreshed = refreshed.and(Err(fault.error)),
            }
            sink.accept(batch);
        }
        refreshed
    }
}
