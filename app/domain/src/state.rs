//! States of a lock: order, labels, severity.

use serde::{Deserialize, Serialize};

crate::wire_enum! {
    /// Worst first: the order of the variants is the order of the list.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum LockState {
        DualOwner = "dual_owner",
        Split = "split",
        QuorumLost = "quorum_lost",
        Expired = "expired",
        Orphaned = "orphaned",
        NotRenewing = "not_renewing",
        NearExpiry = "near_expiry",
        NoTtl = "no_ttl",
        LongHeld = "long_held",
        Contended = "contended",
        Stale = "stale",
        Unknown = "unknown",
        Healthy = "healthy",
    }
}

/// Hue of a state, and whether it needs a user's attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Critical,
    Warning,
    Waiting,
    /// Stale or unknown: no hue.
    Blind,
    Healthy,
}

impl LockState {
    pub const COUNT: usize = Self::ALL.len();

    /// Index in [`Self::ALL`]; 0 is worst.
    pub const fn rank(self) -> usize {
        self as usize
    }

    pub fn from_rank(rank: usize) -> Option<Self> {
        Self::ALL.get(rank).copied()
    }

    /// Label for users.
    pub const fn label(self) -> &'static str {
        match self {
            Self::DualOwner => "two owners",
            Self::Split => "split",
            Self::QuorumLost => "quorum lost",
            Self::Expired => "expired",
            Self::Orphaned => "orphaned",
            Self::NotRenewing => "not renewing",
            Self::NearExpiry => "near expiry",
            Self::NoTtl => "no TTL",
            Self::LongHeld => "long-held",
            Self::Contended => "contended",
            Self::Stale => "stale",
            Self::Unknown => "unknown",
            Self::Healthy => "healthy",
        }
    }

    pub const fn severity(self) -> Severity {
        match self {
            Self::DualOwner
            | Self::Split
            | Self::QuorumLost
            | Self::Expired
            | Self::Orphaned
            | Self::NotRenewing => Severity::Critical,
            Self::NearExpiry | Self::NoTtl | Self::LongHeld => Severity::Warning,
            Self::Contended => Severity::Waiting,
            Self::Stale | Self::Unknown => Severity::Blind,
            Self::Healthy => Severity::Healthy,
        }
    }

    /// Belongs on the worklist.
    pub const fn needs_attention(self) -> bool {
        matches!(
            self.severity(),
            Severity::Critical | Severity::Warning | Severity::Waiting
        )
    }
}

/// A state that holds, with its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateReason {
    pub state: LockState,
    pub why: String,
}

/// Locks per state, indexed by [`LockState::rank`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StateCounts(pub [u64; LockState::COUNT]);

impl StateCounts {
    pub fn count(&self, state: LockState) -> u64 {
        self.0[state.rank()]
    }

    pub fn add(&mut self, state: LockState, count: u64) {
        self.0[state.rank()] += count;
    }

    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }

    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// States that occur, worst first.
    pub fn iter(&self) -> impl Iterator<Item = (LockState, u64)> + '_ {
        LockState::ALL
            .into_iter()
            .map(|state| (state, self.count(state)))
            .filter(|(_, count)| *count > 0)
    }

    pub fn worst(&self) -> Option<LockState> {
        self.iter().next().map(|(state, _)| state)
    }

    pub fn needing_attention(&self) -> u64 {
        self.iter()
            .filter(|(state, _)| state.needs_attention())
            .map(|(_, count)| count)
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rank_follows_the_order_of_the_list_and_words_are_unique() {
        // Sorting, facets and colours index by rank: a misplaced variant would shift them.
        for (rank, state) in LockState::ALL.into_iter().enumerate() {
            assert_eq!(state.rank(), rank);
            assert_eq!(LockState::parse(state.as_str()), Some(state));
        }
        assert!(LockState::DualOwner < LockState::Healthy);
    }
}
