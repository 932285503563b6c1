//! Values that were seen on a quorum, between two scans: tells a lost quorum from a leftover, and
//! two owners from an attempt. 16 bytes per lock, because there may be a million.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hash, RandomState};

use domain::quorum::{self, Cell, QuorumState};

/// Hashes stand for keys and values.
#[derive(Debug, Default)]
pub(super) struct Memory {
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
pub(super) struct Verdict {
    pub(super) state: QuorumState,
    /// The former holder of a quorum that still has a node.
    pub(super) overtaken: Option<u64>,
}

impl Memory {
    pub(super) fn hash(&self, value: impl Hash) -> u64 {
        self.hasher.hash_one(value)
    }

    /// Judges a reading and remembers what is on a quorum. `None`: no key.
    pub(super) fn judge(&mut self, key: u64, cells: &[Cell<u64>]) -> Option<Verdict> {
        let was = self.held.get(&key).copied();
        let state = quorum::judge(cells, |value| was == Some(value))?;
        let is_there = |value: u64| cells.contains(&Cell::Value(value));
        let (top, _) = *quorum::tally(cells).first()?;
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
        Some(Verdict { state, overtaken })
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

    const V: Cell<u64> = Cell::Value(1);
    const W: Cell<u64> = Cell::Value(2);

    fn state(memory: &mut Memory, cells: [Cell<u64>; 3]) -> (QuorumState, bool) {
        let verdict = memory.judge(7, &cells).unwrap();
        (verdict.state, verdict.overtaken.is_some())
    }

    #[test]
    fn a_value_that_had_a_quorum_is_lost_and_another_is_left_over() {
        // The same reading before and after.
        let mut memory = Memory::default();
        let single_copy = [V, Cell::Empty, Cell::Empty];
        assert_eq!(state(&mut memory, single_copy), (QuorumState::Leftover, false));
        state(&mut memory, [V, V, Cell::Empty]);
        assert_eq!(state(&mut memory, single_copy), (QuorumState::Lost, false));
        memory.forget(7);
        assert_eq!(state(&mut memory, single_copy), (QuorumState::Leftover, false));
    }

    #[test]
    fn former_holder_is_a_second_owner_until_its_key_is_gone() {
        // Two nodes lose their data, and another client gets both.
        let mut memory = Memory::default();
        state(&mut memory, [V, V, V]);
        assert_eq!(state(&mut memory, [V, W, W]), (QuorumState::Held, true));
        assert_eq!(state(&mut memory, [V, W, W]), (QuorumState::Held, true));
        assert_eq!(
            state(&mut memory, [Cell::Empty, W, W]),
            (QuorumState::Held, false)
        );
        // An attempt without a quorum so far does not count.
        assert_eq!(
            state(&mut memory, [Cell::Value(3), W, W]),
            (QuorumState::Held, false)
        );
    }

    #[test]
    fn keys_that_are_gone_are_forgotten() {
        let mut memory = Memory::default();
        state(&mut memory, [V, V, V]);
        memory.keep(&HashSet::new());
        assert_eq!(
            state(&mut memory, [V, Cell::Empty, Cell::Empty]),
            (QuorumState::Leftover, false)
        );
    }
}
