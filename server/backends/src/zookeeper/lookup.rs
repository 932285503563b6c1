//! Reads locks by name, after change notifications.

use domain::names::{Resource, Source};
use futures::{StreamExt, TryStreamExt};

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
    pub(super) async fn refresh_named(
        &self,
        names: &[(Source, Resource)],
        sink: &mut dyn Sink,
    ) -> Result<(), BackendError> {
        // The notification may be from the session of the watches, on another server.
        self.link.sync().await.map_err(|fault| fault.error)?;
        let started = self.link.clock.tick();
        let reads = futures::stream::iter(names.to_vec()).map(|(source, resource)| async move {
            let found = self.find(&source, &resource).await?;
            Ok::<_, ZookeeperError>((source, resource, found))
        });
        let reads: Vec<(Source, Resource, Found)> = reads
            .buffer_unordered(IN_FLIGHT_MAX)
            .try_collect()
            .await
            .map_err(|fault: ZookeeperError| fault.error)?;
        let mut batch = Batch {
            sent_at: started,
            locks: Vec::new(),
            gone: Vec::new(),
        };
        for (source, resource, found) in reads {
            match found {
                Found::Lock(node) => batch.locks.push(node.lock()),
                // A configured path may be no lock, or a held one: the scan reports the error.
                Found::Hidden(_) if self.link.settings.is_configured(&resource.text()) => {}
                Found::Hidden(_) => batch.locks.push(row::hidden(&resource.text())),
                Found::Free | Found::Missing => batch.gone.push((source, resource)),
            }
        }
        sink.accept(batch);
        Ok(())
    }
}
