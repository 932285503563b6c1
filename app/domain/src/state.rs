//! The states of a lock: their order, their words, and how grave each is.

use serde::{Deserialize, Serialize};

/// Worst first: the order of the variants is the order of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LockState {
    TwoBelievers,
    ExpiredPresent,
    HolderGone,
    NotRenewing,
    NearExpiry,
    NoTtl,
    LongHeld,
    Contended,
    Stale,
    Unknown,
    Healthy,
}

/// The hue of a state, and whether it wants a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Critical,
    Warning,
    Waiting,
    /// Stale or unknown: never a hue.
    Blind,
    Healthy,
}

impl LockState {
    pub const ALL: [Self; 11] = [
        Self::TwoBelievers,
        Self::ExpiredPresent,
        Self::HolderGone,
        Self::NotRenewing,
        Self::NearExpiry,
        Self::NoTtl,
        Self::LongHeld,
        Self::Contended,
        Self::Stale,
        Self::Unknown,
        Self::Healthy,
    ];
    pub const COUNT: usize = Self::ALL.len();

    /// Place in [`Self::ALL`]; 0 is worst.
    pub const fn rank(self) -> usize {
        self as usize
    }

    pub fn from_rank(rank: usize) -> Option<Self> {
        Self::ALL.get(rank).copied()
    }

    /// The name in JSON, URLs and the command line.
    pub const fn wire(self) -> &'static str {
        match self {
            Self::TwoBelievers => "two_believers",
            Self::ExpiredPresent => "expired_present",
            Self::HolderGone => "holder_gone",
            Self::NotRenewing => "not_renewing",
            Self::NearExpiry => "near_expiry",
            Self::NoTtl => "no_ttl",
            Self::LongHeld => "long_held",
            Self::Contended => "contended",
            Self::Stale => "stale",
            Self::Unknown => "unknown",
            Self::Healthy => "healthy",
        }
    }

    pub fn parse(wire: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.wire() == wire)
    }

    /// The word shown to people.
    pub const fn word(self) -> &'static str {
        match self {
            Self::TwoBelievers => "two believers",
            Self::ExpiredPresent => "expired but present",
            Self::HolderGone => "holder gone",
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
            Self::TwoBelievers | Self::ExpiredPresent | Self::HolderGone | Self::NotRenewing => {
                Severity::Critical
            }
            Self::NearExpiry | Self::NoTtl | Self::LongHeld => Severity::Warning,
            Self::Contended => Severity::Waiting,
            Self::Stale | Self::Unknown => Severity::Blind,
            Self::Healthy => Severity::Healthy,
        }
    }

    /// Belongs on the worklist: someone should look at it.
    pub const fn needs_attention(self) -> bool {
        matches!(
            self.severity(),
            Severity::Critical | Severity::Warning | Severity::Waiting
        )
    }
}

/// One state that holds, and why we think so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    pub state: LockState,
    pub why: String,
}

/// Locks per state, indexed by [`LockState::rank`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StateCounts(pub [u64; LockState::COUNT]);

impl StateCounts {
    pub fn of(&self, state: LockState) -> u64 {
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
            .map(|state| (state, self.of(state)))
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
        // Sorting, facets and colours all index by rank: a variant out of place would shift them.
        for (rank, state) in LockState::ALL.into_iter().enumerate() {
            assert_eq!(state.rank(), rank);
            assert_eq!(LockState::parse(state.wire()), Some(state));
        }
        assert!(LockState::TwoBelievers < LockState::Healthy);
    }
}
