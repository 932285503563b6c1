//! Who held one lock when, who waited, who wrote after losing it: from rows of history to what is drawn where.
//!
//! Pure, and calm about odd histories: a gap in the middle, a beginning that nobody saw, an owner that was not told, two
//! owners at once, ten thousand rows. What is not known is drawn as not known.

mod blocks;
mod lanes;
#[cfg(test)]
mod tests;

use crate::history::HistoryEvent;
use crate::names::OwnerId;
use crate::token::FencingToken;

use super::scale::TimeScale;

pub use blocks::blocks;

/// Lanes drawn; the owners behind them are counted.
pub const LANES_MAX: usize = 10;

/// What is known of one lock. Times are milliseconds since 1970 by the console's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct Told<'a> {
    /// Oldest first.
    pub events: &'a [HistoryEvent],
    /// Times that nobody watched, oldest first.
    pub gaps: &'a [(i64, i64)],
    /// Writes that were refused because of their token, oldest first.
    pub refused: &'a [Refused],
    /// Forced unlocks that released it.
    pub revoked: &'a [Revoked],
    /// Who holds it now; none: it is not known.
    pub holders: Option<&'a [Holder]>,
    /// Who waits now, in order.
    pub waiters: &'a [Waiter],
    /// When watching began: before it nothing is known.
    pub since: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub owner: Option<OwnerId>,
    pub token: Option<FencingToken>,
    pub since: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiter {
    pub owner: OwnerId,
    pub since: Option<i64>,
    /// From 1.
    pub place: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub at: i64,
    pub token: FencingToken,
    /// The newest token granted by then, as far as it was told.
    pub current: Option<FencingToken>,
    pub owner: Option<OwnerId>,
    /// Who refused.
    pub source: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revoked {
    pub at: i64,
    pub owner: Option<OwnerId>,
    pub token: Option<FencingToken>,
    pub by: String,
    /// Of the forced unlock.
    pub id: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    pub scale: TimeScale,
    /// Present holders first, then by what happened last.
    pub lanes: Vec<Lane>,
    /// Owners that have no lane because there are too many.
    pub more: usize,
    /// Times of which nothing is known, within the range.
    pub gaps: Vec<(i64, i64)>,
    /// How many waited, where the backend told.
    pub queue: Vec<Queue>,
    /// A tick stands for so many renewals.
    pub per_tick: usize,
    /// Waits that ended with a grant and are not drawn because there are too many: the shortest.
    pub waits_left_out: usize,
}

/// What one owner did.
#[derive(Debug, Clone, PartialEq)]
pub struct Lane {
    /// None: the backend did not tell whose it was.
    pub owner: Option<OwnerId>,
    pub blocks: Vec<Block>,
    pub waits: Vec<Wait>,
    pub refused: Vec<Refused>,
    /// From the moment the owner lost the lock until its last refused write.
    pub zombies: Vec<Zombie>,
}

/// One lease, from its grant to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    pub owner: Option<OwnerId>,
    pub token: Option<FencingToken>,
    pub from: i64,
    pub until: i64,
    pub begin: Begin,
    pub end: End,
    /// Its beginning was first seen after an outage: it began between this time and `from`.
    pub began_after: Option<i64>,
    /// Its end was first seen after an outage: it ended between this time and `until`.
    pub ended_after: Option<i64>,
    /// The lease of another had run out when this one was granted.
    pub is_reclaim: bool,
    /// It is made of so many leases that stand too near each other to be told apart.
    pub leases: u32,
    pub renewals: u32,
    /// When renewals came; thinned out where there are very many.
    pub ticks: Vec<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    Seen,
    /// It was so when we first looked, or looked again.
    Unseen,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// It still holds.
    Now,
    Released,
    Expired,
    /// Another got it, and how this one ended was not seen.
    Displaced,
    /// By force, through this console.
    Revoked {
        by: String,
        id: String,
    },
    /// Nobody watched.
    Unseen,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    pub from: i64,
    pub until: i64,
    /// None: it does not wait any more, it was granted the lock.
    pub place: Option<u32>,
    /// It waits for longer than the range shows.
    pub is_cut: bool,
    /// Since when is told.
    pub is_told: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zombie {
    pub from: i64,
    pub until: i64,
    pub token: FencingToken,
    pub writes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queue {
    pub from: i64,
    pub until: i64,
    pub count: u32,
}

impl Block {
    pub const fn length_ms(&self) -> i64 {
        self.until.saturating_sub(self.from)
    }

    /// The shortest and the longest that it can have been held, in milliseconds.
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

    /// When something of it was seen last.
    fn latest(&self) -> i64 {
        let blocks = self.blocks.iter().map(|block| block.until);
        let waits = self.waits.iter().map(|wait| wait.until);
        let refused = self.refused.iter().map(|refused| refused.at);
        blocks.chain(waits).chain(refused).max().unwrap_or(i64::MIN)
    }
}

impl Timeline {
    /// What is drawn of a range at `now`.
    pub fn of(told: &Told<'_>, scale: TimeScale, now: i64) -> Self {
        lanes::timeline(told, scale, now)
    }

    pub fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// The longest time that somebody wrote after losing the lock.
    pub fn worst_zombie(&self) -> Option<&Zombie> {
        let zombies = self.lanes.iter().flat_map(|lane| &lane.zombies);
        zombies.max_by_key(|zombie| zombie.until - zombie.from)
    }

    /// The longest time that two owners held it at once.
    pub fn overlap_ms(&self) -> i64 {
        let mut blocks: Vec<&Block> = self.lanes.iter().flat_map(|lane| &lane.blocks).collect();
        blocks.sort_by_key(|block| block.from);
        let mut reach: Option<&Block> = None;
        let mut longest = 0;
        for block in blocks {
            if let Some(before) = reach.filter(|before| before.owner != block.owner) {
                longest = longest.max(before.until.min(block.until) - block.from);
            }
            if reach.is_none_or(|before| block.until >= before.until) {
                reach = Some(block);
            }
        }
        longest.max(0)
    }
}
