//! Finds the node of a key, and follows MOVED and ASK.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use domain::force_release::Release;
use domain::generation::Generation;
use domain::names::{Resource, Source};
use domain::observation::Inspection;
use futures::StreamExt;
use futures::stream::FuturesUnordered;

use super::Cluster;
use super::slots::slot_of;
use crate::BackendError;
use crate::redis::RedisBackend;
use crate::redis::connection::{Link, RedisConnection};
use crate::redis::limits::{NAMES_PER_READ, REDIRECTS_MAX};
use crate::redis::lookup::{self, Looked};
use crate::redis::node::Node;
use crate::redis::page::{self, Page, RedisKey};
use crate::redis::redirect::Redirect;
use crate::redis::release::{self as script, Attempt, Guard};
use crate::redis::settings::Settings;
use crate::release::{Acted, confirm_release};
use config::redis::RedisWake;

pub(in crate::redis) const HOW: &str = "a script on the node that serves the key deletes it if it still holds the value seen; \
                                         Redisson's waiters are woken";

/// Where to send a command.
#[derive(Clone)]
struct Route {
    node: Arc<Node>,
    is_asking: bool,
}

impl Cluster {
    fn route(&self, key: &[u8]) -> Result<Route, BackendError> {
        let slot = slot_of(key);
        let address = {
            let map = self.map.lock();
            map.master_of(slot)
                .map(|master| (master.host.clone(), master.port))
        };
        let (host, port) = address.ok_or_else(|| BackendError::Unreachable {
            detail: format!("no node of the cluster serves slot {slot}"),
        })?;
        Ok(Route {
            node: self.node(&host, port)?,
            is_asking: false,
        })
    }

    fn follow(&self, from: &Route, to: &Redirect) -> Result<Route, BackendError> {
        let host = if to.host.is_empty() {
            from.node.target.host()
        } else {
            &to.host
        };
        Ok(Route {
            node: self.node(host, to.port)?,
            is_asking: to.is_ask,
        })
    }
}

impl Route {
    async fn connection(&self, link: &Link, settings: &Settings) -> Result<RedisConnection, BackendError> {
        let connection = self.node.connection(link, settings.poll_interval).await?;
        Ok(if self.is_asking {
            connection.asking()
        } else {
            connection
        })
    }

    async fn read(&self, settings: &Settings, keys: &[RedisKey]) -> Result<Page, BackendError> {
        let link = &self.node.query_link;
        let connection = self.connection(link, settings).await?;
        let mut merged = Page::new(settings.clock.tick());
        for chunk in keys.chunks(NAMES_PER_READ) {
            match page::read(&connection, &settings.rows, &settings.clock, chunk.to_vec()).await {
                Ok(page) => {
                    merged.locks.extend(page.locks);
                    merged.troubles.merge(page.troubles);
                    merged.moved.extend(page.moved);
                }
                Err(error) => {
                    self.node.failed(&error);
                    link.discard(&connection).await;
                    return Err(error);
                }
            }
        }
        Ok(merged)
    }
}

/// Keys that were not read, and why.
pub(super) struct Unread {
    pub(super) keys: Vec<RedisKey>,
    pub(super) error: BackendError,
}

/// Keys to read, by node.
#[derive(Default)]
struct Pending {
    routed: BTreeMap<(String, bool), (Route, Vec<RedisKey>)>,
    unread: Vec<Unread>,
}

impl Pending {
    fn add(&mut self, key: RedisKey, route: Result<Route, BackendError>) {
        match route {
            Ok(route) => {
                let place = (route.node.name().to_owned(), route.is_asking);
                let (_, keys) = self.routed.entry(place).or_insert((route, Vec::new()));
                keys.push(key);
            }
            Err(error) => self.unread.push(Unread {
                keys: vec![key],
                error,
            }),
        }
    }
}

/// Reads keys where they are, on all nodes at once. Delivers the answer of each node as it arrives, with the keys that
/// it is about. Returns the other keys: no node serves them, theirs does not answer, or they move faster than they can
/// be followed.
pub(super) async fn read_routed(
    cluster: &Cluster,
    settings: &Settings,
    keys: Vec<RedisKey>,
    mut deliver: impl FnMut(Page, &[RedisKey]),
) -> Vec<Unread> {
    let mut pending = Pending::default();
    for key in keys {
        let route = cluster.route(&key);
        pending.add(key, route);
    }
    for _ in 0..=REDIRECTS_MAX {
        let routed = std::mem::take(&mut pending.routed).into_values();
        let mut reads: FuturesUnordered<_> = routed
            .map(|(route, keys)| async move { (route.read(settings, &keys).await, route, keys) })
            .collect();
        while let Some((read, route, mut keys)) = reads.next().await {
            match read {
                Ok(mut page) => {
                    let moved: HashMap<RedisKey, Redirect> = page.moved.drain(..).collect();
                    keys.retain(|key| !moved.contains_key(key));
                    deliver(page, &keys);
                    for (key, to) in moved {
                        pending.add(key, cluster.follow(&route, &to));
                    }
                }
                Err(error) => pending.unread.push(Unread { keys, error }),
            }
        }
    }
    let moving = pending.routed.into_values().map(|(_, keys)| Unread {
        keys,
        error: moves_too_fast(),
    });
    pending.unread.into_iter().chain(moving).collect()
}

fn moves_too_fast() -> BackendError {
    BackendError::Unreachable {
        detail: format!("the cluster redirected one key more than {REDIRECTS_MAX} times"),
    }
}

/// Reads one key fresh.
pub(in crate::redis) async fn inspect(
    cluster: &Cluster,
    settings: &Settings,
    source: &Source,
    resource: &Resource,
) -> Result<Inspection, BackendError> {
    if !settings.is_ours(resource) {
        return Ok(Inspection::default());
    }
    cluster.ensure_map(settings).await?;
    let mut route = cluster.route(resource.as_bytes())?;
    for _ in 0..=REDIRECTS_MAX {
        let connection = route.connection(&route.node.query_link, settings).await?;
        let lookup_result = lookup::read_one(settings, &connection, source, resource).await;
        if lookup_result.is_err() {
            route.node.query_link.discard(&connection).await;
        }
        match lookup_result? {
            Looked::Here(inspection) => return Ok(*inspection),
            Looked::Moved(to) => route = cluster.follow(&route, &to)?,
        }
    }
    Err(moves_too_fast())
}

pub(in crate::redis) async fn release(
    backend: &RedisBackend,
    cluster: &Cluster,
    source: &Source,
    resource: &Resource,
    expected: &Generation,
) -> Result<Release, BackendError> {
    let settings = &backend.settings;
    cluster.ensure_map(settings).await?;
    let key = resource.as_bytes();
    let mut route = cluster.route(key)?;
    let mut acted = Acted::Refused {
        why: "the key's slot moved from node to node; nothing was deleted".to_owned(),
        remedy: "Try again once the slot has moved.".to_owned(),
    };
    for _ in 0..=REDIRECTS_MAX {
        let link = match script::may_release(settings, route.node.unlocks.as_ref(), resource) {
            Ok(link) => link,
            Err(refused) => return Ok(refused),
        };
        let connection = route.connection(link, settings).await;
        let connection = connection.map_err(script::unlock_account)?;
        let attempt =
            script::delete_if_same(&connection, key, expected, (Guard::None, RedisWake::None)).await;
        if matches!(attempt, Ok(Attempt::Acted(Acted::Unknown { .. })) | Err(_)) {
            link.discard(&connection).await;
        }
        match attempt? {
            Attempt::Acted(result) => {
                acted = result;
                break;
            }
            // Refused before it did anything.
            Attempt::Moved(to) => route = cluster.follow(&route, &to)?,
        }
    }
    confirm_release(backend, source, resource, expected, acted).await
}
