//! Grants that no client receives, waiters whose client is gone, and those of which it is unknown whether they were committed.
//! Each is released, or removed from its queue, by an operation that is repeated until the store has answered it. The usual
//! cause is a store that does not answer: it does not answer the first operation either.

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
/// A batch whose answer was lost is usually committed within this time, in milliseconds.
const COMMIT_MS_USUAL: i64 = 5_000;
/// Longest pause before an operation that found nothing is repeated, in milliseconds.
const PAUSE_MS_MAX: i64 = 30_000;
/// How long the removal of a waiter is repeated, in milliseconds.
const WAITER_MS_MAX: i64 = 3_600_000;
/// Grants and waiters beyond this number are released once, without repetition.
const COUNT_MAX: usize = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Grant,
    Waiter,
}

#[derive(Default)]
pub(super) struct AbandonedRequests(Mutex<HashMap<(Kind, LeaseId), AbandonedRequest>>);

struct AbandonedRequest {
    kind: Kind,
    resource: Resource,
    operation: Operation,
    since: Tick,
    /// After this time the lease has expired.
    until: Tick,
    /// `None` until the operation is sent again.
    answer: Option<Answer>,
    send_at: Tick,
}

#[derive(Debug, PartialEq, Eq)]
enum Step {
    Wait,
    Send,
    Finished,
}

impl AbandonedRequest {
    fn next(&mut self, now: Tick) -> Step {
        if let Some(answer) = &mut self.answer {
            let result = match answer.try_recv() {
                Err(TryRecvError::Empty) => return Step::Wait,
                Err(TryRecvError::Closed) => None,
                Ok(answer) => answer.ok().map(|answer| answer.done),
            };
            self.answer = None;
            if self.is_final(result.as_ref(), now) {
                return Step::Finished;
            }
        }
        if now >= self.until {
            Step::Finished
        } else if now >= self.send_at {
            Step::Send
        } else {
            Step::Wait
        }
    }

    /// Whether nothing can appear any more; otherwise sets when the operation is sent again.
    fn is_final(&mut self, result: Option<&OperationResult>, now: Tick) -> bool {
        let age_ms = now.since(self.since);
        match (self.kind, result) {
            (_, None | Some(OperationResult::Failed)) => false,
            // A commit can take as long as the disk or a standby of the store does not answer: its lease appears then.
            (Kind::Grant, Some(OperationResult::NotFound)) => {
                self.send_at = now.plus((age_ms / 2).min(PAUSE_MS_MAX));
                false
            }
            // The row may be committed after this answer.
            (Kind::Waiter, Some(_)) if age_ms < COMMIT_MS_USUAL => {
                self.send_at = self.since.plus(COMMIT_MS_USUAL);
                false
            }
            (_, Some(_)) => true,
        }
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
        let release = Operation::Release {
            lease,
            principal: LeasePrincipal::new(issuer.clone()),
            scope: Scope::everything(),
            unbind,
        };
        let lasts_ms = ttl.ms() + COMMIT_MS_USUAL;
        if self.repeat_until_answered((Kind::Grant, lease), resource, release, lasts_ms) {
            self.metrics.unclaimed_grants.increment();
        }
    }

    /// Removes a waiter from its queue, where it would reserve the lock.
    pub(super) fn leave_until_answered(&self, resource: &Resource, waiter: LeaseId) {
        let leave = Operation::Leave {
            resource: resource.clone(),
            waiter,
        };
        self.repeat_until_answered((Kind::Waiter, waiter), resource, leave, WAITER_MS_MAX);
    }

    /// Returns false if the operation is already repeated.
    fn repeat_until_answered(
        &self,
        (kind, id): (Kind, LeaseId),
        resource: &Resource,
        operation: Operation,
        lasts_ms: i64,
    ) -> bool {
        let mut abandoned = self.abandoned.0.lock();
        if abandoned.contains_key(&(kind, id)) {
            return false;
        }
        // Same lane as the acquire, which may still be queued.
        let answer = self.submit_with_acquires(resource, operation.clone());
        if abandoned.len() < COUNT_MAX {
            let since = self.clock.tick();
            let request = AbandonedRequest {
                kind,
                resource: resource.clone(),
                operation,
                since,
                until: since.plus(lasts_ms),
                answer: Some(answer),
                send_at: since,
            };
            abandoned.insert((kind, id), request);
        }
        true
    }

    /// Repeats the operations that the store has not answered.
    pub(super) async fn repeat_for_abandoned_requests(&self) {
        loop {
            tokio::time::sleep(INTERVAL).await;
            let now = self.clock.tick();
            self.abandoned.0.lock().retain(|_, request| {
                let step = request.next(now);
                if step == Step::Send {
                    let operation = request.operation.clone();
                    request.answer = Some(self.submit_with_acquires(&request.resource, operation));
                }
                step != Step::Finished
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::lease::StoreTime;
    use tokio::sync::oneshot;

    use super::*;
    use crate::core::BatchReply;

    const SECOND: i64 = 1_000;

    /// Steps of a request whose operation gets these results, each at a time in seconds.
    fn steps(kind: Kind, results: &[(i64, Option<OperationResult>)]) -> Vec<Step> {
        let mut request = AbandonedRequest {
            kind,
            resource: Resource::from("r"),
            operation: Operation::Leave {
                resource: Resource::from("r"),
                waiter: LeaseId::from_parts(1, [0; 10]),
            },
            since: Tick(0),
            until: Tick(600 * SECOND),
            answer: None,
            send_at: Tick(0),
        };
        let step = |(second, result): &(i64, Option<OperationResult>)| {
            if let Some(done) = result {
                let (sender, answer) = oneshot::channel();
                let reply = BatchReply {
                    done: done.clone(),
                    now: StoreTime::from_ms(0),
                    read_at: Tick(0),
                };
                sender.send(Ok(reply)).unwrap();
                request.answer = Some(answer);
            }
            request.next(Tick(second * SECOND))
        };
        results.iter().map(step).collect()
    }

    #[test]
    fn a_grant_that_is_not_found_is_looked_for_until_its_ttl_ends() {
        // Its commit may take minutes. The pauses grow with that time, up to 30 s.
        let missing = || Some(OperationResult::NotFound);
        assert_eq!(
            steps(
                Kind::Grant,
                &[
                    (1, missing()),
                    (2, None),
                    (60, missing()),
                    (80, None),
                    (90, None),
                    (91, Some(OperationResult::Nothing))
                ]
            ),
            [
                Step::Wait,
                Step::Send,
                Step::Wait,
                Step::Wait,
                Step::Send,
                Step::Finished
            ]
        );
        assert_eq!(steps(Kind::Grant, &[(600, missing())]), [Step::Finished]);
        assert_eq!(
            steps(Kind::Grant, &[(1, Some(OperationResult::Failed))]),
            [Step::Send]
        );
    }

    #[test]
    fn a_waiter_is_removed_again_after_a_late_commit() {
        let left = || Some(OperationResult::Nothing);
        assert_eq!(
            steps(Kind::Waiter, &[(1, left()), (4, None), (5, None), (6, left())]),
            [Step::Wait, Step::Wait, Step::Send, Step::Finished]
        );
    }
}
