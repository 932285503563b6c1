//! Change notifications: one recursive watch per configured path, on a session of its own.
//!
//! A session that ends takes its watches with it, and events during a lost connection are not
//! delivered later. So a lost connection ends the session here: a new one sets the watches again
//! and requests a resync. Servers before 3.6 have no recursive watches: polling finds the changes.

use std::time::Duration;

use domain::backend::WatchState;
use domain::limits::RESOURCE_BYTES_MAX;
use futures::StreamExt;
use futures::stream::{BoxStream, SelectAll};
use zookeeper_client::{AddWatchMode, EventType, PersistentWatcher, SessionState, WatchedEvent};

use super::ZookeeperBackend;
use super::contender::ContenderName;
use super::error::{ZookeeperError, ZookeeperErrorKind};
use super::row;
use super::settings::split;
use crate::Hints;

const BACKOFF_MIN: Duration = Duration::from_millis(200);
const BACKOFF_MAX: Duration = Duration::from_secs(10);
pub(super) const NO_RECURSIVE_WATCHES: &str =
    "this ZooKeeper is older than 3.6 and has no recursive watches; polling finds changes";

type Events = SelectAll<BoxStream<'static, WatchedEvent>>;

impl ZookeeperBackend {
    /// Returns only if the servers have no recursive watches.
    pub(super) async fn watch_sessions(&self, hints: &Hints) {
        let mut backoff = BACKOFF_MIN;
        let mut down_since = None;
        let mut is_first = true;
        loop {
            let why = match self.open_watches().await {
                Ok((_client, events)) => {
                    hints.state(WatchState::Live);
                    if !is_first {
                        hints.relist();
                    }
                    (backoff, down_since) = (BACKOFF_MIN, None);
                    self.listen(events, hints).await
                }
                Err(fault) if fault.kind == ZookeeperErrorKind::Unimplemented => {
                    let why = NO_RECURSIVE_WATCHES.to_owned();
                    hints.state(WatchState::Off { why });
                    return;
                }
                Err(fault) => fault.error.to_string(),
            };
            is_first = false;
            let since = *down_since.get_or_insert_with(|| self.link.clock.now().wall);
            hints.state(WatchState::Reconnecting { since, why });
            tokio::time::sleep(backoff).await;
            backoff = (backoff * 2).min(BACKOFF_MAX);
        }
    }

    /// The session lives as long as its client.
    async fn open_watches(&self) -> Result<(zookeeper_client::Client, Events), ZookeeperError> {
        let timeout = self.link.settings.timeout;
        let no_answer = |_| ZookeeperError::no_answer(self.link.settings.timeout_ms());
        let client = self.link.connect().await?;
        let mut events = SelectAll::new();
        for path in &self.link.settings.paths {
            let watch = client.watch(path, AddWatchMode::PersistentRecursive);
            let watch = tokio::time::timeout(timeout, watch).await.map_err(no_answer)??;
            events.push(stream(watch));
        }
        Ok((client, events))
    }

    /// Listens until the connection or the session ends; returns why.
    async fn listen(&self, mut events: Events, hints: &Hints) -> String {
        while let Some(event) = events.next().await {
            match (event.event_type, event.session_state) {
                (EventType::Session, SessionState::SyncConnected | SessionState::ConnectedReadOnly) => {}
                (EventType::Session, SessionState::Disconnected) => {
                    return "the connection is lost".to_owned();
                }
                (EventType::Session, SessionState::Expired) => return "the session expired".to_owned(),
                (EventType::Session, ended) => return format!("the session ended: {ended}"),
                _ => hint(&event, hints),
            }
        }
        "the watches ended".to_owned()
    }
}

/// Ends after the event that ends the session.
fn stream(watcher: PersistentWatcher) -> BoxStream<'static, WatchedEvent> {
    futures::stream::unfold(Some(watcher), async |watcher| {
        let mut watcher = watcher?;
        let event = watcher.changed().await;
        let is_last = event.event_type == EventType::Session && event.session_state.is_terminated();
        Some((event, (!is_last).then_some(watcher)))
    })
    .boxed()
}

/// A contender concerns its parent; a node that is deleted may have been a lock itself.
fn hint(event: &WatchedEvent, hints: &Hints) {
    if event.path.len() > RESOURCE_BYTES_MAX {
        return;
    }
    if let Some((parent, name)) = split(&event.path)
        && ContenderName::parse(name).is_some()
    {
        hints.changed(row::source(), row::resource(parent));
    }
    if event.event_type == EventType::NodeDeleted {
        hints.changed(row::source(), row::resource(&event.path));
    }
}
