//! LISTEN on the channels of the optional triggers. A notification names a changed lock;
//! notifications between sessions are lost, so every new session requests a resync.

use std::time::Duration;

use domain::backend::WatchState;
use domain::names::{Resource, Source};
use sqlx::Executor;
use sqlx::postgres::{PgListener, PgNotification, PgPoolOptions};
use tokio::time::{sleep, timeout};

use super::PostgresBackend;
use super::error;
use crate::{BackendError, Hints};

pub(super) const OFF: &str =
    "polled; docs/backends/postgres.md has the optional trigger that announces changes";

/// Interval of checks for a silently dead connection.
const SILENCE_MAX: Duration = Duration::from_secs(30);
const BACKOFF_FIRST: Duration = Duration::from_millis(200);
const BACKOFF_MAX: Duration = Duration::from_secs(10);

pub(super) async fn watch(backend: &PostgresBackend, hints: Hints) {
    if backend.tables.iter().all(|table| table.notify.is_none()) {
        hints.state(WatchState::Off { why: OFF.to_owned() });
        return;
    }
    let mut backoff = BACKOFF_FIRST;
    let mut since = None;
    loop {
        let error = match listener(backend).await {
            Ok(listener) => {
                backoff = BACKOFF_FIRST;
                since = None;
                hints.relist();
                hints.state(WatchState::Live);
                listen(backend, listener, &hints).await
            }
            Err(error) => error,
        };
        let since = *since.get_or_insert(backend.clock.now().wall);
        hints.state(WatchState::Reconnecting {
            since,
            why: error.to_string(),
        });
        sleep(backoff).await;
        backoff = (backoff * 2).min(BACKOFF_MAX);
    }
}

async fn listener(backend: &PostgresBackend) -> Result<PgListener, BackendError> {
    let limit = backend.links.timeout();
    let no_answer = |_| BackendError::NoAnswer {
        after_ms: backend.links.timeout_ms(),
    };
    // The pool would retry a refused connection until its timeout; one short connection returns
    // the cause at once.
    drop(backend.links.acquire().await?);
    let opening = Box::pin(async {
        let relay = backend.links.relay().await?;
        let options = relay
            .as_ref()
            .map_or(&backend.links.settings.options, |relay| &relay.options);
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .acquire_timeout(limit)
            .idle_timeout(None);
        let pool = pool.max_lifetime(None).connect_lazy_with(options.clone());
        let mut listener = PgListener::connect_with(&pool).await?;
        listener.eager_reconnect(false);
        let channels: Vec<&str> = backend
            .tables
            .iter()
            .filter_map(|table| table.notify.as_deref())
            .collect();
        listener.listen_all(channels).await?;
        if let Some(relay) = relay {
            relay.connected();
        }
        Ok(listener)
    });
    timeout(limit, opening)
        .await
        .map_err(no_answer)?
        .map_err(error::from_connection)
}

/// Forwards notifications until the session ends, and returns how it ended.
async fn listen(backend: &PostgresBackend, mut listener: PgListener, hints: &Hints) -> BackendError {
    let limit = backend.links.timeout();
    loop {
        match timeout(SILENCE_MAX, listener.try_recv()).await {
            Ok(Ok(Some(notification))) => pass_on(backend, &notification, hints),
            Ok(Ok(None)) => {
                return BackendError::Unreachable {
                    detail: "the listening session ended".to_owned(),
                };
            }
            Ok(Err(error)) => return error::from_connection(error),
            Err(_) => match timeout(limit, listener.execute("SELECT 1")).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => return error::from_connection(error),
                Err(_) => {
                    return BackendError::NoAnswer {
                        after_ms: backend.links.timeout_ms(),
                    };
                }
            },
        }
    }
}

/// The payload is the resource; an empty one means that something changed.
fn pass_on(backend: &PostgresBackend, notification: &PgNotification, hints: &Hints) {
    if notification.payload().is_empty() {
        hints.relist();
        return;
    }
    let resource = Resource::from(notification.payload());
    let sources: Vec<Source> = backend
        .tables
        .iter()
        .filter(|table| table.notify.as_deref() == Some(notification.channel()))
        .map(|table| table.source.clone())
        .collect();
    for source in sources {
        hints.changed(source, resource.clone());
    }
}
