//! Limits of sign-in attempts: each attempt is counted before it is evaluated, and a success removes its count.
//!
//! An attempt counts for its source (IPv4 address or IPv6 /64), for the source's IPv6 /48, for its name and globally. If the name has signed in
//! from the same source before, it counts for that pair only; a re-authentication counts for its session only:
//! guesses from elsewhere delay neither. Hashing and its queue are in `hashing_queue`.
//!
//! **Invariants:** of concurrent attempts, no more are evaluated than a bucket holds; a full table drops its oldest
//! bucket and continues to count; memory is bounded.

mod bucket;

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use domain::tick::Tick;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

pub(super) use self::bucket::{Attempts, Key};
use self::bucket::{Buckets, Full};
use super::limits::{BUCKET_WAITERS_MAX, KNOWN_PAIRS_MAX, NAME_CHARS_COUNTED};
use runtime::client_network::ClientNetwork;
use runtime::clock::Clock;

#[derive(Debug, Default)]
pub(super) struct SignInThrottle {
    state: Mutex<State>,
    /// An attempt in progress has ended.
    ended: Notify,
}

#[derive(Debug, Default)]
struct State {
    buckets: Buckets,
    known: KnownPairs,
}

/// Pairs of source and name of successful sign-ins, oldest first.
#[derive(Debug, Default)]
struct KnownPairs {
    set: HashSet<(ClientNetwork, String)>,
    order: VecDeque<(ClientNetwork, String)>,
}

/// A counted attempt. It stays counted when dropped: it failed, or its client disconnected.
#[derive(Debug)]
pub(super) struct Reservation<'a> {
    throttle: &'a SignInThrottle,
    keys: Vec<Key>,
}

impl SignInThrottle {
    /// The buckets of an attempt, and whether this name has signed in from this source before.
    pub(super) fn keys(&self, source: ClientNetwork, name: &str) -> (Vec<Key>, bool) {
        let name: String = name.chars().take(NAME_CHARS_COUNTED).collect();
        let pair = (source, name);
        if self.lock().known.set.contains(&pair) {
            return (vec![Key::Pair(pair.0, pair.1)], true);
        }
        let mut keys = Key::of_source(source, Attempts::Passwords);
        keys.extend([Key::Everyone, Key::Name(pair.1)]);
        (keys, false)
    }

    /// Counts an attempt. Waits while a bucket is full of attempts in progress.
    ///
    /// # Errors
    /// Time until the next attempt is evaluated.
    pub(super) async fn reserve(&self, keys: Vec<Key>, clock: &Clock) -> Result<Reservation<'_>, Duration> {
        let mut waiting = None;
        loop {
            // Registered before the buckets are read, so that no end is missed.
            let ended = self.ended.notified();
            let full = match self.try_reserve(&keys, clock.tick()) {
                Ok(()) => return Ok(Reservation { throttle: self, keys }),
                Err(full) => full,
            };
            if !full.is_pending {
                return Err(full.wait);
            }
            if waiting.is_none() {
                waiting = Some(self.wait_at(&full).ok_or(full.wait)?);
            }
            ended.await;
        }
    }

    /// Counts an attempt without waiting.
    ///
    /// # Errors
    /// Time until the next attempt is allowed.
    pub(super) fn count(&self, keys: Vec<Key>, now: Tick) -> Result<(), Duration> {
        self.try_reserve(&keys, now).map_err(|full| full.wait)?;
        // Ended at once: it stays counted.
        drop(Reservation { throttle: self, keys });
        Ok(())
    }

    /// Removes the count of an attempt that succeeded.
    pub(super) fn refund(&self, keys: &[Key]) {
        let mut state = self.lock();
        for key in keys {
            state.buckets.refund(key);
        }
    }

    /// Records a success: this pair has its own bucket from now on.
    pub(super) fn remember(&self, source: ClientNetwork, name: &str) {
        let name = name.chars().take(NAME_CHARS_COUNTED).collect();
        self.lock().known.insert((source, name));
    }

    fn try_reserve(&self, keys: &[Key], now: Tick) -> Result<(), Full> {
        let buckets = &mut self.lock().buckets;
        // The longest wait applies; nothing is counted unless every bucket has room.
        let longest = keys
            .iter()
            .filter_map(|key| buckets.full(key, now))
            .max_by_key(|full| (!full.is_pending, full.wait));
        if let Some(full) = longest {
            return Err(full);
        }
        for key in keys {
            buckets.add(key, now);
        }
        Ok(())
    }

    fn wait_at(&self, full: &Full) -> Option<Waiting<'_>> {
        let mut state = self.lock();
        let waiters = state.buckets.waiters(&full.key)?;
        if *waiters >= BUCKET_WAITERS_MAX {
            return None;
        }
        *waiters += 1;
        Some(Waiting {
            throttle: self,
            key: full.key.clone(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl Reservation<'_> {
    /// It succeeded or was not evaluated: removes its count.
    pub(super) fn refund(self) {
        let mut state = self.throttle.lock();
        for key in &self.keys {
            state.buckets.refund(key);
        }
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let mut state = self.throttle.lock();
        for key in &self.keys {
            state.buckets.end(key);
        }
        drop(state);
        self.throttle.ended.notify_waiters();
    }
}

/// A slot among the attempts waiting for a bucket.
struct Waiting<'a> {
    throttle: &'a SignInThrottle,
    key: Key,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(waiters) = self.throttle.lock().buckets.waiters(&self.key) {
            *waiters = waiters.saturating_sub(1);
        }
    }
}

impl KnownPairs {
    fn insert(&mut self, pair: (ClientNetwork, String)) {
        if !self.set.insert(pair.clone()) {
            return;
        }
        self.order.push_back(pair);
        if self.order.len() > KNOWN_PAIRS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.set.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests;
