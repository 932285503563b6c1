//! Quorum of a lock that is stored on several independent nodes (Redlock): what each node has,
//! and what follows from it. Pure.

use serde::{Deserialize, Serialize};

use crate::escape::visible;
use crate::names::OwnerId;

crate::wire_enum! {
    /// What the values on the nodes mean together. The names are stable.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum QuorumState {
        /// One value is on more than half of the nodes.
        Held = "held",
        /// At least two values, none on a quorum.
        Split = "split",
        /// One value on a minority, never seen on a quorum.
        Leftover = "leftover",
        /// One value on a minority that was on a quorum before.
        Lost = "lost",
        /// Nodes that do not answer leave it open.
        Unknown = "unknown",
    }
}

/// Reply of one node about one lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeReply<V> {
    Unreachable,
    Empty,
    Value(V),
}

/// Name of a node, in configured order, for a reader who may not see its address.
pub fn node_number(index: usize) -> String {
    format!("node {}", index + 1)
}

/// Nodes that make a quorum of `nodes`.
pub const fn quorum_of(nodes: usize) -> usize {
    nodes / 2 + 1
}

/// Distinct values with the number of their nodes: most nodes first, then in order of the nodes.
pub fn tally<V: PartialEq + Copy>(replies: &[NodeReply<V>]) -> Vec<(V, usize)> {
    let mut counts: Vec<(V, usize)> = Vec::new();
    for reply in replies {
        if let NodeReply::Value(value) = reply {
            match counts.iter_mut().find(|(known, _)| known == value) {
                Some((_, count)) => *count += 1,
                None => counts.push((*value, 1)),
            }
        }
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}

/// The state of one lock; `None` if no node that answers has the key. `was_held` tells whether
/// a value has been seen on a quorum.
pub fn judge<V: PartialEq + Copy>(
    replies: &[NodeReply<V>],
    was_held: impl Fn(V) -> bool,
) -> Option<QuorumState> {
    let counts = tally(replies);
    let needed = quorum_of(replies.len());
    let &(value, count) = counts.first()?;
    let silent = replies
        .iter()
        .filter(|reply| matches!(reply, NodeReply::Unreachable))
        .count();
    Some(if count >= needed {
        QuorumState::Held
    } else if counts.len() > 1 {
        QuorumState::Split
    } else if count + silent >= needed {
        QuorumState::Unknown
    } else if was_held(value) {
        QuorumState::Lost
    } else {
        QuorumState::Leftover
    })
}

/// Time until fewer than `needed` of the values remain; `None` if that never happens. Each item
/// is the time left on one node, `None` without a TTL. With fewer values than `needed`: until
/// the last one is gone.
pub fn remaining_ms(mut left_ms: Vec<Option<i64>>, needed: usize) -> Option<i64> {
    // Without a TTL is longest.
    left_ms.sort_by_key(|ms| std::cmp::Reverse(ms.unwrap_or(i64::MAX)));
    let at = if left_ms.len() >= needed { needed - 1 } else { 0 };
    left_ms.get(at).copied().flatten()
}

/// One node as the page of a lock shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeCell {
    /// `host:port`; a number for a reader of a part of the backend.
    pub node: String,
    pub reachable: bool,
    /// Rank of its value among the values of this lock: 0 is on most nodes. `None`: no key, or
    /// not known.
    pub rank: Option<u8>,
    /// The value or its fingerprint.
    pub value: Option<String>,
    pub owner_id: Option<OwnerId>,
    /// `None`: no key, no TTL, or not known.
    pub remaining_ms: Option<i64>,
    /// Time since the node last answered; `None`: it never did.
    pub age_ms: Option<i64>,
    /// Duration of this reading.
    pub answer_ms: Option<i64>,
    pub clock_offset_ms: Option<i64>,
    /// Why it does not answer.
    pub fault: Option<String>,
}

impl NodeCell {
    /// It has the key, and the key has no TTL.
    pub const fn has_no_ttl(&self) -> bool {
        self.rank.is_some() && self.remaining_ms.is_none()
    }
}

/// One lock on all of its nodes, in configured order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Quorum {
    pub state: QuorumState,
    pub needed: u32,
    pub nodes: Vec<NodeCell>,
}

/// One value with its nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueTally<'a> {
    pub owner: &'a str,
    pub value: &'a str,
    pub nodes: u32,
}

impl Quorum {
    /// Without the addresses and error texts of nodes, for a reader who may see only a part of the backend.
    #[must_use]
    pub fn limited(mut self) -> Self {
        for (index, node) in self.nodes.iter_mut().enumerate() {
            node.node = node_number(index);
            node.fault = None;
        }
        self
    }

    /// The values, those on most nodes first.
    pub fn tallies(&self) -> Vec<ValueTally<'_>> {
        let mut tallies: Vec<ValueTally<'_>> = Vec::new();
        for rank in 0..u8::MAX {
            let mut nodes = self.nodes.iter().filter(|cell| cell.rank == Some(rank));
            let Some(first) = nodes.next() else { break };
            tallies.push(ValueTally {
                owner: first
                    .owner_id
                    .as_ref()
                    .map_or("an unknown owner", OwnerId::as_str),
                value: first.value.as_deref().unwrap_or_default(),
                nodes: 1 + u32::try_from(nodes.count()).unwrap_or(0),
            });
        }
        tallies
    }

    pub fn unreachable(&self) -> impl Iterator<Item = &NodeCell> {
        self.nodes.iter().filter(|cell| !cell.reachable)
    }

    /// The finding as a headline and an explanation.
    pub fn sentence(&self) -> (String, String) {
        let (needed, total) = (self.needed, self.nodes.len());
        let tallies = self.tallies();
        let owners = tallies
            .iter()
            .map(|tally| format!("{} has {}", visible(tally.owner), tally.nodes))
            .collect::<Vec<_>>()
            .join(", ");
        let silent: Vec<&str> = self.unreachable().map(|cell| cell.node.as_str()).collect();
        let silent = silent.join(" and ");
        let head = match self.state {
            QuorumState::Held => {
                let first = tallies.first();
                let owner = first.map_or(String::new(), |tally| visible(tally.owner).into_owned());
                let nodes = first.map_or(0, |tally| tally.nodes);
                format!("{owner} has a quorum: {nodes} of {total} nodes.")
            }
            QuorumState::Split => format!("No owner is seen on {needed} of the {total} nodes."),
            QuorumState::Leftover => "The value is on a minority and was never seen on a quorum.".to_owned(),
            QuorumState::Lost => "The value was on a quorum and is on a minority now.".to_owned(),
            QuorumState::Unknown => "Whether the value is on a quorum is not known.".to_owned(),
        };
        let mut body = if self.state == QuorumState::Held && tallies.len() < 2 {
            String::new()
        } else {
            format!("{owners}.")
        };
        if !silent.is_empty() {
            let consequence = match self.state {
                QuorumState::Split => "If it has one of these values, that owner may have a quorum.",
                QuorumState::Unknown => "If it has the value, its owner has a quorum.",
                QuorumState::Held | QuorumState::Leftover | QuorumState::Lost => {
                    "It does not change the result."
                }
            };
            body = format!("{body} {silent} does not answer. {consequence}");
        }
        (head, body.trim_start().to_owned())
    }
}

#[cfg(test)]
mod tests;
