//! One lock read fresh on all nodes.

use domain::names::{OwnerId, Resource};
use domain::observation::{Inspection, Lifetime, ObservedLock, RawField};
use domain::quorum::{self, NodeCell, NodeReply, Quorum, QuorumState};
use domain::reported::Reported;

use super::Redlock;
use super::merge::Merged;
use super::node_reads::{self, Connections, KeyReplies, NodeReads, NodeValue};
use crate::BackendError;
use crate::redis::release;
use crate::redis::settings::Settings;

/// Reads one key on all nodes.
pub(in crate::redis) async fn inspect(
    redlock: &Redlock,
    settings: &Settings,
    resource: &Resource,
) -> Result<Inspection, BackendError> {
    if !settings.is_ours(resource) {
        return Ok(Inspection::default());
    }
    let connections = Connections::open(settings, &redlock.nodes, |node| &node.query_link).await?;
    let all = node_reads::read(settings, &connections, vec![resource.as_bytes().to_vec()]).await?;
    let Some(key) = all.keys.first() else {
        return Ok(Inspection::default());
    };
    let merger = redlock.merger();
    let merged = merger.merge(key, &mut redlock.history.lock());
    let row = match merged {
        Merged::Row(row) | Merged::Unconfirmed { row, .. } => merger.with_lifetime(*row, key),
        Merged::Absent => {
            // The nodes that do not answer could have it on a quorum.
            return if connections.unanswered_count() < redlock.quorum() {
                Ok(Inspection::default())
            } else {
                Err(BackendError::Unreachable {
                    detail: format!(
                        "{} of {} nodes do not answer",
                        connections.unanswered_count(),
                        redlock.nodes.len()
                    ),
                })
            };
        }
    };
    let owners = owners(key);
    let mut radius = release::radius(&row, &[], settings.wake, None);
    if let Reported::Value(radius) = &mut radius {
        for warning in warnings(redlock, key, connections.unanswered_count()) {
            radius.warn(warning);
        }
    }
    Ok(Inspection {
        blast_radius: radius,
        quorum: Some(view(redlock, settings, &all, key)),
        raw: raw(redlock, key),
        lock: Some(row),
        owners,
        ..Inspection::default()
    })
}

/// What a forced unlock does on the nodes.
fn warnings(redlock: &Redlock, key: &KeyReplies, unanswered: usize) -> Vec<String> {
    let total = redlock.nodes.len();
    let values = key
        .replies
        .iter()
        .filter(|reply| matches!(reply, NodeValue::Value(_)))
        .count();
    let mut lines = vec![format!(
        "The release compares and deletes on all {total} nodes; {values} have a value now."
    )];
    if unanswered > 0 {
        lines.push(format!(
            "{unanswered} of {total} nodes do not answer and may keep a copy until its TTL ends."
        ));
    }
    lines
}

/// Each owner once, most nodes first.
fn owners(key: &KeyReplies) -> Vec<OwnerId> {
    let found: Vec<NodeReply<&OwnerId>> = values(key)
        .filter_map(|lock| lock.owner.known().map(NodeReply::Value))
        .collect();
    quorum::tally(&found)
        .into_iter()
        .map(|(owner, _)| owner.clone())
        .collect()
}

fn values(key: &KeyReplies) -> impl Iterator<Item = &ObservedLock> {
    key.replies.iter().filter_map(|reply| match reply {
        NodeValue::Value(lock) => Some(&**lock),
        NodeValue::Unreachable | NodeValue::Empty => None,
    })
}

fn view(redlock: &Redlock, settings: &Settings, all: &NodeReads, key: &KeyReplies) -> Quorum {
    let generations: Vec<NodeReply<&str>> = key
        .replies
        .iter()
        .map(|reply| match reply {
            NodeValue::Unreachable => NodeReply::Unreachable,
            NodeValue::Empty => NodeReply::Empty,
            NodeValue::Value(lock) => NodeReply::Value(
                lock.generation
                    .known()
                    .map_or("", domain::generation::Generation::as_str),
            ),
        })
        .collect();
    let ranks: Vec<&str> = quorum::tally(&generations)
        .into_iter()
        .map(|(value, _)| value)
        .collect();
    let state = redlock.state(key);
    let now = settings.clock.tick();
    let replies = key.replies.iter().zip(&redlock.nodes).enumerate();
    Quorum {
        state: state.unwrap_or(QuorumState::Unknown),
        needed: u32::try_from(redlock.quorum()).unwrap_or(u32::MAX),
        nodes: replies
            .map(|(index, (reply, node))| {
                let health = node.health();
                let mut view = NodeCell {
                    node: node.name().to_owned(),
                    reachable: !matches!(reply, NodeValue::Unreachable),
                    rank: None,
                    value: None,
                    owner_id: None,
                    remaining_ms: None,
                    age_ms: health.answered_at.map(|at| now.since(at)),
                    answer_ms: all.answer_ms.get(index).copied().flatten(),
                    clock_offset_ms: health.clock_offset_ms,
                    fault: health.fault,
                };
                if let NodeValue::Value(lock) = reply {
                    let generation = lock
                        .generation
                        .known()
                        .map(domain::generation::Generation::as_str);
                    let rank = ranks.iter().position(|value| Some(*value) == generation);
                    view.rank = rank.and_then(|rank| u8::try_from(rank).ok());
                    view.value = generation.map(short_generation);
                    view.owner_id = lock.owner.known().cloned();
                    view.remaining_ms = match &lock.lifetime {
                        Lifetime::Leased { remaining_ms, .. } => Some(*remaining_ms),
                        _ => None,
                    };
                }
                view
            })
            .collect(),
    }
}

/// `value:2bb80d537b…` as `2bb80d53`: the same digits as an owner's fingerprint.
fn short_generation(generation: &str) -> String {
    let digits = generation
        .split_once(':')
        .map_or(generation, |(_, digits)| digits);
    digits.chars().take(8).collect()
}

fn raw(redlock: &Redlock, key: &KeyReplies) -> Vec<RawField> {
    let replies = key.replies.iter().zip(&redlock.nodes);
    replies
        .map(|(reply, node)| RawField {
            name: node.name().to_owned(),
            value: match reply {
                NodeValue::Unreachable => "unreachable".to_owned(),
                NodeValue::Empty => "no key".to_owned(),
                NodeValue::Value(lock) => {
                    let owner = lock.owner.known().map_or("unreadable", OwnerId::as_str);
                    let left = match &lock.lifetime {
                        Lifetime::Leased { remaining_ms, .. } => format!("PTTL {remaining_ms} ms"),
                        _ => "no TTL".to_owned(),
                    };
                    format!("{owner}, {left}")
                }
            },
        })
        .collect()
}
