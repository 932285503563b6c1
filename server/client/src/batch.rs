//! Many leases in one call: acquired together, released together. Each is then a [`Lease`] of its own.

use std::time::Duration;

use crate::client::Client;
use crate::clock;
use crate::dto::{Acquired, BatchItem, BatchOperation, LeaseBody};
use crate::http_call::CallError;
use crate::lease::Lease;
use crate::request::{AcquireError, Request};
use crate::{rng, schedule};

/// Operations of one call, as the server limits them.
const CALL_MAX: usize = 512;
/// Bytes of the operations of one call. The server accepts 256 KiB with what is around them.
const CALL_BYTES_MAX: usize = 255 * 1024;

impl Client {
    /// Acquires several locks with as few calls as possible; results have the order of the requests. No request waits
    /// in a queue, so [`Request::wait`] has no effect. A resource may be named once.
    ///
    /// Without an answer, the call is repeated with the same idempotency key: a lock that was granted is not lost.
    ///
    /// # Errors
    /// See [`AcquireError`]. An error of a whole call, such as an invalid request, is the result of each of its requests.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn acquire_many(&self, requests: &[Request]) -> Vec<Result<Lease, AcquireError>> {
        let mut leases = Vec::with_capacity(requests.len());
        for part in parts(requests) {
            leases.extend(self.acquire_part(part).await);
        }
        leases
    }

    async fn acquire_part(&self, requests: &[Request]) -> Vec<Result<Lease, AcquireError>> {
        let operations: Vec<_> = requests
            .iter()
            .map(|request| BatchOperation::Acquire(request.batch_body()))
            .collect();
        let key = rng::idempotency_key();
        let deadline = clock::now().plus(self.patience);
        let mut failures = 0;
        loop {
            let sent = clock::now();
            let within = schedule::ANSWER_MAX.min(deadline.since(sent));
            let error = match self.calls.batch(&operations, &key, within).await {
                Ok(results) => {
                    let results = requests.iter().zip(results);
                    return results
                        .map(|(request, result)| self.acquired(request, result, sent))
                        .collect();
                }
                Err(error) => error,
            };
            failures += 1;
            let pause = schedule::backoff(failures, rng::unit());
            let is_final = !matches!(error, CallError::Unknown { .. });
            if is_final || deadline.since(clock::now()) <= pause {
                let failed = requests.iter().map(|_| Err(AcquireError::from_call(&error)));
                return failed.collect();
            }
            tokio::time::sleep(pause).await;
        }
    }

    fn acquired(
        &self,
        request: &Request,
        result: BatchItem,
        sent: clock::Moment,
    ) -> Result<Lease, AcquireError> {
        match result {
            BatchItem::Acquire(Acquired {
                grant: Some(grant),
                acquired: true,
                ..
            }) => {
                let ttl = Duration::from_secs(grant.ttl_seconds);
                let deadline = schedule::deadline(sent, grant.remaining_ms, ttl);
                Ok(Lease::start(self, &request.resource, grant, deadline))
            }
            BatchItem::Acquire(refused) => Err(AcquireError::from_acquired(refused)),
            BatchItem::Problem(problem) => Err(AcquireError::from_problem(problem)),
            BatchItem::Release(_) => Err(AcquireError::Unknown {
                why: "the answer is about another operation".to_owned(),
            }),
        }
    }

    /// Releases several leases with as few calls as possible. Each counts as lost from the call on; one whose release
    /// gets no answer is released by itself, and expires if that fails too.
    pub async fn release_many(&self, leases: Vec<Lease>) {
        for part in leases.chunks(CALL_MAX) {
            part.iter().for_each(Lease::end);
            let release = |lease: &Lease| {
                BatchOperation::Release(LeaseBody {
                    lease_id: lease.id().to_owned(),
                })
            };
            let operations: Vec<_> = part.iter().map(release).collect();
            let key = rng::idempotency_key();
            match self.calls.batch(&operations, &key, schedule::ANSWER_MAX).await {
                Ok(results) => {
                    let released = part.iter().zip(results);
                    let released = released.filter(|(_, result)| matches!(result, BatchItem::Release(_)));
                    released.for_each(|(lease, _)| lease.mark_released());
                }
                Err(error) => tracing::debug!("leases are released one by one: {}", error.sentence()),
            }
        }
        // Dropping a lease releases it, unless it is released.
    }
}

/// Requests of one call each, within the limits of the server, which refuses a request that alone is too large.
fn parts(requests: &[Request]) -> Vec<&[Request]> {
    let (mut parts, mut first, mut bytes) = (Vec::new(), 0, 0);
    for (place, request) in requests.iter().enumerate() {
        let operation = serde_json::to_vec(&BatchOperation::Acquire(request.batch_body()));
        // With a comma.
        let size = operation.map_or(0, |json| json.len() + 1);
        if place > first && (place - first == CALL_MAX || bytes + size > CALL_BYTES_MAX) {
            parts.push(&requests[first..place]);
            (first, bytes) = (place, 0);
        }
        bytes += size;
    }
    if first < requests.len() {
        parts.push(&requests[first..]);
    }
    parts
}
