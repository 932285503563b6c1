//! The servers of a backend by `mode`, and the calls of the port on each.

use config::BackendConfig;
use config::redis::{RedisConfig, RedisMode};
use domain::force_release::Release;
use domain::generation::Generation;
use domain::names::{Resource, Source};
use domain::observation::Inspection;

use super::cluster::{self, Cluster};
use super::connection_config;
use super::node::Node;
use super::redlock::{self, Redlock};
use super::release::{self, Guard};
use super::sentinel::{self, Sentinel};
use super::settings::Settings;
use super::watch::{self, Watched};
use super::{RedisBackend, lookup, probe, scan};
use crate::error::misconfigured;
use crate::part_hints::PartHints;
use crate::{BackendError, Budget, Hints, Pass, Probe, Sink};

pub(super) enum Topology {
    Standalone(Box<Node>),
    Sentinel(Box<Sentinel>),
    Cluster(Box<Cluster>),
    Redlock(Box<Redlock>),
}

impl Topology {
    pub(super) fn new(config: &BackendConfig, redis: &RedisConfig) -> Result<Self, BackendError> {
        match redis.mode {
            RedisMode::Standalone => standalone(config, redis).map(|node| Self::Standalone(Box::new(node))),
            RedisMode::Sentinel => {
                Sentinel::new(config, redis).map(|topology| Self::Sentinel(Box::new(topology)))
            }
            RedisMode::Cluster => {
                Cluster::new(config, redis).map(|topology| Self::Cluster(Box::new(topology)))
            }
            RedisMode::Redlock => {
                Redlock::new(config, redis).map(|topology| Self::Redlock(Box::new(topology)))
            }
        }
    }

    pub(super) fn address(&self) -> String {
        match self {
            Self::Standalone(node) => node.target.address.clone(),
            Self::Sentinel(sentinel) => sentinel.address(),
            Self::Cluster(cluster) => cluster.address(),
            Self::Redlock(redlock) => redlock.address(),
        }
    }

    /// State of the watch of each server that is known now.
    pub(super) fn known_states(&self) -> Vec<(String, String)> {
        let state = |node: &Node| (node.name().to_owned(), node.watching.lock().clone());
        match self {
            Self::Standalone(node) => vec![state(node)],
            Self::Sentinel(sentinel) => sentinel.known().iter().map(|node| state(node)).collect(),
            Self::Cluster(cluster) => cluster.known_nodes().iter().map(|node| state(node)).collect(),
            Self::Redlock(redlock) => redlock.nodes.iter().map(state).collect(),
        }
    }

    pub(super) async fn observe(
        &self,
        settings: &Settings,
        budget: Budget,
        sink: &mut dyn Sink,
    ) -> Result<Pass, BackendError> {
        match self {
            Self::Standalone(node) => scan::run(settings, node, RedisMode::Standalone, budget, sink).await,
            Self::Sentinel(sentinel) => sentinel::observe(sentinel, settings, budget, sink).await,
            Self::Cluster(cluster) => cluster::observe(cluster, settings, budget, sink).await,
            Self::Redlock(redlock) => redlock::observe(redlock, settings, budget, sink).await,
        }
    }

    pub(super) async fn refresh(
        &self,
        settings: &Settings,
        names: &[(Source, Resource)],
        sink: &mut dyn Sink,
    ) -> Result<(), BackendError> {
        match self {
            Self::Standalone(node) => lookup::refresh(settings, &node.query_link, names, sink).await,
            Self::Sentinel(sentinel) => sentinel::refresh(sentinel, settings, names, sink).await,
            Self::Cluster(cluster) => cluster::refresh(cluster, settings, names, sink).await,
            Self::Redlock(redlock) => redlock::refresh(redlock, settings, names, sink).await,
        }
    }

    pub(super) async fn watch(&self, settings: &Settings, hints: Hints) {
        match self {
            Self::Standalone(node) => {
                let watched = Watched {
                    settings,
                    node,
                    source: &settings.rows.key,
                };
                watch::run(watched, PartHints::single(&hints)).await;
            }
            Self::Sentinel(sentinel) => sentinel.watch(settings, hints).await,
            Self::Cluster(cluster) => cluster.watch(settings, hints).await,
            Self::Redlock(redlock) => redlock.watch(settings, hints).await,
        }
    }

    pub(super) async fn inspect(
        &self,
        settings: &Settings,
        source: &Source,
        resource: &Resource,
    ) -> Result<Inspection, BackendError> {
        match self {
            Self::Standalone(node) => lookup::inspect(settings, &node.query_link, source, resource).await,
            Self::Sentinel(sentinel) => sentinel::inspect(sentinel, settings, source, resource).await,
            Self::Cluster(cluster) => cluster::inspect(cluster, settings, source, resource).await,
            Self::Redlock(redlock) => redlock::inspect(redlock, settings, resource).await,
        }
    }

    pub(super) async fn probe(&self, settings: &Settings) -> Result<Probe, BackendError> {
        match self {
            Self::Standalone(node) => probe::run(settings, node, RedisMode::Standalone).await,
            Self::Sentinel(sentinel) => {
                let node = sentinel.current(settings).await?;
                probe::run(settings, &node, RedisMode::Sentinel).await
            }
            Self::Cluster(cluster) => {
                let nodes = cluster.nodes_now(settings).await?;
                probe::run_all(settings, nodes.iter().map(|node| &**node), RedisMode::Cluster).await
            }
            Self::Redlock(redlock) => {
                probe::run_all(settings, redlock.nodes.iter(), RedisMode::Redlock).await
            }
        }
    }
}

/// Takes the whole backend: a mismatch is explained by reading the lock again.
pub(super) async fn release(
    backend: &RedisBackend,
    source: &Source,
    resource: &Resource,
    expected: &Generation,
) -> Result<Release, BackendError> {
    match &backend.topology {
        Topology::Standalone(node) => {
            let link = node.unlocks.as_ref();
            release::release(backend, link, Guard::None, (source, resource), expected).await
        }
        Topology::Sentinel(sentinel) => {
            sentinel::release(backend, sentinel, (source, resource), expected).await
        }
        Topology::Cluster(cluster) => cluster::release(backend, cluster, source, resource, expected).await,
        Topology::Redlock(redlock) => redlock::release(backend, redlock, resource, expected).await,
    }
}

fn standalone(config: &BackendConfig, redis: &RedisConfig) -> Result<Node, BackendError> {
    let mut targets = connection_config::nodes(config, redis)?;
    match (targets.pop(), targets.len()) {
        (Some((target, unlocks)), 0) => Ok(Node::new(target, unlocks)),
        (_, others) => Err(misconfigured(
            format!(
                "`urls` has {} addresses, and mode standalone takes one",
                others + 1
            ),
            "Give one address in `urls`, or set `mode`.".to_owned(),
        )),
    }
}
