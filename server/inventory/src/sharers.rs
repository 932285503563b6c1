//! Owners of shared locks, each with the beginning of its hold. An entry has the owner that is recorded for the lock:
//! it stays that owner as long as it holds, in whatever order the backend lists the sharers.
//!
//! Rare, so stored outside the entries, as [`Overwrites`](crate::overwrites::Overwrites).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use domain::observation::{ObservedLock, Sharer};
use domain::reported::Reported;
use domain::tick::Tick;

use super::entry::Entry;

/// Sharers stored per backend. A lock with more of them is one holding, which ends when one joins or leaves.
const SHARERS_MAX: usize = 200_000;

type Key = (u16, Box<[u8]>);

#[derive(Debug, Clone)]
pub(super) struct Share {
    generation: Box<str>,
    pub(super) owner: Option<Arc<str>>,
    pub(super) token: Option<u64>,
    pub(super) first_seen: Tick,
    /// Its acquisition was observed.
    pub(super) seen_begin: bool,
}

/// Owners of every lock with several owners, the recorded one first.
#[derive(Debug, Default)]
pub(super) struct Sharers {
    locks: HashMap<Key, Vec<Share>>,
    count: usize,
}

/// The owners of one lock at two readings, of which at least one has several.
#[derive(Debug)]
pub(super) struct Sharing {
    before: Vec<Share>,
    /// The recorded owner first.
    pub(super) now: Vec<Share>,
    /// Places in `before`.
    ended: Vec<usize>,
    /// Places in `now`.
    begun: Vec<usize>,
}

impl Share {
    fn from_entry(entry: &Entry) -> Self {
        Self {
            generation: entry.generation.clone().unwrap_or_default(),
            owner: entry.owner.clone(),
            token: entry.reported_token(),
            first_seen: entry.first_seen,
            seen_begin: entry.seen_begin,
        }
    }

    pub(super) fn generation(&self) -> &str {
        &self.generation
    }
}

impl Sharing {
    fn new(before: Vec<Share>, mut now: Vec<Share>) -> Self {
        let known: HashMap<&str, &Share> = before.iter().map(|share| (share.generation(), share)).collect();
        let mut begun = Vec::new();
        for (place, share) in now.iter_mut().enumerate() {
            match known
                .get(share.generation())
                .filter(|same| !same.generation.is_empty())
            {
                Some(same) => {
                    let owner = same.owner.clone().or_else(|| share.owner.take());
                    *share = Share {
                        owner,
                        ..(*same).clone()
                    };
                }
                None => begun.push(place),
            }
        }
        drop(known);
        let goes_on: HashSet<&str> = now.iter().map(Share::generation).collect();
        let ended = before
            .iter()
            .enumerate()
            .filter(|(_, share)| share.generation.is_empty() || !goes_on.contains(share.generation()));
        let ended: Vec<usize> = ended.map(|(place, _)| place).collect();
        drop(goes_on);
        Self {
            before,
            now,
            ended,
            begun,
        }
    }

    /// The recorded owner still holds the lock.
    pub(super) fn is_same_holding(&self) -> bool {
        let (before, now) = (self.before.first(), self.now.first());
        let is_same = |(before, now): (&Share, &Share)| before.generation == now.generation;
        before.zip(now).is_some_and(is_same) && self.ended.first() != Some(&0)
    }

    /// None of the owners before still holds the lock.
    pub(super) fn is_over(&self) -> bool {
        self.ended.len() == self.before.len()
    }

    pub(super) fn has_begun(&self) -> bool {
        !self.begun.is_empty()
    }

    /// Owners that no longer hold the lock, with their places before.
    pub(super) fn ended(&self) -> impl Iterator<Item = (usize, &Share)> {
        self.ended.iter().map(|place| (*place, &self.before[*place]))
    }

    /// New owners, with their places now.
    pub(super) fn begun(&self) -> impl Iterator<Item = (usize, &Share)> {
        self.begun.iter().map(|place| (*place, &self.now[*place]))
    }
}

/// Place of the sharer that has held the lock longest; `None` if all are new.
fn longest(shares: &[Share], sharers: &[Sharer]) -> Option<usize> {
    let generations = sharers.iter().map(|sharer| sharer.generation.as_str());
    let places: HashMap<&str, usize> = generations.zip(0..).collect();
    let remaining = shares
        .iter()
        .filter_map(|share| Some((share.first_seen, *places.get(share.generation())?)));
    remaining.min().map(|(_, place)| place)
}

impl Sharers {
    fn shares_of(&self, entry: &Entry) -> &[Share] {
        if self.locks.is_empty() {
            return &[];
        }
        let shares = self.locks.get(&(entry.source, entry.name.clone()));
        shares.map_or(&[][..], Vec::as_slice)
    }

    pub(super) fn has_owner(&self, entry: &Entry, owner: &str) -> bool {
        let mut shares = self.shares_of(entry).iter();
        shares.any(|share| share.owner.as_deref() == Some(owner))
    }

    /// Moves the recorded owner to the front of a later reading or, if it is gone, the one that has held the lock
    /// longest.
    pub(super) fn keep_owner(&self, entry: &Entry, lock: &mut ObservedLock) {
        if lock.sharers.is_empty() {
            return;
        }
        let shares = self.shares_of(entry);
        let recorded = shares.first().map(Share::generation);
        let Some(recorded) = recorded.or(entry.generation.as_deref()) else {
            return;
        };
        let is_recorded = |sharer: &Sharer| sharer.generation.as_str() == recorded;
        let at = lock.sharers.iter().position(is_recorded);
        let Some(at @ 1..) = at.or_else(|| longest(shares, &lock.sharers)) else {
            return;
        };
        lock.sharers.swap(0, at);
        if let Some(owner) = &lock.sharers[0].owner {
            lock.owner = Reported::Value(owner.clone());
        }
    }

    /// Replaces the owners of a lock; `new` has those of `sharers` that are recorded for it. `None`: it had and has one
    /// owner. Sharers that go on keep the beginning of their hold and their text.
    pub(super) fn replace(
        &mut self,
        old: Option<&Entry>,
        new: &Entry,
        sharers: Vec<Sharer>,
    ) -> Option<Sharing> {
        let stored = old
            .filter(|old| old.owner_count > 1)
            .and_then(|old| self.take(old));
        let is_stored = sharers.len() > 1 && self.count + sharers.len() <= SHARERS_MAX;
        if stored.is_none() && !is_stored {
            return None;
        }
        let before = stored.unwrap_or_else(|| old.map(Share::from_entry).into_iter().collect());
        let mut now: Vec<Share> = sharers
            .into_iter()
            .map(|sharer| Share {
                generation: sharer.generation.as_str().into(),
                owner: sharer.owner.map(|owner| owner.as_str().into()),
                token: sharer.token.map(domain::token::FencingToken::number),
                first_seen: new.first_seen,
                seen_begin: new.seen_begin,
            })
            .collect();
        if now.is_empty() {
            now.push(Share::from_entry(new));
        }
        let sharing = Sharing::new(before, now);
        if is_stored {
            self.count += sharing.now.len();
            let key = (new.source, new.name.clone());
            self.locks.insert(key, sharing.now.clone());
        }
        Some(sharing)
    }

    /// Removes a lock; returns its owners.
    pub(super) fn take(&mut self, entry: &Entry) -> Option<Vec<Share>> {
        if self.locks.is_empty() {
            return None;
        }
        let shares = self.locks.remove(&(entry.source, entry.name.clone()))?;
        self.count -= shares.len();
        Some(shares)
    }
}
