//! Finds the node of a key, and follows MOVED and ASK.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::force_release::Release;
use domain::generation::Generation;
use domain::names::{Resource, Source};
use domain::observation::Inspection;

use super::Cluster;
use super::slots::slot_of;
use crate::BackendError;
use crate::redis::RedisBackend;
use crate::redis::connection::{Link, RedisConnection};
use crate::redis::limits::REDIRECTS_MAX;
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
struct Home {
    node: Arc<Node>,
    is_asking: bool,
}

impl Cluster {
    fn home(&self, key: &[u8]) -> Result<Home, BackendError> {
        let slot = slot_of(key);
        let address = {
            let map = self.map.lock();
            map.master_of(slot)
                .map(|master| (master.host.clone(), master.port))
        };
        let (host, port) = address.ok_or_else(|| BackendError::Unreachable {
            detail: format!("no node of the cluster serves slot {slot}"),
        })?;
        Ok(Home {
            node: self.node(&host, port)?,
            is_asking: false,
        })
    }

    fn follow(&self, from: &Home, to: &Redirect) -> Result<Home, BackendError> {
        let host = if to.host.is_empty() {
            from.node.target.host()
        } else {
            &to.host
        };
        Ok(Home {
            node: self.node(host, to.port)?,
            is_asking: to.is_ask,
        })
    }
}

impl Home {
    async fn line(&self, link: &Link, settings: &Settings) -> Result<RedisConnection, BackendError> {
        let line = self.node.line(link, settings.poll_interval).await?;
        Ok(if self.is_asking { line.asking() } else { line })
    }
}

/// Reads keys where they are.
///
/// # Errors
/// One of the nodes does not answer, or a key moves faster than it can be followed.
pub(super) async fn read_home(
    cluster: &Cluster,
    settings: &Settings,
    keys: Vec<RedisKey>,
) -> Result<Page, BackendError> {
    let mut all = Page::new(settings.clock.tick());
    let mut open: Vec<(RedisKey, Home)> = Vec::with_capacity(keys.len());
    for key in keys {
        let home = cluster.home(&key)?;
        open.push((key, home));
    }
    for _ in 0..=REDIRECTS_MAX {
        if open.is_empty() {
            return Ok(all);
        }
        let mut by_home: BTreeMap<(String, bool), (Home, Vec<RedisKey>)> = BTreeMap::new();
        for (key, home) in open.drain(..) {
            let place = (home.node.name().to_owned(), home.is_asking);
            by_home.entry(place).or_insert((home, Vec::new())).1.push(key);
        }
        for (home, keys) in by_home.into_values() {
            let line = home.line(&home.node.asks, settings).await?;
            let read = page::read(&line, &settings.rows, &settings.clock, keys).await;
            if let Err(error) = &read {
                home.node.failed(error);
                home.node.asks.discard(&line).await;
            }
            let page = read?;
            all.locks.extend(page.locks);
            all.troubles.merge(page.troubles);
            for (key, to) in page.moved {
                open.push((key, cluster.follow(&home, &to)?));
            }
        }
    }
    Err(moves_too_fast())
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
    let mut home = cluster.home(resource.as_bytes())?;
    for _ in 0..=REDIRECTS_MAX {
        let line = home.line(&home.node.asks, settings).await?;
        let looked = lookup::read_one(settings, &line, source, resource).await;
        if looked.is_err() {
            home.node.asks.discard(&line).await;
        }
        match looked? {
            Looked::Here(inspection) => return Ok(*inspection),
            Looked::Moved(to) => home = cluster.follow(&home, &to)?,
        }
    }
    Err(moves_too_fast())
}

pub(in crate::redis) async fn release(
    backend: &RedisBackend,
    cluster: &Cluster,
    source: &Source,
    resource: &Resource,
    wanted: &Generation,
) -> Result<Release, BackendError> {
    let settings = &backend.settings;
    cluster.ensure_map(settings).await?;
    let key = resource.as_bytes();
    let mut home = cluster.home(key)?;
    let mut acted = Acted::Refused {
        why: "the key's slot moved from node to node; nothing was deleted".to_owned(),
        remedy: "Try again once the slot has moved.".to_owned(),
    };
    for _ in 0..=REDIRECTS_MAX {
        let link = match script::may_release(settings, home.node.unlocks.as_ref(), resource) {
            Ok(link) => link,
            Err(refused) => return Ok(refused),
        };
        let line = home.line(link, settings).await?;
        let attempt = script::delete_if_same(&line, key, wanted, (Guard::None, RedisWake::None)).await;
        if matches!(attempt, Ok(Attempt::Acted(Acted::Unknown { .. })) | Err(_)) {
            link.discard(&line).await;
        }
        match attempt? {
            Attempt::Acted(done) => {
                acted = done;
                break;
            }
            // Refused before it did anything.
            Attempt::Moved(to) => home = cluster.follow(&home, &to)?,
        }
    }
    confirm_release(backend, source, resource, wanted, acted).await
}
