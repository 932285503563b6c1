//! Acquire requests: immediate or queued, with or without an idempotency key.

use std::sync::Arc;
use std::time::Duration;

use domain::duration::millis;
use domain::history::template;
use domain::lease::{Lease, LeaseId, Metadata, Refusal, Ttl};
use domain::names::{OwnerId, Resource};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::caller::LeaseCaller;
use super::core::{BatchReply, Core};
use super::error::LeaseError;
use super::grant_receiver::{GrantReceiver, PendingGrant};
use super::operation::{AcquireMode, AcquireOp, IdempotencyKey, KeyName, Operation, OperationResult};
use super::singleflight::{self, FlightRole, FlightTask};
use super::store::Lane;
use super::{LeaseService, REPLY_TIMEOUT, events, waiters};
use runtime::random;
use runtime::tasks;
use runtime::telemetry::instruments;
use runtime::telemetry::instruments::BackendAttributes;

/// While a free lock is reserved for the first waiter, an acquire that does not wait is repeated for this many milliseconds:
/// until that waiter has acquired the lock or has left the queue. On SQL stores that includes the waiters of a killed server.
const HEAD_WAIT_MS: i64 = 1_000;
const HEAD_RETRY_INTERVAL: Duration = Duration::from_millis(10);

#[derive(Debug, Clone)]
pub struct AcquireRequest {
    pub resource: Resource,
    pub owner: OwnerId,
    pub ttl: Ttl,
    pub wait: Duration,
    pub metadata: Metadata,
    pub idempotency_key: Option<Arc<str>>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Acquired {
    Granted { lease: Lease, remaining_ms: i64 },
    Refused { refusal: Refusal, waiters: u32 },
}

impl LeaseService {
    /// Acquires the lock of a resource, or reports its current holder.
    ///
    /// # Errors
    /// See [`LeaseError`]. After `Unavailable` it is unknown whether the lock was granted; a
    /// retry with the same idempotency key returns the result.
    pub async fn acquire(
        &self,
        caller: &LeaseCaller,
        request: AcquireRequest,
    ) -> Result<Acquired, LeaseError> {
        let resource = request.resource.clone();
        let answer = self.try_acquire(caller, request).await;
        match &answer {
            Ok(Acquired::Granted { lease, .. }) => events::acquired(&resource, lease),
            Ok(Acquired::Refused { .. }) => {}
            Err(error) => count_unanswered(&resource, error),
        }
        answer
    }

    /// As [`acquire`](Self::acquire), for a client that gets one response for several operations. No retry finds a grant without
    /// an idempotency key, so such a grant comes with a [`PendingGrant`].
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub async fn acquire_pending(
        &self,
        caller: &LeaseCaller,
        request: AcquireRequest,
    ) -> Result<(Acquired, Option<PendingGrant>), LeaseError> {
        let is_unkeyed = request.idempotency_key.is_none();
        let resource = request.resource.clone();
        let acquired = self.acquire(caller, request).await?;
        let grant = match &acquired {
            Acquired::Granted { lease, .. } if is_unkeyed => {
                let (core, lease) = (self.shards.of_resource(&resource)?.clone(), lease.clone());
                Some(PendingGrant::new(move || core.release_unkeyed(&resource, &lease)))
            }
            _ => None,
        };
        Ok((acquired, grant))
    }

    async fn try_acquire(
        &self,
        caller: &LeaseCaller,
        request: AcquireRequest,
    ) -> Result<Acquired, LeaseError> {
        caller.may_acquire(&request.resource)?;
        if self.common.stop.is_cancelled() {
            return Err(LeaseError::ShuttingDown);
        }
        let core = self.shards.of_resource(&request.resource)?;
        let wall = self.common.clock.now().wall.timestamp_millis();
        let map = self.shards.map();
        let id = LeaseId::from_parts(wall, random::bytes());
        let id = map.mark(id, map.of_resource(&request.resource));
        let key = request.idempotency_key.as_ref().map(|key| IdempotencyKey {
            name: KeyName {
                issuer: caller.principal.id.clone(),
                key: key.clone(),
            },
            fingerprint: fingerprint(&request),
        });
        let op = Box::new(AcquireOp {
            resource: request.resource,
            id,
            owner: request.owner,
            issuer: caller.principal.id.clone(),
            ttl: request.ttl,
            metadata: request.metadata,
            key,
            mode: AcquireMode::Once,
        });
        match op.key.clone() {
            None => run(core.clone(), op, request.wait).await,
            Some(key) => self.acquire_with_key(core, key, op, request.wait).await,
        }
    }

    async fn acquire_with_key(
        &self,
        core: &Arc<Core>,
        key: IdempotencyKey,
        op: Box<AcquireOp>,
        wait: Duration,
    ) -> Result<Acquired, LeaseError> {
        self.shards.claim_key(&key, core).await?;
        loop {
            match self.flights.join(&key, !wait.is_zero()) {
                FlightRole::FingerprintMismatch => return Err(LeaseError::KeyReused),
                FlightRole::Follower(result_rx) => {
                    if let Some(result) = singleflight::wait_for_result(result_rx).await {
                        return result;
                    }
                }
                FlightRole::Leader(leader) => {
                    let result = run(core.clone(), op, wait).await;
                    leader.finish(&result);
                    return result;
                }
                FlightRole::Task(task, result_rx) => {
                    spawn_acquire(core.clone(), op, wait, task);
                    let result = singleflight::wait_for_result(result_rx).await;
                    return result.unwrap_or(Err(LeaseError::Unavailable));
                }
            }
        }
    }
}

fn spawn_acquire(core: Arc<Core>, op: Box<AcquireOp>, wait: Duration, flight: FlightTask) {
    tasks::spawn(
        "keyed acquire",
        CancellationToken::new(),
        async move {
            let result = tokio::select! {
                biased;
                // All clients of this request have disconnected.
                () = flight.closed() => Err(LeaseError::Unavailable),
                result = run(core.clone(), op.clone(), wait) => result,
            };
            let grant = new_grant(core, op, &result);
            flight.finish(result, grant);
        }
        .in_current_span(),
    );
}

/// The new lease of this request. `None` for a lease that was granted to an earlier request with the same key: this request has
/// claimed it.
fn new_grant(
    core: Arc<Core>,
    op: Box<AcquireOp>,
    result: &Result<Acquired, LeaseError>,
) -> Option<PendingGrant> {
    match result {
        Ok(Acquired::Granted { lease, .. }) if lease.id == op.id => {
            Some(PendingGrant::new(move || core.release_unclaimed(&op, op.id)))
        }
        _ => None,
    }
}

/// Counts an attempt that ended with an error; grants and refusals are counted from the activity log.
fn count_unanswered(resource: &Resource, error: &LeaseError) {
    let outcome = match error {
        LeaseError::OutOfScope | LeaseError::Reserved | LeaseError::KeyReused | LeaseError::Invalid(_) => {
            "denied"
        }
        _ => "error",
    };
    let template = Arc::from(template::template(resource.as_bytes()));
    instruments().acquired(&BackendAttributes::builtin(), &template, outcome, 1);
}

/// Identifies requests of equal meaning, independent of the order of JSON members.
fn fingerprint(request: &AcquireRequest) -> Arc<str> {
    use std::fmt::Write as _;
    let mut text = format!(
        "{}\n{}\n{}",
        request.resource.text(),
        request.owner,
        request.ttl.seconds()
    );
    let _ = write!(text, "\n{}", request.wait.as_secs());
    for (name, value) in request.metadata.iter() {
        let _ = write!(text, "\n{name:?}={value:?}");
    }
    text.into()
}

async fn run(core: Arc<Core>, op: Box<AcquireOp>, wait: Duration) -> Result<Acquired, LeaseError> {
    let answer = if wait.is_zero() {
        acquire_once(&core, &op).await?
    } else {
        Box::pin(acquire_queued(&core, op, wait)).await?
    };
    to_acquired(&core, answer)
}

async fn acquire_once(core: &Core, op: &AcquireOp) -> Result<BatchReply, LeaseError> {
    let repeat_until = core.clock.tick().plus(HEAD_WAIT_MS);
    let mut reply_deadline = std::pin::pin!(tokio::time::sleep(REPLY_TIMEOUT));
    let mut tries = 0;
    loop {
        // The last attempt is sent after the wait, so a slow store does not shorten it.
        let is_last = core.clock.tick() >= repeat_until;
        let (reply, answer) = oneshot::channel();
        core.submit(Lane::Main, Operation::Acquire(op.attempt(tries)), reply);
        let mut receiver = GrantReceiver::new(answer, |lease| {
            if op.is_released_undelivered() {
                core.release_unclaimed(op, lease);
            }
        });
        let answer = tokio::select! {
            biased;
            answer = receiver.receive() => answer,
            () = &mut reply_deadline => Err(LeaseError::Unavailable),
        };
        match answer {
            Ok(BatchReply {
                done:
                    OperationResult::Refused {
                        reserved_for_waiter: true,
                        ..
                    },
                ..
            }) if !is_last => {
                tries += 1;
                tokio::time::sleep(HEAD_RETRY_INTERVAL).await;
            }
            Err(LeaseError::Unavailable) if op.key.is_none() => {
                // The grant may have been committed, and without a key no client can claim it:
                // release it.
                core.release_unclaimed(op, op.id);
                return Err(LeaseError::Unavailable);
            }
            answer => return answer,
        }
    }
}

async fn acquire_queued(
    core: &Arc<Core>,
    op: Box<AcquireOp>,
    wait: Duration,
) -> Result<BatchReply, LeaseError> {
    let (reply, answer) = oneshot::channel();
    let until = core.clock.tick().plus(millis(wait));
    let mut receiver = GrantReceiver::new(answer, |lease| core.release_unclaimed(&op, lease));
    let work = waiters::wait(core.clone(), op.clone(), reply, until);
    tasks::spawn("waiter", CancellationToken::new(), work.in_current_span());
    tokio::time::timeout(wait + REPLY_TIMEOUT, receiver.receive())
        .await
        .unwrap_or(Err(LeaseError::Unavailable))
}

fn to_acquired(core: &Core, answer: BatchReply) -> Result<Acquired, LeaseError> {
    let age_ms = core.clock.tick().since(answer.read_at);
    match answer.done {
        OperationResult::Acquired { lease, .. } => {
            let remaining_ms = lease.remaining_ms(answer.now) - age_ms;
            if remaining_ms <= 0 {
                // The lease expired in transit: a grant must not be reported to the client.
                return Err(LeaseError::Unavailable);
            }
            Ok(Acquired::Granted { lease, remaining_ms })
        }
        OperationResult::Refused { refusal, waiters, .. } => Ok(Acquired::Refused { refusal, waiters }),
        OperationResult::Lost(_, ending) => Err(LeaseError::Lost(ending.how)),
        OperationResult::KeyReused => Err(LeaseError::KeyReused),
        _ => Err(LeaseError::Broken),
    }
}

#[cfg(test)]
mod tests;
