//! A Redis Cluster: every master is scanned; single keys are read and released where they are.
//!
//! **Invariant:** a key that moves during a scan is read on both sides of its move, or its slot
//! counts as not read: it is never taken for gone.

mod map;
mod route;
mod scan;
mod slots;

use std::collections::HashMap;
use std::sync::Arc;

use domain::names::{Resource, Source};
use futures::future::join_all;
use parking_lot::Mutex;
use tokio::sync::watch as channel;

use self::map::ClusterMap;
use super::connection::RedisConnection;
use super::connection_config::{self, Listed, Servers};
use super::error;
use super::lookup;
use super::node::Node;
use super::page::{Page, RedisKey};
use super::server_info::text;
use super::settings::Settings;
use super::watch::{self, Watched};
use crate::part_hints::PartHints;
use crate::{BackendError, Hints, Sink};
use config::BackendConfig;
use config::redis::RedisConfig;

pub(super) use route::{HOW, inspect, release};
pub(super) use scan::observe;

pub(super) struct Cluster {
    servers: Servers,
    seeds: Vec<Listed>,
    /// By `host:port`; kept while the cluster names them.
    nodes: Mutex<HashMap<(String, u16), Arc<Node>>>,
    map: Mutex<ClusterMap>,
    /// Changes with the set of masters.
    masters: channel::Sender<Vec<(String, u16)>>,
}

impl Cluster {
    pub(super) fn new(config: &BackendConfig, redis: &RedisConfig) -> Result<Self, BackendError> {
        let (servers, seeds) = connection_config::servers(config, redis)?;
        if seeds.is_empty() {
            return Err(error::unexpected("`urls`"));
        }
        Ok(Self {
            servers,
            seeds,
            nodes: Mutex::default(),
            map: Mutex::default(),
            masters: channel::Sender::new(Vec::new()),
        })
    }

    pub(super) const fn may_unlock(&self) -> bool {
        self.servers.may_unlock()
    }

    pub(super) fn address(&self) -> String {
        let seeds: Vec<String> = self
            .seeds
            .iter()
            .map(|seed| format!("{}:{}", seed.host, seed.port))
            .collect();
        format!("cluster by {}", seeds.join(", "))
    }

    /// The node with this address; connections are kept.
    fn node(&self, host: &str, port: u16) -> Result<Arc<Node>, BackendError> {
        let key = (host.to_owned(), port);
        if let Some(node) = self.nodes.lock().get(&key) {
            return Ok(node.clone());
        }
        let node = Arc::new(Node::at(&self.servers, host, port)?);
        self.nodes.lock().insert(key, node.clone());
        Ok(node)
    }

    /// Every master that the last map names.
    pub(super) fn known_nodes(&self) -> Vec<Arc<Node>> {
        let masters = self.masters.borrow().clone();
        masters
            .iter()
            .filter_map(|(host, port)| self.node(host, *port).ok())
            .collect()
    }

    /// Every master, asked now.
    pub(super) async fn nodes_now(&self, settings: &Settings) -> Result<Vec<Arc<Node>>, BackendError> {
        self.read_map(settings).await?;
        Ok(self.known_nodes())
    }

    /// Asks the masters known so far, then the seeds.
    async fn read_map(&self, settings: &Settings) -> Result<ClusterMap, BackendError> {
        let known = self.masters.borrow().clone();
        let seeds = self.seeds.iter().map(|seed| (seed.host.clone(), seed.port));
        let mut nodes = Vec::new();
        for (host, port) in known.into_iter().chain(seeds) {
            nodes.push(self.node(&host, port)?);
        }
        // Those that did not answer last come last.
        nodes.sort_by_key(|node| node.health().fault.is_some());
        let mut first_error = None;
        for node in nodes {
            match self.map_of(settings, &node).await {
                Ok(map) if !map.masters.is_empty() => {
                    self.adopt(&map);
                    return Ok(map);
                }
                Ok(_) => {
                    first_error.get_or_insert(BackendError::Misconfigured {
                        detail: format!("{} knows no node that serves slots", node.name()),
                        remedy:
                            "Create the cluster with redis-cli --cluster create, or name one of its nodes."
                                .to_owned(),
                    });
                }
                Err(error) => {
                    first_error.get_or_insert(error);
                }
            }
        }
        Err(first_error.unwrap_or_else(|| error::no_answer(settings.timeout)))
    }

    /// The view of one node. Its own moves are only in its own view.
    async fn map_of(&self, settings: &Settings, node: &Node) -> Result<ClusterMap, BackendError> {
        let connection = node.connection(&node.query_link, settings.poll_interval).await?;
        let map = query_nodes(&connection).await;
        if let Err(error) = &map {
            node.failed(error);
            node.query_link.discard(&connection).await;
        }
        let mut map = map?;
        node.answered(settings.clock.tick());
        for master in map.masters.iter_mut().filter(|master| master.host.is_empty()) {
            node.target.host().clone_into(&mut master.host);
        }
        Ok(map)
    }

    fn adopt(&self, map: &ClusterMap) {
        let mut masters: Vec<(String, u16)> = map
            .masters
            .iter()
            .map(|master| (master.host.clone(), master.port))
            .collect();
        masters.sort_unstable();
        self.masters.send_if_modified(|known| {
            let is_new = *known != masters;
            *known = masters;
            is_new
        });
        map.clone_into(&mut self.map.lock());
    }

    /// Watches the masters of the last map, and others once they change.
    pub(super) async fn watch(&self, settings: &Settings, hints: Hints) {
        let mut changes = self.masters.subscribe();
        // The first scan finds the masters too.
        if let Err(failed) = self.read_map(settings).await {
            tracing::debug!("the cluster's nodes are not known yet: {failed}");
        }
        loop {
            changes.borrow_and_update();
            let nodes = self.known_nodes();
            let names = nodes.iter().map(|node| node.name());
            let watches = PartHints::of_parts(&hints, names)
                .into_iter()
                .zip(&nodes)
                .map(|(hints, node)| {
                    let watched = Watched {
                        settings,
                        node,
                        source: &settings.rows.key,
                    };
                    watch::run(watched, hints)
                });
            tokio::select! {
                _ = join_all(watches), if !nodes.is_empty() => {}
                changed = changes.changed() => if changed.is_err() { return },
            }
        }
    }
}

async fn query_nodes(connection: &RedisConnection) -> Result<ClusterMap, BackendError> {
    let mut ask = ::redis::cmd("CLUSTER");
    ask.arg("NODES");
    match connection.raw(&ask).await {
        Ok(answer) => text(&answer)
            .map(ClusterMap::parse)
            .ok_or_else(|| error::unexpected("CLUSTER NODES")),
        Err(failed)
            if failed
                .detail()
                .is_some_and(|text| text.contains("cluster support disabled")) =>
        {
            Err(error::other_mode("standalone", config::redis::RedisMode::Cluster))
        }
        Err(failed) => Err(error::mapped(&failed, connection.timeout())),
    }
}

/// Reads the named keys where they are. Those of a node that does not answer are an error, after the others are
/// delivered.
pub(super) async fn refresh(
    cluster: &Cluster,
    settings: &Settings,
    names: &[(Source, Resource)],
    sink: &mut dyn Sink,
) -> Result<(), BackendError> {
    let resources = lookup::distinct(names);
    if resources.is_empty() {
        return Ok(());
    }
    cluster.ensure_map(settings).await?;
    let (ours, others): (Vec<Resource>, Vec<Resource>) = resources
        .into_iter()
        .partition(|resource| settings.is_ours(resource));
    let none = Page::new(settings.clock.tick());
    sink.accept(lookup::batch(settings, none, &others));
    let keys = lookup::our_keys(settings, &ours);
    let deliver = |page: Page, keys: &[RedisKey]| {
        let read: Vec<Resource> = keys.iter().map(|key| Resource::from_bytes(key)).collect();
        sink.accept(lookup::batch(settings, page, &read));
    };
    let unread = route::read_routed(cluster, settings, keys, deliver).await;
    unread
        .into_iter()
        .next()
        .map_or(Ok(()), |unread| Err(unread.error))
}

impl Cluster {
    async fn ensure_map(&self, settings: &Settings) -> Result<(), BackendError> {
        if self.map.lock().masters.is_empty() {
            self.read_map(settings).await?;
        }
        Ok(())
    }
}
