//! Grants that no client receives, and grants of which it is unknown whether they were committed. Each is released, and the
//! release is repeated until the store has answered it. The usual cause is a store that does not answer: it does not answer the
//! first release either.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use domain::lease::{Lease, LeaseId, Scope, Ttl};
use domain::names::Resource;
use domain::tick::Tick;
use parking_lot::Mutex;
use tokio::sync::oneshot::error::TryRecvError;

use super::caller::LeasePrincipal;
use super::core::{Answer, Core};
use super::operation::{AcquireOp, KeyName, Operation, OperationResult};

/// Interval between two checks of the answers.
const INTERVAL: Duration = Duration::from_millis(500);
/// A batch whose answer was lost may be committed so much later, in milliseconds: until then a lease that is not found may still
/// appear.
const COMMIT_MS_MAX: i64 = 5_000;
/// Grants beyond this number are released once, without repetition.
const COUNT_MAX: usize = 10_000;

#[derive(Default)]
pub(super) struct UnclaimedGrants(Mutex<HashMap<LeaseId, UnclaimedGrant>>);

struct UnclaimedGrant {
    resource: Resource,
    release: Operation,
    since: Tick,
    /// After this time the lease has expired.
    until: Tick,
    answer: Answer,
}

impl UnclaimedGrant {
    /// Whether the release has to be sent again; `None`: it is finished.
    fn next(&mut self, now: Tick) -> Option<bool> {
        let answer = match self.answer.try_recv() {
            Err(TryRecvError::Empty) => return Some(false),
            Err(TryRecvError::Closed) => None,
            Ok(answer) => answer.ok(),
        };
        let is_answered = match answer.map(|answer| answer.done) {
            None | Some(OperationResult::Failed) => false,
            Some(OperationResult::NotFound) => now.since(self.since) > COMMIT_MS_MAX,
            Some(_) => true,
        };
        (!is_answered && now < self.until).then_some(true)
    }
}

impl Core {
    /// Releases a grant that no client received, and deletes its idempotency key.
    pub(super) fn release_unclaimed(&self, op: &AcquireOp, lease: LeaseId) {
        let key = op.key.as_ref().map(|key| key.name.clone());
        self.release_until_answered(&op.resource, lease, (&op.issuer, op.ttl), key);
    }

    /// Releases a lease without an idempotency key that its client did not receive.
    pub(super) fn release_unkeyed(&self, resource: &Resource, lease: &Lease) {
        self.release_until_answered(resource, lease.id, (&lease.issuer, lease.ttl), None);
    }

    fn release_until_answered(
        &self,
        resource: &Resource,
        lease: LeaseId,
        (issuer, ttl): (&Arc<str>, Ttl),
        unbind: Option<KeyName>,
    ) {
        let mut unclaimed = self.unclaimed.0.lock();
        if unclaimed.contains_key(&lease) {
            return;
        }
        self.metrics.unclaimed_grants.increment();
        let release = Operation::Release {
            lease,
            principal: LeasePrincipal::new(issuer.clone()),
            scope: Scope::everything(),
            unbind,
        };
        // Same lane as the acquire, which may still be queued.
        let answer = self.submit_with_acquires(resource, release.clone());
        if unclaimed.len() < COUNT_MAX {
            let since = self.clock.tick();
            let grant = UnclaimedGrant {
                resource: resource.clone(),
                release,
                since,
                until: since.plus(ttl.ms() + COMMIT_MS_MAX),
                answer,
            };
            unclaimed.insert(lease, grant);
        }
    }

    /// Repeats the releases that the store has not answered.
    pub(super) async fn repeat_unclaimed_releases(&self) {
        loop {
            tokio::time::sleep(INTERVAL).await;
            let now = self.clock.tick();
            self.unclaimed.0.lock().retain(|_, grant| {
                let next = grant.next(now);
                if next == Some(true) {
                    grant.answer = self.submit_with_acquires(&grant.resource, grant.release.clone());
                }
                next.is_some()
            });
        }
    }
}
