//! Turns the replies of one key into one row: the value on most nodes, with the state of the whole.

use std::borrow::Cow;

use domain::generation::Generation;
use domain::names::{OwnerId, Source};
use domain::observation::{Lifetime, ObservedCondition, ObservedLock};
use domain::quorum::{self, NodeReply, QuorumState};
use domain::reported::Reported;

use super::node_reads::{KeyReplies, NodeValue};
use super::quorum_history::{QuorumHistory, QuorumVerdict};
use crate::redis::fingerprint::Fingerprint;

const NO_OWNER: &str = "no value is on a quorum of the nodes";
const NO_LEASE: &str = "several values are on the nodes, none on a quorum";

/// Result for one key.
#[derive(Debug)]
pub(super) enum Merged {
    /// No node that answers has the key.
    Absent,
    Row(Box<ObservedLock>),
    /// Without a quorum, or with two owners: to be confirmed by a second, equal reading.
    Unconfirmed {
        signature: u64,
        row: Box<ObservedLock>,
    },
}

/// A value with its nodes.
struct Held<'a> {
    lock: &'a ObservedLock,
    nodes: Vec<&'a str>,
}

/// Values that are the same for all keys of a reading.
pub(super) struct Merger<'a> {
    pub(super) source: &'a Source,
    /// Names of the nodes.
    pub(super) names: Vec<&'a str>,
}

impl<'a> Merger<'a> {
    pub(super) fn merge(&self, key: &'a KeyReplies, history: &mut QuorumHistory) -> Merged {
        if let Some(row) = self.unrecognised(key) {
            return Merged::Row(Box::new(row));
        }
        let replies: Vec<NodeReply<u64>> = key.replies.iter().map(|reply| hashed(reply, history)).collect();
        let key_hash = history.hash(&key.key);
        let Some(verdict) = history.judge(key_hash, &replies) else {
            return Merged::Absent;
        };
        let values = self.values(key, &replies);
        let Some(mut row) = self.row(&verdict, &values) else {
            return Merged::Absent;
        };
        row.condition = self.condition(&verdict, &values, &replies);
        let is_clear = verdict.state == QuorumState::Held && verdict.overtaken.is_none();
        if is_clear {
            history.unconfirm(key_hash);
            return Merged::Row(Box::new(row));
        }
        let signature = history.hash(replies.iter().map(signed).collect::<Vec<_>>());
        if history.is_confirmed(key_hash, signature) {
            return Merged::Row(Box::new(row));
        }
        Merged::Unconfirmed {
            signature,
            row: Box::new(row),
        }
    }

    /// A key that is no lock on one of the nodes.
    fn unrecognised(&self, key: &KeyReplies) -> Option<ObservedLock> {
        let unknown = key.replies.iter().find_map(|reply| match reply {
            NodeValue::Value(lock) if !lock.generation.is_known() => Some(lock),
            _ => None,
        })?;
        Some(ObservedLock {
            source: self.source.clone(),
            ..(**unknown).clone()
        })
    }

    /// Most nodes first.
    fn values(&self, key: &'a KeyReplies, replies: &[NodeReply<u64>]) -> Vec<Held<'a>> {
        quorum::tally(replies)
            .into_iter()
            .filter_map(|(value, _)| {
                let on = |at: &usize| replies.get(*at) == Some(&NodeReply::Value(value));
                let places: Vec<usize> = (0..replies.len()).filter(on).collect();
                let lock = places.first().and_then(|at| match key.replies.get(*at) {
                    Some(NodeValue::Value(lock)) => Some(&**lock),
                    _ => None,
                })?;
                let nodes = places.iter().filter_map(|at| self.names.get(*at).copied());
                Some(Held {
                    lock,
                    nodes: nodes.collect(),
                })
            })
            .collect()
    }

    fn row(&self, verdict: &QuorumVerdict, values: &[Held<'_>]) -> Option<ObservedLock> {
        let first = values.first()?;
        let mut row = ObservedLock {
            source: self.source.clone(),
            sharers: Vec::new(),
            ..first.lock.clone()
        };
        if verdict.state == QuorumState::Split {
            row.owner = Reported::unknown(NO_OWNER);
            row.lease_id = Reported::unknown(NO_LEASE);
            row.owner_count = u32::try_from(values.len()).unwrap_or(u32::MAX);
            row.generation = Reported::Value(split_generation(values.iter().map(|held| held.lock)));
        } else if verdict.overtaken.is_some() {
            row.owner_count = 2;
        }
        Some(row)
    }

    fn condition(
        &self,
        verdict: &QuorumVerdict,
        values: &[Held<'_>],
        replies: &[NodeReply<u64>],
    ) -> Option<ObservedCondition> {
        let total = self.names.len();
        let unanswered = self.unanswered_text(replies);
        let first = values.first()?;
        let on = first.nodes.join(", ");
        let count = first.nodes.len();
        Some(match verdict.state {
            QuorumState::Held => {
                let why = self.two_owners(verdict.overtaken?, values, replies)?;
                ObservedCondition::DualOwner { why: why.into() }
            }
            QuorumState::Split => {
                let why = format!("{}{unanswered}", split_text(values, total));
                ObservedCondition::Split { why: why.into() }
            }
            QuorumState::Lost => {
                let why = format!(
                    "Its value had a quorum and is on {count} of {total} nodes now: {on}{unanswered}"
                );
                ObservedCondition::QuorumLost { why: why.into() }
            }
            QuorumState::Leftover => {
                let why = format!(
                    "Its value is on {count} of {total} nodes, {on}, and was never seen on a quorum: it was left by an \
                     attempt or by a release{unanswered}"
                );
                ObservedCondition::Orphaned { why: why.into() }
            }
            QuorumState::Unknown => {
                let why = format!(
                    "Its value is on {count} of {total} nodes, {on}: whether it has a quorum is not known{unanswered}"
                );
                ObservedCondition::Undecided { why: why.into() }
            }
        })
    }

    /// Empty if every node answers.
    fn unanswered_text(&self, replies: &[NodeReply<u64>]) -> String {
        let unanswered: Vec<&str> = replies
            .iter()
            .zip(&self.names)
            .filter(|(reply, _)| **reply == NodeReply::Unreachable)
            .map(|(_, name)| *name)
            .collect();
        if unanswered.is_empty() {
            String::new()
        } else {
            format!("; {} does not answer", unanswered.join(", "))
        }
    }

    fn two_owners(&self, before: u64, values: &[Held<'_>], replies: &[NodeReply<u64>]) -> Option<String> {
        let first = values.first()?;
        let place = replies
            .iter()
            .position(|reply| *reply == NodeReply::Value(before))?;
        let name = self.names.get(place)?;
        let former = values.iter().find(|held| held.nodes.contains(name))?;
        Some(format!(
            "{} has {} of {} nodes, while {}, which had a quorum before, still has {}",
            owner(first.lock),
            first.nodes.len(),
            self.names.len(),
            owner(former.lock),
            former.nodes.join(", ")
        ))
    }

    /// Sets the time left of a row from the replies that have its value.
    pub(super) fn with_lifetime(&self, mut row: ObservedLock, key: &KeyReplies) -> ObservedLock {
        let is_same = |lock: &ObservedLock| lock.generation == row.generation;
        let values = key.replies.iter().filter_map(|reply| match reply {
            NodeValue::Value(lock) => Some(&**lock),
            NodeValue::Unreachable | NodeValue::Empty => None,
        });
        let is_any = !values.clone().any(is_same);
        let counted = values.filter(|lock| is_any || is_same(lock));
        let left: Vec<Option<i64>> = counted.filter_map(|lock| left_ms(&lock.lifetime)).collect();
        if left.is_empty() {
            return row;
        }
        // With several values: until the last one is gone.
        let needed = if is_any {
            1
        } else {
            quorum::quorum_of(self.names.len())
        };
        row.lifetime = match quorum::remaining_ms(left, needed) {
            Some(remaining_ms) => Lifetime::Leased {
                remaining_ms,
                ttl_ms: Reported::unknown(crate::redis::rows::NO_TTL_LENGTH),
            },
            None => Lifetime::NoTtl {
                why: Cow::Borrowed("the keys of a quorum have no TTL"),
            },
        };
        row
    }
}

/// `None`: it has no lifetime. `Some(None)`: no TTL.
fn left_ms(lifetime: &Lifetime) -> Option<Option<i64>> {
    match lifetime {
        Lifetime::Leased { remaining_ms, .. } => Some(Some(*remaining_ms)),
        Lifetime::NoTtl { .. } => Some(None),
        Lifetime::Heartbeat { .. }
        | Lifetime::Session { .. }
        | Lifetime::SessionTtl { .. }
        | Lifetime::Unknown { .. } => None,
    }
}

fn hashed(reply: &NodeValue, history: &QuorumHistory) -> NodeReply<u64> {
    match reply {
        NodeValue::Unreachable => NodeReply::Unreachable,
        NodeValue::Empty => NodeReply::Empty,
        NodeValue::Value(lock) => match &lock.generation {
            Reported::Value(generation) => NodeReply::Value(history.hash(generation.as_str())),
            Reported::Unknown(_) | Reported::NotApplicable(_) => NodeReply::Empty,
        },
    }
}

const fn signed(reply: &NodeReply<u64>) -> (u8, u64) {
    match reply {
        NodeReply::Unreachable => (0, 0),
        NodeReply::Empty => (1, 0),
        NodeReply::Value(value) => (2, *value),
    }
}

fn split_text(values: &[Held<'_>], total: usize) -> String {
    let needed = quorum::quorum_of(total);
    let counts: Vec<String> = values
        .iter()
        .map(|held| format!("{} on {}", owner(held.lock), held.nodes.len()))
        .collect();
    format!(
        "{} values at once, none on {needed} of {total} nodes: {}",
        values.len(),
        counts.join(", ")
    )
}

fn owner(lock: &ObservedLock) -> &str {
    lock.owner.known().map_or("an unknown owner", OwnerId::as_str)
}

impl super::Redlock {
    /// State of a reading, with what is remembered.
    pub(super) fn state(&self, key: &KeyReplies) -> Option<QuorumState> {
        let mut history = self.history.lock();
        let replies: Vec<NodeReply<u64>> = key.replies.iter().map(|reply| hashed(reply, &history)).collect();
        let key = history.hash(&key.key);
        history.judge(key, &replies).map(|verdict| verdict.state)
    }
}

/// Identifies a set of values without a quorum.
pub(super) fn split_generation<'a>(locks: impl Iterator<Item = &'a ObservedLock>) -> Generation {
    let mut generations: Vec<&str> = locks
        .filter_map(|lock| lock.generation.known().map(Generation::as_str))
        .collect();
    generations.sort_unstable();
    generations.dedup();
    Generation::new(Fingerprint::from_value(generations.join("\n").as_bytes()).generation("split:"))
}
