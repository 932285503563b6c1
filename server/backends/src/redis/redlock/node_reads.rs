//! Reads the same keys on all nodes at once.

use std::collections::HashMap;

use domain::observation::{Lifetime, ObservedLock};
use domain::tick::Tick;
use futures::future::join_all;
use parking_lot::Mutex;

use crate::BackendError;
use crate::redis::connection::{Link, RedisConnection};
use crate::redis::error;
use crate::redis::node::Node;
use crate::redis::page::{self, Page, RedisKey};
use crate::redis::scan_warnings::Troubles;
use crate::redis::settings::Settings;
use config::redis::RedisMode;

/// Connections to all nodes. A node that fails is left out from then on.
pub(super) struct Connections<'a> {
    pub(super) nodes: &'a [Node],
    link: fn(&Node) -> &Link,
    connections: Vec<Mutex<Option<RedisConnection>>>,
}

impl<'a> Connections<'a> {
    /// # Errors
    /// No node answers: the error of the first.
    pub(super) async fn open(
        settings: &Settings,
        nodes: &'a [Node],
        link: fn(&Node) -> &Link,
    ) -> Result<Self, BackendError> {
        let opened = nodes
            .iter()
            .map(|node| node.connection(link(node), settings.poll_interval));
        let mut first_error = None;
        let connections = join_all(opened)
            .await
            .into_iter()
            .map(|connection| {
                connection
                    .map_err(|error| first_error.get_or_insert(error).clone())
                    .ok()
            })
            .map(Mutex::new)
            .collect();
        let opened = Self {
            nodes,
            link,
            connections,
        };
        match first_error {
            Some(error) if opened.unanswered_count() == nodes.len() => Err(error),
            _ => Ok(opened),
        }
    }

    pub(super) fn connection(&self, index: usize) -> Option<RedisConnection> {
        self.connections
            .get(index)
            .and_then(|connection| connection.lock().clone())
    }

    /// Leaves the node out.
    pub(super) async fn fail(&self, index: usize, error: &BackendError) {
        let Some(node) = self.nodes.get(index) else { return };
        node.failed(error);
        let connection = self
            .connections
            .get(index)
            .and_then(|connection| connection.lock().take());
        if let Some(connection) = connection {
            (self.link)(node).discard(&connection).await;
        }
    }

    /// Number of nodes that do not answer.
    pub(super) fn unanswered_count(&self) -> usize {
        self.connections
            .iter()
            .filter(|connection| connection.lock().is_none())
            .count()
    }

    pub(super) fn is_unanswered(&self, index: usize) -> bool {
        self.connection(index).is_none()
    }
}

/// One key on one node.
#[derive(Debug, Clone)]
pub(super) enum NodeValue {
    Unreachable,
    Empty,
    Value(Box<ObservedLock>),
}

/// One key on all nodes, in configured order.
#[derive(Debug)]
pub(super) struct KeyReplies {
    pub(super) key: RedisKey,
    pub(super) replies: Vec<NodeValue>,
}

/// Several keys on all nodes.
pub(super) struct NodeReads {
    /// Remaining times count from here.
    pub(super) sent_at: Tick,
    pub(super) keys: Vec<KeyReplies>,
    pub(super) troubles: Troubles,
    /// Duration of the reading per node.
    pub(super) answer_ms: Vec<Option<i64>>,
}

/// One page, and when it had arrived.
type ReadPage = (Page, Tick);

/// # Errors
/// No node answers any more.
pub(super) async fn read(
    settings: &Settings,
    connections: &Connections<'_>,
    keys: Vec<RedisKey>,
) -> Result<NodeReads, BackendError> {
    let pages = read_pages(settings, connections, &keys).await?;
    let sent_at = pages.iter().flatten().map(|(page, _)| page.sent_at).min();
    let sent_at = sent_at.unwrap_or_else(|| settings.clock.tick());
    let empty = |page: &Option<ReadPage>| {
        if page.is_some() {
            NodeValue::Empty
        } else {
            NodeValue::Unreachable
        }
    };
    let replies: Vec<NodeValue> = pages.iter().map(empty).collect();
    let places: HashMap<RedisKey, usize> = keys.iter().cloned().zip(0..).collect();
    let mut all = NodeReads {
        sent_at,
        keys: keys
            .into_iter()
            .map(|key| KeyReplies {
                key,
                replies: replies.clone(),
            })
            .collect(),
        troubles: Troubles::default(),
        answer_ms: Vec::with_capacity(pages.len()),
    };
    for (index, page) in pages.into_iter().enumerate() {
        let took_ms = page.as_ref().map(|(page, at)| at.since(page.sent_at));
        all.answer_ms.push(took_ms);
        if let Some((page, _)) = page {
            all.place(index, page, &places);
        }
    }
    Ok(all)
}

/// The same keys of every node that answers.
async fn read_pages(
    settings: &Settings,
    connections: &Connections<'_>,
    keys: &[RedisKey],
) -> Result<Vec<Option<ReadPage>>, BackendError> {
    let reads = (0..connections.nodes.len()).map(|index| async move {
        let connection = connections.connection(index)?;
        let page = page::read(&connection, &settings.rows, &settings.clock, keys.to_vec()).await;
        Some((page, settings.clock.tick()))
    });
    let mut pages = Vec::with_capacity(connections.nodes.len());
    let mut last_error = None;
    for (index, read) in join_all(reads).await.into_iter().enumerate() {
        let page = match read {
            None => None,
            Some((Ok(page), at)) if page.moved.is_empty() => Some((page, at)),
            Some((Ok(_), _)) => return Err(error::other_mode("cluster", RedisMode::Redlock)),
            Some((Err(error), _)) => {
                connections.fail(index, &error).await;
                last_error = Some(error);
                None
            }
        };
        if let (Some((_, at)), Some(node)) = (&page, connections.nodes.get(index)) {
            node.answered(*at);
        }
        pages.push(page);
    }
    if pages.iter().all(Option::is_none) {
        return Err(last_error.unwrap_or_else(|| error::no_answer(settings.timeout)));
    }
    Ok(pages)
}

impl NodeReads {
    /// Puts the locks of one node at its index, with times that count from `sent_at`.
    fn place(&mut self, index: usize, page: Page, places: &HashMap<RedisKey, usize>) {
        self.troubles.merge(page.troubles);
        let later_ms = page.sent_at.since(self.sent_at);
        for mut lock in page.locks {
            if let Lifetime::Leased { remaining_ms, .. } = &mut lock.lifetime {
                *remaining_ms += later_ms;
            }
            let place = places.get(lock.resource.as_bytes());
            let reply = place
                .and_then(|at| self.keys.get_mut(*at))
                .and_then(|key| key.replies.get_mut(index));
            if let Some(reply) = reply {
                *reply = NodeValue::Value(Box::new(lock));
            }
        }
    }
}
