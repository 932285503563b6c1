//! Reads one node: its contenders in order and the owner of the first. Children that are no
//! contenders are nodes to be read themselves.

use domain::limits::WAITERS_IDENTIFIED_MAX;
use domain::names::OwnerId;
use domain::tick::Tick;
use futures::{StreamExt, TryStreamExt};
use zookeeper_client::Stat;

use super::connection::{IN_FLIGHT_MAX, Link};
use super::contender::{self, ContenderName, Share};
use super::contender_cache::{ContenderCache, Known, KnownChild, KnownChildren, KnownOwner, NameKey};
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
    key: NameKey,
}

/// A node with at least one contender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LockNode {
    pub(super) path: String,
    /// In order of arrival.
    pub(super) queue: Vec<Contender>,
    pub(super) first: OwnerRead,
    /// If there are several contenders: the owners of the first holders and of the first waiters.
    pub(super) queue_owners: QueueOwners,
    pub(super) read_at: Tick,
}

/// In order; left out are contenders that have gone since the list, and those that a later scan identifies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct QueueOwners {
    /// With its place among the holders.
    pub(super) holders: Vec<(usize, OwnerRead)>,
    /// With its place among the waiters.
    pub(super) waiters: Vec<(usize, OwnerRead)>,
}

impl LockNode {
    /// How many of the queue hold the lock.
    pub(super) fn holder_count(&self) -> usize {
        contender::holders(self.queue.iter().map(|contender| contender.share))
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

impl OwnerRead {
    pub(super) fn by_session(session: i64, note: Option<&'static str>) -> Self {
        Self {
            owner: OwnerId::new(format!("session:{}", session_text(session))),
            session,
            note,
        }
    }
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
    let mut reading = cache.reading(path, stat.czxid);
    let before = &reading.before;
    let mut judged = futures::stream::iter(candidates)
        .map(|name| judge(link, before, path, (cache.name(&name), name)))
        .buffer_unordered(IN_FLIGHT_MAX);
    let mut queue = Vec::new();
    while let Some((name, key, child)) = judged.try_next().await? {
        // Gone since the list.
        let Some(child) = child else { continue };
        match child.known {
            Known::Contender { czxid } => queue.extend(contender(name, czxid, key)),
            Known::Folder => folders.push(join(path, &name)),
        }
        reading.children.insert(key, child);
    }
    drop(judged);
    contender::sort_by_arrival(&mut queue, |contender: &Contender| contender.sequence);
    let found = lock_node(link, cache, path, (queue, &mut reading.children), read_at).await?;
    reading.is_complete = true;
    Ok(NodeRead { found, folders })
}

fn contender(name: String, czxid: i64, key: NameKey) -> Option<Contender> {
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
    before: &KnownChildren,
    parent: &str,
    (key, name): (NameKey, String),
) -> Result<(String, NameKey, Option<KnownChild>), ZookeeperError> {
    if let Some(child) = before.get(&key) {
        return Ok((name, key, Some(child.clone())));
    }
    let child = stat(link, &join(parent, &name)).await?.map(|stat| KnownChild {
        known: if is_session(stat.ephemeral_owner) {
            Known::Contender { czxid: stat.czxid }
        } else {
            Known::Folder
        },
        owner: None,
    });
    Ok((name, key, child))
}

/// Whether the owner of a node is a session. 0 marks a persistent node; containers and nodes with a TTL have numbers of their own
/// (ZooKeeper's `EphemeralType`). Session ids of the server 255 begin with the same byte as a TTL. They differ from a TTL once
/// that server's host has run for 2^24 ms, 4.7 hours, because bits 16 to 55 of its first session id are its uptime.
fn is_session(ephemeral_owner: i64) -> bool {
    let is_container = ephemeral_owner == i64::MIN;
    let has_ttl = ephemeral_owner.cast_unsigned() >> 40 == 0x00ff_0000;
    ephemeral_owner != 0 && !is_container && !has_ttl
}

/// A holder that has gone since the list is followed by the next one.
async fn lock_node(
    link: &Link,
    cache: &ContenderCache,
    path: &str,
    (mut queue, children): (Vec<Contender>, &mut KnownChildren),
    read_at: Tick,
) -> Result<Found, ZookeeperError> {
    let mut missing = 0;
    while let Some(first) = queue.get(missing) {
        let known = children.get(&first.key).and_then(|child| child.owner.as_ref());
        if let Some(owner) = owner_of(link, path, first, known).await? {
            remember_owner(children, first, &owner);
            queue.drain(..missing);
            let mut node = LockNode {
                path: path.to_owned(),
                queue,
                first: owner.read,
                queue_owners: QueueOwners::default(),
                read_at,
            };
            if node.queue.len() > 1 {
                node.queue_owners = queue_owners(link, cache, &node, children).await?;
            }
            return Ok(Found::Lock(Box::new(node)));
        }
        missing += 1;
    }
    Ok(Found::Free)
}

fn remember_owner(children: &mut KnownChildren, contender: &Contender, owner: &KnownOwner) {
    if let Some(child) = children.get_mut(&contender.key) {
        child.owner = Some(owner.clone());
    }
}

/// Clients write the data of a contender only once, so the data of queued ones are read only once.
async fn queue_owners(
    link: &Link,
    cache: &ContenderCache,
    node: &LockNode,
    children: &mut KnownChildren,
) -> Result<QueueOwners, ZookeeperError> {
    let mut read = async |contender: &Contender| {
        let known = children
            .get(&contender.key)
            .and_then(|child| child.owner.as_ref());
        if let Some(owner) = known {
            return Ok(Some(owner.read.clone()));
        }
        if !cache.may_identify() {
            return Ok(None);
        }
        let owner = owner_of(link, &node.path, contender, None).await?;
        if let Some(owner) = &owner {
            remember_owner(children, contender, owner);
        }
        Ok::<_, ZookeeperError>(owner.map(|owner| owner.read))
    };
    let mut owners = QueueOwners {
        holders: vec![(0, node.first.clone())],
        waiters: Vec::new(),
    };
    let holders = node.holders().iter().take(WAITERS_IDENTIFIED_MAX).enumerate();
    for (at, contender) in holders.skip(1) {
        owners
            .holders
            .extend(read(contender).await?.map(|owner| (at, owner)));
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

/// `None`: the node has gone, or is another one by now. With `known`, data of the same version are not read again.
pub(super) async fn owner_of(
    link: &Link,
    parent: &str,
    contender: &Contender,
    known: Option<&KnownOwner>,
) -> Result<Option<KnownOwner>, ZookeeperError> {
    let path = join(parent, &contender.name);
    let Some(stat) = stat(link, &path)
        .await?
        .filter(|stat| stat.czxid == contender.czxid)
    else {
        return Ok(None);
    };
    let session = stat.ephemeral_owner;
    let by_session = |note| KnownOwner {
        version: stat.version,
        read: OwnerRead::by_session(session, note),
    };
    if stat.data_length == 0 {
        return Ok(Some(by_session(None)));
    }
    if stat.data_length > DATA_BYTES_MAX {
        return Ok(Some(by_session(Some(LARGE_DATA))));
    }
    let is_same = |known: &&KnownOwner| known.version == stat.version && known.read.note.is_none();
    if let Some(known) = known.filter(is_same) {
        return Ok(Some(known.clone()));
    }
    let path = path.as_str();
    let data = link
        .call(|client| async move { client.get_data(path).await })
        .await;
    match data {
        // Deleted and created again in between: another contender.
        Ok((_, stat)) if stat.czxid != contender.czxid => Ok(None),
        Ok((data, stat)) => Ok(Some(KnownOwner {
            version: stat.version,
            read: match owner_value::printable_owner(&data) {
                Some(owner) => OwnerRead {
                    owner,
                    session,
                    note: None,
                },
                None => OwnerRead::by_session(session, None),
            },
        })),
        Err(fault) if fault.is_no_node() => Ok(None),
        Err(fault) if fault.is_hidden() => Ok(Some(by_session(Some(HIDDEN_DATA)))),
        Err(fault) => Err(fault),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_and_nodes_with_a_ttl_have_no_session() {
        // A persistent node, a container, a TTL of an hour; sessions of the servers 0, 1, 200 and 255.
        for owner in [0, i64::MIN, 0xff00_0000_0036_ee80_u64.cast_signed()] {
            assert!(!is_session(owner), "{owner:x}");
        }
        for session in [
            0x1,
            0x0100_0198_4a2b_0000,
            0xc801_984a_2b3c_0000,
            0xff01_984a_2b3c_0000,
        ] {
            assert!(is_session(u64::cast_signed(session)), "{session:x}");
        }
    }
}
