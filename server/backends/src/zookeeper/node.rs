//! Reads one node: its contenders in order and the owner of the first. Children that are no
//! contenders are nodes to be read themselves.

use domain::limits::WAITERS_IDENTIFIED_MAX;
use domain::names::OwnerId;
use domain::tick::Tick;
use futures::{StreamExt, TryStreamExt};
use zookeeper_client::Stat;

use super::connection::{IN_FLIGHT_MAX, Link};
use super::contender::{self, ContenderName, Share};
use super::contender_cache::{ContenderCache, ContenderKey, Known, KnownOwner};
use super::error::{ZookeeperError, ZookeeperErrorKind};
use super::settings::join;
use crate::owner_value;

/// Longest data of a node that are read, in bytes.
pub(super) const DATA_BYTES_MAX: i32 = 64 * 1024;
pub(super) const LARGE_DATA: &str = "its data are larger than 64 KiB and were not read";
pub(super) const HIDDEN_DATA: &str = "an ACL hides its data from this account";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Contender {
    pub(super) name: String,
    pub(super) share: Share,
    pub(super) sequence: i32,
    pub(super) czxid: i64,
    key: ContenderKey,
}

/// A node with at least one contender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LockNode {
    pub(super) path: String,
    /// In order of arrival.
    pub(super) queue: Vec<Contender>,
    pub(super) first: OwnerRead,
    /// If there are waiters: the owners of the first holders and of the first waiters.
    pub(super) queue_owners: QueueOwners,
    pub(super) read_at: Tick,
}

/// In order; left out are contenders that have gone since the list, and those that a later scan identifies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct QueueOwners {
    pub(super) holders: Vec<OwnerRead>,
    /// With its place among the waiters.
    pub(super) waiters: Vec<(usize, OwnerRead)>,
}

impl LockNode {
    /// How many of the queue hold the lock.
    pub(super) fn holder_count(&self) -> usize {
        contender::holders(self.queue.iter().map(|one| one.share))
    }

    pub(super) fn holders(&self) -> &[Contender] {
        &self.queue[..self.holder_count()]
    }

    pub(super) fn waiters(&self) -> &[Contender] {
        &self.queue[self.holder_count()..]
    }
}

/// The owner of a contender, as far as it could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OwnerRead {
    /// The data, or the session where they name no owner.
    pub(super) owner: OwnerId,
    pub(super) session: i64,
    /// Why the data were not read.
    pub(super) note: Option<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    Lock(Box<LockNode>),
    /// It has no contender.
    Free,
    /// Its ACL hides its children.
    Hidden(Tick),
    Missing,
}

pub(super) struct NodeRead {
    pub(super) found: Found,
    /// Paths of children that may have locks below them.
    pub(super) folders: Vec<String>,
}

impl From<Found> for NodeRead {
    fn from(found: Found) -> Self {
        Self {
            found,
            folders: Vec::new(),
        }
    }
}

pub(super) fn session_text(session: i64) -> String {
    format!("0x{session:x}")
}

pub(super) async fn read(
    link: &Link,
    cache: &ContenderCache,
    path: &str,
) -> Result<NodeRead, ZookeeperError> {
    let read_at = link.clock.tick();
    let listed = link
        .call(|client| async move { client.get_children(path).await })
        .await;
    let (names, stat) = match listed {
        Ok(listed) => listed,
        Err(fault) if fault.kind == ZookeeperErrorKind::NoNode => return Ok(Found::Missing.into()),
        Err(fault) if fault.kind == ZookeeperErrorKind::NoAuth => {
            return Ok(Found::Hidden(read_at).into());
        }
        Err(fault) => return Err(fault),
    };
    let (candidates, others): (Vec<String>, Vec<String>) = names
        .into_iter()
        .partition(|name| ContenderName::parse(name).is_some());
    let mut folders: Vec<String> = others.iter().map(|name| join(path, name)).collect();
    let judged: Vec<(String, ContenderKey, Option<Known>)> = futures::stream::iter(candidates)
        .map(|name| judge(link, cache, path, stat.czxid, name))
        .buffer_unordered(IN_FLIGHT_MAX)
        .try_collect()
        .await?;
    let mut queue = Vec::with_capacity(judged.len());
    for (name, key, known) in judged {
        match known {
            Some(Known::Contender { czxid }) => queue.extend(contender(name, czxid, key)),
            Some(Known::Folder) => folders.push(join(path, &name)),
            // Gone since the list.
            None => {}
        }
    }
    contender::sort_by_arrival(&mut queue, |one: &Contender| one.sequence);
    let found = lock_node(link, cache, path, queue, read_at).await?;
    Ok(NodeRead { found, folders })
}

fn contender(name: String, czxid: i64, key: ContenderKey) -> Option<Contender> {
    let parsed = ContenderName::parse(&name)?;
    Some(Contender {
        share: parsed.share(),
        sequence: parsed.sequence,
        name,
        czxid,
        key,
    })
}

async fn judge(
    link: &Link,
    cache: &ContenderCache,
    parent: &str,
    parent_czxid: i64,
    name: String,
) -> Result<(String, ContenderKey, Option<Known>), ZookeeperError> {
    let key = cache.key(parent, parent_czxid, &name);
    if let Some(known) = cache.get(key) {
        return Ok((name, key, Some(known)));
    }
    let known = stat(link, &join(parent, &name)).await?.map(|stat| {
        if stat.ephemeral_owner == 0 {
            Known::Folder
        } else {
            Known::Contender { czxid: stat.czxid }
        }
    });
    if let Some(known) = known {
        cache.insert(key, known);
    }
    Ok((name, key, known))
}

/// A holder that has gone since the list is followed by the next one.
async fn lock_node(
    link: &Link,
    cache: &ContenderCache,
    path: &str,
    mut queue: Vec<Contender>,
    read_at: Tick,
) -> Result<Found, ZookeeperError> {
    let mut gone = 0;
    while let Some(first) = queue.get(gone) {
        if let Some(owner) = owner_of(link, cache, path, first).await? {
            queue.drain(..gone);
            let mut node = LockNode {
                path: path.to_owned(),
                queue,
                first: owner,
                queue_owners: QueueOwners::default(),
                read_at,
            };
            if !node.waiters().is_empty() {
                node.queue_owners = queue_owners(link, cache, &node).await?;
            }
            return Ok(Found::Lock(Box::new(node)));
        }
        gone += 1;
    }
    Ok(Found::Free)
}

async fn queue_owners(
    link: &Link,
    cache: &ContenderCache,
    node: &LockNode,
) -> Result<QueueOwners, ZookeeperError> {
    let read = async |contender: &Contender| {
        if let Some(owner) = cache.queued(contender.key) {
            return Ok(Some(owner));
        }
        if !cache.may_identify() {
            return Ok(None);
        }
        let owner = owner_of(link, cache, &node.path, contender).await?;
        if let Some(owner) = &owner {
            cache.insert_queued(contender.key, owner.clone());
        }
        Ok::<_, ZookeeperError>(owner)
    };
    let mut owners = QueueOwners {
        holders: vec![node.first.clone()],
        waiters: Vec::new(),
    };
    for contender in node.holders().iter().take(WAITERS_IDENTIFIED_MAX).skip(1) {
        owners.holders.extend(read(contender).await?);
    }
    for (at, contender) in node.waiters().iter().take(WAITERS_IDENTIFIED_MAX).enumerate() {
        owners
            .waiters
            .extend(read(contender).await?.map(|owner| (at, owner)));
    }
    Ok(owners)
}

pub(super) async fn stat(link: &Link, path: &str) -> Result<Option<Stat>, ZookeeperError> {
    link.call(|client| async move { client.check_stat(path).await })
        .await
}

/// `None`: the node has gone, or is another one by now.
pub(super) async fn owner_of(
    link: &Link,
    cache: &ContenderCache,
    parent: &str,
    contender: &Contender,
) -> Result<Option<OwnerRead>, ZookeeperError> {
    let path = join(parent, &contender.name);
    let Some(stat) = stat(link, &path)
        .await?
        .filter(|stat| stat.czxid == contender.czxid)
    else {
        return Ok(None);
    };
    let session = stat.ephemeral_owner;
    let by_session = |note| OwnerRead {
        owner: OwnerId::new(format!("session:{}", session_text(session))),
        session,
        note,
    };
    if stat.data_length == 0 {
        return Ok(Some(by_session(None)));
    }
    if stat.data_length > DATA_BYTES_MAX {
        return Ok(Some(by_session(Some(LARGE_DATA))));
    }
    let by_data = |owner| OwnerRead {
        owner,
        session,
        note: None,
    };
    if let Some(known) = cache
        .owner(contender.key)
        .filter(|known| known.version == stat.version)
    {
        return Ok(Some(by_data(known.owner)));
    }
    let path = path.as_str();
    let data = link
        .call(|client| async move { client.get_data(path).await })
        .await;
    match data {
        Ok((data, stat)) => {
            let owner = owner_value::printable_owner(&data).unwrap_or_else(|| by_session(None).owner);
            let known = KnownOwner {
                version: stat.version,
                owner: owner.clone(),
            };
            cache.insert_owner(contender.key, known);
            Ok(Some(by_data(owner)))
        }
        Err(fault) if fault.is_no_node() => Ok(None),
        Err(fault) if fault.is_hidden() => Ok(Some(by_session(Some(HIDDEN_DATA)))),
        Err(fault) => Err(fault),
    }
}
