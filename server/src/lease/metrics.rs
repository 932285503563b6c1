//! What the lease service counts: plain numbers in one place, ready for export. Times are sums of milliseconds.

use std::sync::atomic::{AtomicU64, Ordering};

use domain::lease::Lease;

use super::error::LeaseError;

#[derive(Debug, Default)]
pub struct LeaseMetrics {
    /// Attempts by outcome.
    pub granted: Counter,
    pub refused: Counter,
    pub replayed: Counter,
    pub unavailable: Counter,
    /// Waiting, of those who waited.
    pub waits: Counter,
    pub wait_ms: Counter,
    pub waiters_gone: Counter,
    /// Tries on behalf of waiters: at most two for each release.
    pub grant_attempts: Counter,
    /// Grants that nobody was there to take.
    pub given_back: Counter,
    /// Holding, of leases that ended.
    pub hold_ms: Counter,
    pub renewals: Counter,
    pub releases: Counter,
    /// Leases that time ended, counted when it is written down: by the reaper, a grant, or a call that came too late.
    pub expirations: Counter,
    /// Grants over a lease that had run out without a note of it.
    pub reclaims: Counter,
    pub revocations: Counter,
    /// Renewals that came too late.
    pub losses: Counter,
    /// Releases of what had run out or was revoked, and those that the store did not take.
    pub release_failures: Counter,
    pub rejections: Counter,
    /// Calls by what was answered.
    pub renews: Attempts,
    pub give_backs: Attempts,
    /// Transactions, and operations in them.
    pub batches: Counter,
    pub operations: Counter,
    pub failed_batches: Counter,
}

impl LeaseMetrics {
    /// Adds how long a lease that has ended was held.
    pub(super) fn held(&self, lease: &Lease) {
        let ended = lease
            .ending
            .as_ref()
            .map_or(lease.acquired_at, |ending| ending.at);
        self.hold_ms.ms(ended.since(lease.acquired_at));
    }
}

/// How calls about a lease went.
#[derive(Debug, Default)]
pub struct Attempts {
    pub done: Counter,
    /// The lease had ended before.
    pub lost: Counter,
    /// Not known, not in scope, or not possible any more.
    pub denied: Counter,
    pub error: Counter,
}

impl Attempts {
    pub(super) fn note<T>(&self, answer: &Result<T, LeaseError>) {
        match answer {
            Ok(_) => self.done.one(),
            Err(LeaseError::Lost(_)) => self.lost.one(),
            Err(LeaseError::NotFound | LeaseError::OutOfScope | LeaseError::LifetimeReached { .. }) => {
                self.denied.one();
            }
            Err(_) => self.error.one(),
        }
    }

    /// By outcome; `done` is the word for success.
    pub fn read(&self, done: &'static str) -> [(&'static str, u64); 4] {
        [
            (done, self.done.read()),
            ("lost", self.lost.read()),
            ("denied", self.denied.read()),
            ("error", self.error.read()),
        ]
    }
}

/// A number that only rises.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn add(&self, number: u64) {
        self.0.fetch_add(number, Ordering::Relaxed);
    }

    pub fn one(&self) {
        self.add(1);
    }

    /// Durations; negative ones count as nothing.
    pub fn ms(&self, ms: i64) {
        self.add(u64::try_from(ms).unwrap_or(0));
    }

    pub fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
