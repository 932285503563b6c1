//! One server with its connections: for scans, for single reads, for forced unlocks.

use std::sync::Arc;
use std::time::Duration;

use domain::tick::Tick;
use parking_lot::Mutex;

use super::connection::{Link, RedisConnection};
use super::connection_config::{Servers, Target};
use crate::BackendError;

pub(super) struct Node {
    pub(super) target: Arc<Target>,
    /// Two connections, so that reading one lock does not wait behind the pages of a scan.
    pub(super) scan_link: Link,
    pub(super) query_link: Link,
    /// The account of forced unlocks, if configured.
    pub(super) unlocks: Option<Link>,
    /// Last state of the watch, for the Backends page.
    pub(super) watching: Mutex<String>,
    health: Mutex<Health>,
}

/// What is known about a node between two scans.
#[derive(Debug, Clone, Default)]
pub(super) struct Health {
    pub(super) answered_at: Option<Tick>,
    /// Why it did not answer last.
    pub(super) fault: Option<String>,
    pub(super) clock_offset_ms: Option<i64>,
}

impl Node {
    pub(super) fn new(target: Target, unlocks: Option<Target>) -> Self {
        let target = Arc::new(target);
        Self {
            scan_link: Link::new(Arc::clone(&target)),
            query_link: Link::new(Arc::clone(&target)),
            unlocks: unlocks.map(|target| Link::new(Arc::new(target))),
            target,
            watching: Mutex::new(
                "keyspace notifications, where the server sends them; not connected yet".to_owned(),
            ),
            health: Mutex::new(Health::default()),
        }
    }

    /// A node whose address another server reported.
    pub(super) fn at(servers: &Servers, host: &str, port: u16) -> Result<Self, BackendError> {
        let unlocks = servers.unlocking(host, port).transpose()?;
        Ok(Self::new(servers.watching(host, port)?, unlocks))
    }

    /// `host:port`.
    pub(super) fn name(&self) -> &str {
        &self.target.name
    }

    pub(super) fn health(&self) -> Health {
        self.health.lock().clone()
    }

    pub(super) fn answered(&self, at: Tick) {
        let mut health = self.health.lock();
        health.answered_at = Some(at);
        health.fault = None;
    }

    pub(super) fn failed(&self, error: &BackendError) {
        self.health.lock().fault = Some(error.to_string());
    }

    pub(super) fn clock_read(&self, offset_ms: i64) {
        self.health.lock().clock_offset_ms = Some(offset_ms);
    }

    /// A connection of one of several nodes: a node that hangs must not make the others' data
    /// old, so it gets less than one poll interval, and half of that after a failure.
    pub(super) async fn connection(
        &self,
        link: &Link,
        poll_interval: Duration,
    ) -> Result<RedisConnection, BackendError> {
        let timeout = if self.health.lock().fault.is_some() {
            poll_interval / 2
        } else {
            poll_interval
        };
        let timeout = timeout
            .max(super::limits::NODE_TIMEOUT_MIN)
            .min(self.target.timeout);
        let connection = tokio::time::timeout(timeout, link.connection())
            .await
            .unwrap_or_else(|_| Err(super::error::no_answer(timeout)));
        if let Err(error) = &connection {
            self.failed(error);
        }
        connection
    }
}
