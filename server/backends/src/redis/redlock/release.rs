//! Forced unlock on all nodes: compare-and-delete on each, with a result per node.
//!
//! **Invariant:** the result is `released` only if fewer than a quorum of the nodes can still
//! have the value. Where a quorum of the nodes does not answer, nothing is sent.

use std::collections::BTreeSet;

use domain::force_release::{NodeRelease, NodeResult, Release};
use domain::generation::Generation;
use domain::names::Resource;
use futures::future::join_all;

use super::Redlock;
use super::merge::split_generation;
use super::node_reads::{self, Connections, KeyReplies, NodeValue};
use crate::BackendError;
use crate::redis::RedisBackend;
use crate::redis::node::Node;
use crate::redis::release::{self as script, Attempt, Guard};
use crate::redis::settings::Settings;
use crate::release::{Acted, confirm_release};
use config::redis::RedisWake;

pub(in crate::redis) const HOW: &str = "a script on each node deletes the key if it still holds the value seen; released if \
                                         fewer than a quorum of the nodes can still have it";

pub(in crate::redis) async fn release(
    backend: &RedisBackend,
    redlock: &Redlock,
    resource: &Resource,
    expected: &Generation,
) -> Result<Release, BackendError> {
    let settings = &backend.settings;
    for node in &redlock.nodes {
        if let Err(refused) = script::may_release(settings, node.unlocks.as_ref(), resource) {
            return Ok(refused);
        }
    }
    let connections = Connections::open(settings, &redlock.nodes, |node| &node.query_link).await?;
    if connections.unanswered_count() >= redlock.quorum() {
        return Ok(too_few(redlock, &connections));
    }
    let all = node_reads::read(settings, &connections, vec![resource.as_bytes().to_vec()]).await?;
    // The read leaves out nodes that do not answer it.
    if connections.unanswered_count() >= redlock.quorum() {
        return Ok(too_few(redlock, &connections));
    }
    let targets = all.keys.first().map(|key| targets(key, expected));
    let Some((key, values)) = all.keys.first().zip(targets.flatten()) else {
        return confirm_release(backend, &redlock.source, resource, expected, Acted::Missed).await;
    };
    let deletes = redlock
        .nodes
        .iter()
        .map(|node| delete_on(settings, node, resource.as_bytes(), &values));
    let nodes = join_all(deletes).await;
    let result = conclude(redlock, key, &values, &nodes);
    let result = match result {
        Some(result) => result,
        None => confirm_release(backend, &redlock.source, resource, expected, Acted::Missed).await?,
    };
    if result == Release::Released {
        let mut history = redlock.history.lock();
        let hash = history.hash(&key.key);
        history.forget(hash);
    }
    Ok(Release::OnNodes {
        result: Box::new(result),
        nodes,
    })
}

fn too_few(redlock: &Redlock, connections: &Connections<'_>) -> Release {
    let unanswered: Vec<&str> = (0..redlock.nodes.len())
        .filter(|index| connections.is_unanswered(*index))
        .filter_map(|index| redlock.nodes.get(index).map(Node::name))
        .collect();
    Release::refused(
        format!(
            "{} of {} nodes do not answer ({}), so the value could still be on a quorum afterwards; nothing was deleted",
            unanswered.len(),
            redlock.nodes.len(),
            unanswered.join(", ")
        ),
        "Restore these nodes, then review the lock again.",
    )
}

/// The values to delete; `None` if the nodes have others by now.
fn targets(key: &KeyReplies, expected: &Generation) -> Option<BTreeSet<Box<str>>> {
    let locks = || {
        key.replies.iter().filter_map(|reply| match reply {
            NodeValue::Value(lock) => Some(&**lock),
            NodeValue::Unreachable | NodeValue::Empty => None,
        })
    };
    let values: BTreeSet<Box<str>> = locks()
        .filter_map(|lock| lock.generation.known())
        .map(|generation| generation.as_str().into())
        .collect();
    if values.contains(expected.as_str()) {
        return Some([Box::from(expected.as_str())].into());
    }
    (values.len() > 1 && split_generation(locks()) == *expected).then_some(values)
}

async fn delete_on(settings: &Settings, node: &Node, key: &[u8], values: &BTreeSet<Box<str>>) -> NodeRelease {
    let (result, why) = match try_delete(settings, node, key, values).await {
        Ok((result, why)) => (result, why),
        Err(error) => (NodeResult::Unreachable, Some(error.to_string())),
    };
    NodeRelease {
        node: node.name().to_owned(),
        result,
        why,
    }
}

/// # Errors
/// Nothing was sent that could change the key.
async fn try_delete(
    settings: &Settings,
    node: &Node,
    key: &[u8],
    values: &BTreeSet<Box<str>>,
) -> Result<(NodeResult, Option<String>), BackendError> {
    let Some(link) = &node.unlocks else {
        return Ok((NodeResult::Refused, Some(script::NO_ACCOUNT.to_owned())));
    };
    let connection = tokio::time::timeout(settings.timeout, link.connection())
        .await
        .unwrap_or_else(|_| Err(crate::redis::error::no_answer(settings.timeout)))?;
    for value in values {
        let expected = Generation::new(value.clone());
        let attempt =
            script::delete_if_same(&connection, key, &expected, (Guard::None, RedisWake::None)).await;
        match attempt {
            Ok(Attempt::Acted(Acted::Missed)) => {}
            Ok(Attempt::Acted(Acted::Done)) => return Ok((NodeResult::Deleted, None)),
            Ok(Attempt::Acted(Acted::Refused { why, .. })) => return Ok((NodeResult::Refused, Some(why))),
            Ok(Attempt::Acted(Acted::Unknown { why })) => {
                link.discard(&connection).await;
                return Ok((NodeResult::Unknown, Some(why)));
            }
            Ok(Attempt::Moved(_)) => {
                return Ok((
                    NodeResult::Refused,
                    Some("the server belongs to a cluster".to_owned()),
                ));
            }
            Err(error) => {
                link.discard(&connection).await;
                return Err(error);
            }
        }
    }
    Ok(if script::exists(&connection, key).await? {
        (NodeResult::OtherValue, None)
    } else {
        (NodeResult::NoKey, None)
    })
}

/// The result of all nodes; `None` if no node had the value any more.
fn conclude(
    redlock: &Redlock,
    key: &KeyReplies,
    values: &BTreeSet<Box<str>>,
    nodes: &[NodeRelease],
) -> Option<Release> {
    let had = |reply: &NodeValue| match reply {
        NodeValue::Unreachable => true,
        NodeValue::Empty => false,
        NodeValue::Value(lock) => lock
            .generation
            .known()
            .is_some_and(|generation| values.contains(generation.as_str())),
    };
    let may_have: Vec<&NodeRelease> = nodes
        .iter()
        .zip(&key.replies)
        .filter(|(node, reply)| {
            let is_open = matches!(
                node.result,
                NodeResult::Refused | NodeResult::Unreachable | NodeResult::Unknown
            );
            is_open && had(reply)
        })
        .map(|(node, _)| node)
        .collect();
    let count = |result| nodes.iter().filter(|node| node.result == result).count();
    let deleted = count(NodeResult::Deleted);
    if may_have.len() < redlock.quorum() {
        return if deleted > 0 {
            Some(Release::Released)
        } else {
            nothing_deleted(&may_have)
        };
    }
    let node_names = may_have
        .iter()
        .map(|node| {
            let why = node.why.as_deref().unwrap_or("no reason given");
            format!("{} {}: {why}", node.node, node.result.label())
        })
        .collect::<Vec<_>>()
        .join("; ");
    let why = format!(
        "deleted on {deleted} of {} nodes; {} can still have the value, which is a quorum ({node_names})",
        nodes.len(),
        may_have.len()
    );
    Some(if count(NodeResult::Unknown) > 0 {
        Release::OutcomeUnknown { why }
    } else {
        Release::refused(
            why,
            "Correct the named cause on these nodes, then review the lock again.",
        )
    })
}

/// No node has reported a deletion; `None`: none had the value any more.
fn nothing_deleted(may_have: &[&NodeRelease]) -> Option<Release> {
    let unknown = may_have.iter().find(|node| node.result == NodeResult::Unknown);
    let node = unknown.or(may_have.first())?;
    let why = node.why.as_deref().unwrap_or("no reason given");
    let why = format!("{} {}: {why}", node.node, node.result.label());
    Some(if unknown.is_some() {
        Release::OutcomeUnknown { why }
    } else {
        Release::refused(
            format!("nothing was deleted: {why}"),
            "Correct the named cause on this node, then review the lock again.",
        )
    })
}
