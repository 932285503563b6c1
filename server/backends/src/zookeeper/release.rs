//! Forced unlock: deletes the holders' nodes if they are exactly the ones reviewed. Their
//! sessions, and the sessions' other nodes, stay.
//!
//! ZooKeeper can delete by path and by version of the data, but not by czxid, and a parent that
//! was deleted and created again gives the same names again. So the release first joins the
//! queue like any client: a parent with a child cannot be deleted, and its counter only rises, so
//! from then on each name is that of the node read or of none. Then it compares the czxids, and
//! deletes the holders' nodes and its own in one transaction.
//!
//! **Invariant**: the deletion is sent once, and only for nodes whose czxids were compared while
//! the parent could not be replaced.

use domain::force_release::{BlastRadius, Release};
use domain::generation::Generation;
use domain::names::{OwnerId, Resource, Source};
use runtime::random;
use zookeeper_client::{Acl, Acls, AuthId, Client, CreateMode, Error, MultiWriteError, Permission};

use super::ZookeeperBackend;
use super::connection::Link;
use super::contender::ContenderName;
use super::error::{ZookeeperError, ZookeeperErrorKind};
use super::node::{Contender, Found, LockNode};
use super::row::{self, HIDDEN};
use super::settings::join;
use crate::release::{Acted, check_generation, confirm_release, explain_unlock_account};
use crate::{Backend, BackendError};

pub(super) const HOW: &str = "the holder's node is deleted if its czxid is the one seen; its session and the session's \
                              other nodes stay";
pub(super) const NO_ACCOUNT: &str =
    "no `unlock_user` is configured; docs/backends/zookeeper.md has the account to create";
const LOGIN_REMEDY: &str =
    "Check `unlock_user` and `unlock_password`, and that the digest provider is enabled on the servers.";
/// Most sharers that one transaction releases.
const HOLDERS_MAX: usize = 1_000;

/// Only the holders' nodes are deleted.
pub(super) fn radius(node: &LockNode, next: Option<OwnerId>) -> BlastRadius {
    let mut radius = BlastRadius {
        next,
        ..BlastRadius::default()
    };
    match node.holder_count() {
        0 | 1 => {}
        count => radius.warn(format!("{count} readers share this lock; all of them lose it.")),
    }
    radius.warn("ZooKeeper does not notify the holder: it continues unless it watches its node.");
    radius
}

pub(super) async fn release(
    backend: &ZookeeperBackend,
    source: &Source,
    resource: &Resource,
    expected: &Generation,
) -> Result<Release, BackendError> {
    let Some(unlocks) = &backend.unlocks else {
        return Ok(Release::refused(
            NO_ACCOUNT,
            "Set `unlock_user` and `unlock_password`.",
        ));
    };
    if !backend.link.settings.covers(&resource.text()) {
        return Ok(Release::refused(
            "the name is not below a configured path",
            "Add its folder to `paths`.",
        ));
    }
    backend.link.sync().await.map_err(|fault| fault.error)?;
    let found = backend
        .find(source, resource)
        .await
        .map_err(|fault| fault.error)?;
    let node = match found {
        Found::Lock(node) => *node,
        Found::Hidden(_) => {
            return Ok(Release::refused(
                HIDDEN,
                "Grant the watching account READ on this node.",
            ));
        }
        Found::Free | Found::Missing => return Ok(Release::AlreadyFree),
    };
    if row::generation(node.holders()) != *expected {
        let seen = backend.inspect(source, resource).await?;
        if let Err(answer) = check_generation(&seen, expected) {
            return Ok(answer);
        }
    }
    if node.holder_count() > HOLDERS_MAX {
        return Ok(Release::refused(
            format!("more than {HOLDERS_MAX} readers share it"),
            "Stop the readers, or release it with their own client.",
        ));
    }
    let acted = unlock(unlocks, &node, expected).await?;
    confirm_release(backend, source, resource, expected, acted).await
}

/// On a session of its own: whatever it leaves behind ends with the session.
async fn unlock(unlocks: &Link, node: &LockNode, expected: &Generation) -> Result<Acted, BackendError> {
    let timeout = unlocks.settings.timeout;
    let no_answer = |_| ZookeeperError::no_answer(unlocks.settings.timeout_ms()).error;
    let client = unlocks.connect().await;
    let client = client.map_err(|fault| explain_unlock_account(fault.error, LOGIN_REMEDY))?;
    let join_queue = join_queue(unlocks, &client, node);
    let own_node = match tokio::time::timeout(timeout, join_queue)
        .await
        .map_err(no_answer)?
    {
        Ok(own_node) => own_node,
        Err(Error::NoNode) => return Ok(Acted::Missed),
        Err(Error::NoAuth) => return Ok(denied(unlocks, &node.path)),
        Err(error) => return Err(ZookeeperError::from(error).error),
    };
    let compared = tokio::time::timeout(timeout, compare(&client, node, expected)).await;
    let acted = match compared
        .map_err(no_answer)
        .and_then(|compared| compared.map_err(|fault| fault.error))
    {
        Ok(Some(())) => delete(unlocks, &client, node, &own_node).await,
        Ok(None) => Ok(Acted::Missed),
        Err(error) => Err(error),
    };
    if acted != Ok(Acted::Done) {
        // Its session ends with this function; this removes it sooner.
        let _ = tokio::time::timeout(timeout, client.delete(&own_node, None)).await;
    }
    acted
}

/// A contender of our own, at the end of the queue. Returns its path.
async fn join_queue(unlocks: &Link, client: &Client, node: &LockNode) -> Result<String, Error> {
    let prefix = node
        .queue
        .first()
        .and_then(|first| ContenderName::parse(&first.name));
    let prefix = prefix.map_or_else(String::new, |name| name.prefix_with(&random::id()));
    let path = join(&node.path, &prefix);
    // Everyone may read it: clients read the data of a queue.
    let world = Acl::new(Permission::READ, AuthId::new("world", "anyone"));
    let creator = Acl::new(Permission::ALL, AuthId::new("auth", ""));
    let known = [world, creator];
    let acls = match unlocks.settings.digest() {
        Some(_) => Acls::new(&known),
        None => Acls::anyone_all(),
    };
    let options = CreateMode::EphemeralSequential.with_acls(acls);
    let (_, sequence) = client.create(&path, b"leasehold-unlock", &options).await?;
    Ok(format!("{path}{sequence}"))
}

/// Whether the holders' nodes are those of the generation; `None` if not. The server has applied all that precedes our own
/// contender.
async fn compare(
    client: &Client,
    node: &LockNode,
    expected: &Generation,
) -> Result<Option<()>, ZookeeperError> {
    let mut holders: Vec<Contender> = node.holders().to_vec();
    for holder in &mut holders {
        match client.check_stat(&join(&node.path, &holder.name)).await? {
            Some(stat) => holder.czxid = stat.czxid,
            None => return Ok(None),
        }
    }
    Ok((row::generation(&holders) == *expected).then_some(()))
}

/// All of them, and our own node, or none.
async fn delete(
    unlocks: &Link,
    client: &Client,
    node: &LockNode,
    own_node: &str,
) -> Result<Acted, BackendError> {
    let mut act = client.new_multi_writer();
    let paths = node.holders().iter().map(|holder| join(&node.path, &holder.name));
    for path in paths.chain([own_node.to_owned()]) {
        act.add_delete(&path, None)
            .map_err(|error| ZookeeperError::from(error).error)?;
    }
    let answer = tokio::time::timeout(unlocks.settings.timeout, act.commit()).await;
    let Ok(answer) = answer else {
        let no_answer = ZookeeperError::no_answer(unlocks.settings.timeout_ms());
        return Ok(Acted::unanswered(&no_answer.error));
    };
    let error = match answer {
        Ok(_) => return Ok(Acted::Done),
        Err(MultiWriteError::OperationFailed { source, .. } | MultiWriteError::RequestFailed { source }) => {
            ZookeeperError::from(source)
        }
    };
    Ok(match error.kind {
        ZookeeperErrorKind::Transport => Acted::unanswered(&error.error),
        ZookeeperErrorKind::NoNode => Acted::Missed,
        ZookeeperErrorKind::NoAuth => denied(unlocks, &node.path),
        ZookeeperErrorKind::Unimplemented | ZookeeperErrorKind::Other => Acted::refused(&error.error),
    })
}

fn denied(unlocks: &Link, path: &str) -> Acted {
    let user = unlocks.settings.user.as_ref();
    let user = user.map_or("this account", |user| user.name.as_str());
    Acted::Refused {
        why: format!("the ACL of {path} does not let {user} create and delete its children"),
        remedy: format!(
            "Add it to the ACL of the node: setAcl {path} <the present ACL>,digest:leasehold-unlock:<digest>:cdr"
        ),
    }
}
