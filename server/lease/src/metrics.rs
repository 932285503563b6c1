//! Counters of the lease service, ready for export. Durations are sums of milliseconds.

use std::sync::atomic::{AtomicU64, Ordering};

use domain::lease::{EndCause, Lease};

use super::error::LeaseError;
use super::events;
use super::operation::{Operation, OperationResult};
use runtime::telemetry::instruments;

#[derive(Debug, Default)]
pub struct LeaseMetrics {
    /// Attempts by outcome.
    pub granted: Counter,
    pub refused: Counter,
    pub replayed: Counter,
    pub unavailable: Counter,
    /// Ended waits, and their total duration.
    pub waits: Counter,
    pub wait_ms: Counter,
    pub waiters_gone: Counter,
    /// Acquire attempts on behalf of waiters: at most two for each release, and two per second for each waiter
    /// of a repeated idempotency key.
    pub grant_attempts: Counter,
    /// Grants released because their client had disconnected.
    pub unclaimed_grants: Counter,
    /// Total hold time of ended leases.
    pub hold_ms: Counter,
    pub renewals: Counter,
    pub releases: Counter,
    /// Expired leases, counted when the expiry is recorded: by the expiry recorder, a grant or a late
    /// call.
    pub expirations: Counter,
    /// Grants over an expired lease whose expiry was not yet recorded.
    pub reclaims: Counter,
    pub revocations: Counter,
    /// Renewals of ended leases.
    pub losses: Counter,
    /// Releases of expired or revoked leases, and releases that the store rejected.
    pub release_failures: Counter,
    pub rejections: Counter,
    /// Calls by outcome.
    pub renew_attempts: Attempts,
    pub release_attempts: Attempts,
    /// Transactions, and the operations in them.
    pub batches: Counter,
    pub operations: Counter,
    pub failed_batches: Counter,
}

impl LeaseMetrics {
    /// Adds the hold time of an ended lease.
    pub(super) fn record_hold(&self, lease: &Lease) {
        let ended = lease
            .ending
            .as_ref()
            .map_or(lease.acquired_at, |ending| ending.at);
        self.hold_ms.add_ms(ended.since(lease.acquired_at));
    }

    /// Counts the result of a committed operation.
    pub(super) fn count(&self, operation: &Operation, result: &OperationResult) {
        match result {
            OperationResult::Acquired { replayed: true, .. } => self.replayed.increment(),
            OperationResult::Acquired { reclaimed, .. } => {
                self.granted.increment();
                self.reclaims.add(u64::from(*reclaimed));
            }
            OperationResult::Refused { .. } => self.refused.increment(),
            OperationResult::Renewed(_) => self.renewals.increment(),
            OperationResult::Released(lease) => {
                self.releases.increment();
                self.record_hold(lease);
            }
            OperationResult::Revoked(lease) => {
                self.revocations.increment();
                self.record_hold(lease);
            }
            OperationResult::Lost(_, ending) if matches!(operation, Operation::Renew { .. }) => {
                self.losses.increment();
                instruments().lost(events::cause(&ending.how));
            }
            // A second release of a released lease is a success.
            OperationResult::Lost(_, ending)
                if operation.is_release() && !matches!(ending.how, EndCause::Released) =>
            {
                self.release_failures.increment();
            }
            OperationResult::Failed => {
                self.unavailable.increment();
                self.release_failures.add(u64::from(operation.is_release()));
            }
            OperationResult::Lost(..)
            | OperationResult::Expired(_)
            | OperationResult::Queued { .. }
            | OperationResult::KeyReused
            | OperationResult::LifetimeReached(_)
            | OperationResult::NotFound
            | OperationResult::Nothing => {}
        }
    }
}

/// Outcomes of calls about a lease.
#[derive(Debug, Default)]
pub struct Attempts {
    pub done: Counter,
    /// The lease had already ended.
    pub lost: Counter,
    /// Unknown, out of scope, or at the maximum lifetime.
    pub denied: Counter,
    pub error: Counter,
}

impl Attempts {
    pub(super) fn record_answer<T>(&self, answer: &Result<T, LeaseError>) {
        match answer {
            Ok(_) => self.done.increment(),
            Err(LeaseError::Lost(_)) => self.lost.increment(),
            Err(LeaseError::NotFound | LeaseError::OutOfScope | LeaseError::LifetimeReached { .. }) => {
                self.denied.increment();
            }
            Err(_) => self.error.increment(),
        }
    }

    /// Counts by outcome; `done` is the label of success.
    pub fn read(&self, done: &'static str) -> [(&'static str, u64); 4] {
        [
            (done, self.done.read()),
            ("lost", self.lost.read()),
            ("denied", self.denied.read()),
            ("error", self.error.read()),
        ]
    }
}

/// A monotonic counter.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn add(&self, number: u64) {
        self.0.fetch_add(number, Ordering::Relaxed);
    }

    pub fn increment(&self) {
        self.add(1);
    }

    /// Adds a duration; negative ones count as zero.
    pub fn add_ms(&self, ms: i64) {
        self.add(u64::try_from(ms).unwrap_or(0));
    }

    pub fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
