//! Buckets of attempts: each holds a burst and empties at a steady rate (GCRA, the virtual scheduling of ITU-T I.371).

use std::collections::HashMap;
use std::time::Duration;

use domain::duration::millis;
use domain::tick::Tick;

use super::super::limits::{
    BUCKETS_MAX, EVERYONE_RATE, LINK_RATE, NAME_RATE, PAIR_RATE, PROVIDER_RATE, Rate, SESSION_RATE,
    SOURCE_RATE,
};
use runtime::client_network::{ClientNetwork, ClientSite};

/// Key by which attempts are counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::identity) enum Key {
    Everyone,
    Source(ClientNetwork, Attempts),
    /// All sources of an IPv6 /48 together.
    Site(ClientSite, Attempts),
    Name(String),
    /// A name at a source where it signed in before.
    Pair(ClientNetwork, String),
    /// Re-authentication within a session.
    Session(String),
}

/// Kinds of attempts that are counted by source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::identity) enum Attempts {
    Passwords,
    /// Sign-ins through the identity provider.
    Provider,
    /// One-time links.
    Links,
}

#[derive(Debug, Default)]
pub(super) struct Buckets(HashMap<Key, Bucket>);

#[derive(Debug, Clone, Copy)]
struct Bucket {
    /// Time at which it is empty again without further attempts.
    empty_at: Tick,
    /// Attempts in progress.
    under_way: u32,
    /// Attempts waiting for one of those to end.
    waiters: u32,
}

/// A full bucket.
#[derive(Debug, Clone)]
pub(super) struct Full {
    pub(super) key: Key,
    /// Time until it has room.
    pub(super) wait: Duration,
    /// It has room sooner if an attempt in progress succeeds.
    pub(super) is_pending: bool,
}

impl Key {
    /// The keys of a source, and of its site if it has one.
    pub(in crate::identity) fn of_source(source: ClientNetwork, attempts: Attempts) -> Vec<Self> {
        let site = source.site().map(|site| Self::Site(site, attempts));
        site.into_iter().chain([Self::Source(source, attempts)]).collect()
    }

    fn rate(&self) -> Rate {
        match self {
            Self::Everyone => EVERYONE_RATE,
            Self::Source(_, attempts) => attempts.rate(),
            Self::Site(_, attempts) => attempts.rate().of_site(),
            Self::Name(_) => NAME_RATE,
            Self::Pair(..) => PAIR_RATE,
            Self::Session(_) => SESSION_RATE,
        }
    }
}

impl Attempts {
    const fn rate(self) -> Rate {
        match self {
            Self::Passwords => SOURCE_RATE,
            Self::Provider => PROVIDER_RATE,
            Self::Links => LINK_RATE,
        }
    }
}

impl Buckets {
    pub(super) fn full(&self, key: &Key, now: Tick) -> Option<Full> {
        let bucket = self.0.get(key)?;
        let rate = key.rate();
        let room_at = bucket.empty_at.0 + millis(rate.every) - millis(rate.every) * i64::from(rate.burst);
        let wait_ms = u64::try_from(room_at - now.0).ok().filter(|ms| *ms > 0)?;
        Some(Full {
            key: key.clone(),
            wait: Duration::from_millis(wait_ms),
            is_pending: bucket.under_way > 0,
        })
    }

    pub(super) fn add(&mut self, key: &Key, now: Tick) {
        if self.0.len() >= BUCKETS_MAX && !self.0.contains_key(key) {
            self.make_room(now);
        }
        let bucket = self.0.entry(key.clone()).or_insert(Bucket {
            empty_at: now,
            under_way: 0,
            waiters: 0,
        });
        bucket.empty_at = Tick(bucket.empty_at.0.max(now.0) + millis(key.rate().every));
        bucket.under_way += 1;
    }

    pub(super) fn refund(&mut self, key: &Key) {
        if let Some(bucket) = self.0.get_mut(key) {
            bucket.empty_at = Tick(bucket.empty_at.0 - millis(key.rate().every));
        }
    }

    pub(super) fn end(&mut self, key: &Key) {
        if let Some(bucket) = self.0.get_mut(key) {
            bucket.under_way = bucket.under_way.saturating_sub(1);
        }
    }

    pub(super) fn waiters(&mut self, key: &Key) -> Option<&mut u32> {
        self.0.get_mut(key).map(|bucket| &mut bucket.waiters)
    }

    /// Drops empty buckets, or else the one that would be empty first.
    fn make_room(&mut self, now: Tick) {
        self.0
            .retain(|_, bucket| bucket.empty_at.0 > now.0 || bucket.under_way > 0);
        if self.0.len() < BUCKETS_MAX {
            return;
        }
        let oldest = self.0.iter().min_by_key(|(_, bucket)| bucket.empty_at.0);
        if let Some(key) = oldest.map(|(key, _)| key.clone()) {
            self.0.remove(&key);
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
