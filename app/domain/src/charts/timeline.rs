//! Timeline of one lock: holders, waiters and rejected writes after a loss, from rows of
//! history to positions.
//!
//! Pure, and robust against odd histories: a gap in the middle, an unobserved beginning, an
//! unknown owner, two owners at once, ten thousand rows. Unknown parts are drawn as unknown.

mod blocks;
mod lanes;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::history::HistoryEvent;
use crate::names::OwnerId;
use crate::token::FencingToken;

use super::scale::TimeScale;

pub use blocks::blocks;

/// Lanes drawn; further owners are counted.
pub const LANES_MAX: usize = 10;

/// All inputs about one lock. Times are milliseconds since 1970 by the console's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct TimelineInput<'a> {
    /// Oldest first.
    pub events: &'a [HistoryEvent],
    /// Unobserved times, oldest first.
    pub gaps: &'a [(i64, i64)],
    /// Writes rejected because of their token, oldest first.
    pub refused: &'a [RejectedWrite],
    /// They could not be read.
    pub is_refused_unread: bool,
    /// Forced unlocks that released it.
    pub revoked: &'a [Revoked],
    /// Current holders; `None` if unknown.
    pub holders: Option<&'a [Holder]>,
    /// The current holders share the lock.
    pub is_shared: bool,
    /// Current waiters, in order.
    pub waiters: &'a [TimelineWaiter],
    /// Begin of observation; earlier times are unknown.
    pub since: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub owner: Option<OwnerId>,
    pub token: Option<FencingToken>,
    pub since: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimelineWaiter {
    pub owner: OwnerId,
    pub since: Option<i64>,
    /// From 1.
    pub place: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectedWrite {
    pub at: i64,
    pub token: FencingToken,
    /// The newest token granted by then, if reported.
    pub current: Option<FencingToken>,
    pub owner: Option<OwnerId>,
    /// Reporter of the rejection.
    pub source: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revoked {
    pub at: i64,
    pub owner: Option<OwnerId>,
    pub token: Option<FencingToken>,
    pub by: String,
    /// Id of the forced unlock.
    pub id: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    pub scale: TimeScale,
    /// Current holders first, then by latest event.
    pub lanes: Vec<Lane>,
    /// Owners without a lane, because of the limit.
    pub more: usize,
    /// Longest time with two holders that do not share the lock, in milliseconds.
    pub overlap_ms: i64,
    /// Unobserved times within the range.
    pub gaps: Vec<(i64, i64)>,
    /// Number of waiters over time, where the backend reports it.
    pub queue: Vec<Queue>,
    /// Renewals per tick.
    pub per_tick: usize,
    /// What is not drawn, to append to a sentence; empty if everything is.
    pub left_out: String,
}

/// One owner's leases, waits and rejected writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lane {
    /// `None`: the backend did not report the owner.
    pub owner: Option<OwnerId>,
    pub blocks: Vec<Block>,
    pub waits: Vec<Wait>,
    pub refused: Vec<RejectedWrite>,
    /// From the loss of the lock until the owner's last rejected write.
    pub zombies: Vec<Zombie>,
}

/// One lease, from its grant to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    pub owner: Option<OwnerId>,
    pub token: Option<FencingToken>,
    pub from: i64,
    pub until: i64,
    pub begin: Begin,
    pub end: End,
    /// Its beginning was first seen after an outage: it lies between this time and `from`.
    pub began_after: Option<i64>,
    /// Its end was first seen after an outage: it lies between this time and `until`.
    pub ended_after: Option<i64>,
    /// Granted after the lease of another owner had expired.
    pub is_reclaim: bool,
    /// Its owner shares the lock with others: their leases overlap.
    pub is_shared: bool,
    /// Number of leases merged into this block because they are too close to be distinguished.
    pub leases: u32,
    pub renewals: u32,
    /// Times of renewals; thinned out above the limit.
    pub ticks: Vec<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Begin {
    Seen,
    /// Already held at the first observation, or at the first after a gap.
    Unseen,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// Still held.
    Now,
    Released,
    Expired,
    /// Another owner was granted the lock; how this lease ended was not observed.
    Displaced,
    /// Forced unlock through this console.
    Revoked {
        by: String,
        id: String,
    },
    /// Unobserved.
    Unseen,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    pub from: i64,
    pub until: i64,
    /// `None`: no longer waiting, it was granted the lock.
    pub place: Option<u32>,
    /// The wait began before the range.
    pub is_cut: bool,
    /// The begin of the wait was reported.
    pub is_begin_known: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Zombie {
    pub from: i64,
    pub until: i64,
    pub token: FencingToken,
    pub writes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    pub from: i64,
    pub until: i64,
    pub count: u32,
}

impl Block {
    pub const fn length_ms(&self) -> i64 {
        self.until.saturating_sub(self.from)
    }

    /// Shortest and longest possible length, in milliseconds.
    pub fn length_range_ms(&self) -> (i64, i64) {
        let shortest = self.ended_after.unwrap_or(self.until).saturating_sub(self.from);
        let longest = self.until.saturating_sub(self.began_after.unwrap_or(self.from));
        (shortest.max(0), longest)
    }

    pub const fn holds_now(&self) -> bool {
        matches!(self.end, End::Now)
    }
}

impl Lane {
    pub fn holds_now(&self) -> bool {
        self.blocks.iter().any(Block::holds_now)
    }

    /// Time of the latest event.
    fn latest(&self) -> i64 {
        let blocks = self.blocks.iter().map(|block| block.until);
        let waits = self.waits.iter().map(|wait| wait.until);
        let refused = self.refused.iter().map(|refused| refused.at);
        blocks.chain(waits).chain(refused).max().unwrap_or(i64::MIN)
    }
}

impl Timeline {
    /// Timeline of a range at `now`.
    pub fn new(input: &TimelineInput<'_>, scale: TimeScale, now: i64) -> Self {
        lanes::timeline(input, scale, now)
    }

    pub fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// The longest zombie window.
    pub fn worst_zombie(&self) -> Option<&Zombie> {
        let zombies = self.lanes.iter().flat_map(|lane| &lane.zombies);
        zombies.max_by_key(|zombie| zombie.until - zombie.from)
    }
}
