//! Redlock: one lock on N independent nodes. Each key is read on all nodes at once and becomes
//! one row; what its values mean together is [`domain::quorum`].
//!
//! **Invariant:** a row without a quorum is delivered only after two equal readings: acquires
//! and releases go from node to node, and a reading in between looks like a split.
//!
//! **Invariant:** a key that no reachable node has is gone only while fewer than a quorum of the
//! nodes is silent: a held lock is then on at least one node that answers.

mod confirm;
mod detail;
mod merge;
mod node_reads;
mod quorum_history;
mod release;
mod scan;

use std::collections::{HashMap, HashSet};

use domain::names::{Resource, Source};
use domain::quorum::quorum_of;
use parking_lot::Mutex;

use self::node_reads::Connections;
use self::quorum_history::QuorumHistory;
use super::connection_config;
use super::lookup;
use super::node::Node;
use super::settings::Settings;
use super::watch::{self, Watched};
use crate::error::misconfigured;
use crate::part_hints::PartHints;
use crate::{BackendError, Batch, Hints, Sink};
use config::BackendConfig;
use config::redis::RedisConfig;

pub(super) use detail::inspect;
pub(super) use release::{HOW, release};
pub(super) use scan::observe;

pub(super) struct Redlock {
    pub(super) nodes: Vec<Node>,
    source: Source,
    history: Mutex<QuorumHistory>,
}

impl Redlock {
    pub(super) fn new(config: &BackendConfig, redis: &RedisConfig) -> Result<Self, BackendError> {
        let targets = connection_config::nodes(config, redis)?;
        if targets.len() < 3 || targets.len().is_multiple_of(2) {
            return Err(misconfigured(
                format!("`urls` has {} nodes, and mode is \"redlock\"", targets.len()),
                "Name all nodes: an odd number, at least 3.".to_owned(),
            ));
        }
        Ok(Self {
            nodes: targets
                .into_iter()
                .map(|(target, unlocks)| Node::new(target, unlocks))
                .collect(),
            source: Source::fixed("redlock"),
            history: Mutex::default(),
        })
    }

    pub(super) fn quorum(&self) -> usize {
        quorum_of(self.nodes.len())
    }

    pub(super) fn address(&self) -> String {
        let names: Vec<&str> = self.nodes.iter().map(Node::name).collect();
        format!("{} nodes: {}", names.len(), names.join(", "))
    }

    pub(super) async fn watch(&self, settings: &Settings, hints: Hints) {
        let names = self.nodes.iter().map(Node::name);
        let watches = PartHints::of_parts(&hints, names)
            .into_iter()
            .zip(&self.nodes)
            .map(|(hints, node)| {
                let watched = Watched {
                    settings,
                    node,
                    source: &self.source,
                };
                watch::run(watched, hints)
            });
        futures::future::join_all(watches).await;
    }
}

/// Reads the named keys on all nodes.
pub(super) async fn refresh(
    redlock: &Redlock,
    settings: &Settings,
    names: &[(Source, Resource)],
    sink: &mut dyn Sink,
) -> Result<(), BackendError> {
    let resources = lookup::distinct(names);
    if resources.is_empty() {
        return Ok(());
    }
    let connections = Connections::open(settings, &redlock.nodes, |node| &node.query_link).await?;
    for chunk in resources.chunks(super::limits::NAMES_PER_READ) {
        let keys = lookup::our_keys(settings, chunk);
        let read = confirm::read_once(redlock, settings, &connections, keys, &HashMap::new()).await?;
        let mut pages = vec![read.page];
        let deliver = |page| pages.push(page);
        let in_motion = confirm::confirm(redlock, settings, &connections, read.unconfirmed, deliver).await?;
        let mut left: HashSet<&Resource> = chunk.iter().collect();
        for lock in pages.iter().flat_map(|page| &page.locks) {
            left.remove(&lock.resource);
        }
        left.retain(|resource| !in_motion.contains(resource.as_bytes()));
        let is_decided = connections.unanswered_count() < redlock.quorum();
        let missing = left.into_iter().filter(|_| is_decided);
        let mut missing: Vec<_> = missing
            .map(|resource| (redlock.source.clone(), resource.clone()))
            .collect();
        for page in pages {
            sink.accept(Batch {
                sent_at: page.sent_at,
                locks: page.locks,
                gone: std::mem::take(&mut missing),
            });
        }
    }
    Ok(())
}
