//! Values that were seen on a quorum, between two scans: tells a lost quorum from a leftover, and
//! two owners from an attempt. 16 bytes per lock, because there may be a million.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hash, RandomState};

use domain::quorum::{self, NodeReply, QuorumState};

/// Hashes stand for keys and values.
#[derive(Debug, Default)]
pub(super) struct QuorumHistory {
    hasher: RandomState,
    /// Per key, the last value on a quorum.
    held: HashMap<u64, u64>,
    /// Per key, a value that was on a quorum before another one got it, while it is still on a
    /// node.
    overtaken: HashMap<u64, u64>,
    /// Readings without a quorum that a second one has confirmed.
    confirmed: HashMap<u64, u64>,
}

/// Judgement of one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct QuorumVerdict {
    pub(super) state: QuorumState,
    /// The former holder of a quorum that still has a node.
    pub(super) overtaken: Option<u64>,
}

impl QuorumHistory {
    pub(super) fn hash(&self, value: impl Hash) -> u64 {
        self.hasher.hash_one(value)
    }

    /// Judges a reading and remembers what is on a quorum. `None`: no key.
    pub(super) fn judge(&mut self, key: u64, replies: &[NodeReply<u64>]) -> Option<QuorumVerdict> {
        let was = self.held.get(&key).copied();
        let state = quorum::judge(replies, |value| was == Some(value))?;
        let is_there = |value: u64| replies.contains(&NodeReply::Value(value));
        let (top, _) = *quorum::tally(replies).first()?;
        if state == QuorumState::Held {
            if let Some(before) = was.filter(|before| *before != top && is_there(*before)) {
                self.overtaken.insert(key, before);
            }
            self.held.insert(key, top);
        }
        let overtaken = self.overtaken.get(&key).copied();
        let overtaken = overtaken.filter(|value| *value != top && is_there(*value));
        if overtaken.is_none() {
            self.overtaken.remove(&key);
        }
        Some(QuorumVerdict { state, overtaken })
    }

    pub(super) fn is_confirmed(&self, key: u64, signature: u64) -> bool {
        self.confirmed.get(&key) == Some(&signature)
    }

    pub(super) fn confirm(&mut self, key: u64, signature: u64) {
        self.confirmed.insert(key, signature);
    }

    pub(super) fn unconfirm(&mut self, key: u64) {
        self.confirmed.remove(&key);
    }

    /// After a forced release: what remains is a leftover.
    pub(super) fn forget(&mut self, key: u64) {
        self.held.remove(&key);
        self.overtaken.remove(&key);
        self.confirmed.remove(&key);
    }

    /// After a complete scan.
    pub(super) fn keep(&mut self, seen: &HashSet<u64>) {
        for map in [&mut self.held, &mut self.overtaken, &mut self.confirmed] {
            map.retain(|key, _| seen.contains(key));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V: NodeReply<u64> = NodeReply::Value(1);
    const W: NodeReply<u64> = NodeReply::Value(2);

    fn state(history: &mut QuorumHistory, replies: [NodeReply<u64>; 3]) -> (QuorumState, bool) {
        let verdict = history.judge(7, &replies).unwrap();
        (verdict.state, verdict.overtaken.is_some())
    }

    #[test]
    fn a_value_that_had_a_quorum_is_lost_and_another_is_left_over() {
        // The same reading before and after.
        let mut history = QuorumHistory::default();
        let single_copy = [V, NodeReply::Empty, NodeReply::Empty];
        assert_eq!(state(&mut history, single_copy), (QuorumState::Leftover, false));
        state(&mut history, [V, V, NodeReply::Empty]);
        assert_eq!(state(&mut history, single_copy), (QuorumState::Lost, false));
        history.forget(7);
        assert_eq!(state(&mut history, single_copy), (QuorumState::Leftover, false));
    }

    #[test]
    fn former_holder_is_a_second_owner_until_its_key_is_gone() {
        // Two nodes lose their data, and another client gets both.
        let mut history = QuorumHistory::default();
        state(&mut history, [V, V, V]);
        assert_eq!(state(&mut history, [V, W, W]), (QuorumState::Held, true));
        assert_eq!(state(&mut history, [V, W, W]), (QuorumState::Held, true));
        assert_eq!(
            state(&mut history, [NodeReply::Empty, W, W]),
            (QuorumState::Held, false)
        );
        // An attempt without a quorum so far does not count.
        assert_eq!(
            state(&mut history, [NodeReply::Value(3), W, W]),
            (QuorumState::Held, false)
        );
    }

    #[test]
    fn keys_that_are_gone_are_forgotten() {
        let mut history = QuorumHistory::default();
        state(&mut history, [V, V, V]);
        history.keep(&HashSet::new());
        assert_eq!(
            state(&mut history, [V, NodeReply::Empty, NodeReply::Empty]),
            (QuorumState::Leftover, false)
        );
    }
}
