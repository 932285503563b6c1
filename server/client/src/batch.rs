//! Many leases in one call: acquired together, released together. Each is then a [`Lease`] of its own.

use std::time::Duration;

use crate::client::Client;
use crate::clock::{self, Moment};
use crate::dto::{Acquired, BatchItem, BatchOperation, LeaseBody};
use crate::http_call::{self, CallError};
use crate::lease::Lease;
use crate::request::{AcquireError, Request};
use crate::withdrawal::PendingBatch;
use crate::{rng, schedule};

/// Operations of one call, as the server limits them.
const CALL_MAX: usize = 512;
/// Bytes of the operations of one call. The server accepts 256 KiB with what is around them.
const CALL_BYTES_MAX: usize = 255 * 1024;
/// Pause after the problem of one operation: the `Retry-After` of its single call, which a batch does not carry.
const RETRY_AFTER: Duration = Duration::from_secs(1);

type AcquireResult = Result<Lease, AcquireError>;

impl Client {
    /// Acquires several locks with as few calls as possible; results have the order of the requests. No request waits
    /// in a queue, so [`Request::wait`] has no effect. A resource may be named once.
    ///
    /// A call without an answer, or with a lock that the server could not decide about (503), is repeated with the same
    /// idempotency key for as long as [`Builder::patience`](crate::Builder::patience) allows: a lock that was granted is not
    /// lost. Locks granted by an earlier answer are renewed meanwhile, and refused ones are tried again.
    ///
    /// Locks whose outcome stays unknown are released in the background, and so is, when the future is dropped, what was
    /// granted: see [`withdrawn`](Self::withdrawn).
    ///
    /// # Errors
    /// See [`AcquireError`]; each request has its own. An error of a whole call, such as an invalid request, is the result of
    /// each of its requests.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[must_use = "a lease is released when it is dropped"]
    pub async fn acquire_many(&self, requests: &[Request]) -> Vec<Result<Lease, AcquireError>> {
        let mut leases = Vec::with_capacity(requests.len());
        for part in parts(requests) {
            leases.extend(self.acquire_part(part).await);
        }
        leases
    }

    async fn acquire_part(&self, requests: &[Request]) -> Vec<AcquireResult> {
        let operations = requests.iter().map(Request::batch_operation).collect::<Vec<_>>();
        let mut pending = PendingBatch::new(self, requests);
        let deadline = clock::now().plus(self.patience);
        // Until the first answer.
        let unknown = |_| Err(AcquireError::Unknown { why: String::new() });
        let mut results: Vec<AcquireResult> = requests.iter().map(unknown).collect();
        let mut failures = 0;
        loop {
            let sent = clock::now();
            let within = schedule::ANSWER_MAX.min(deadline.since(sent));
            let had_arrived = pending.begin();
            let retry_after = match self.calls.batch(&operations, &pending.key, within).await {
                Ok(items) => self.record_items(&mut pending, requests, &mut results, items, sent),
                Err(error) => {
                    if matches!(error, CallError::Unknown { is_unsent: true, .. }) {
                        pending.set_unsent(had_arrived);
                    }
                    record_failure(&mut results, &error)
                }
            };
            let Some(retry_after) = retry_after else {
                pending.finish();
                return results;
            };
            failures += 1;
            let pause = schedule::backoff(failures, rng::unit()).max(retry_after);
            if deadline.since(clock::now()) <= pause {
                return results;
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Records the results of an answer. Returns the pause before the call is repeated; `None` if every outcome is known.
    fn record_items(
        &self,
        pending: &mut PendingBatch<'_>,
        requests: &[Request],
        results: &mut [AcquireResult],
        items: Vec<BatchItem>,
        sent: Moment,
    ) -> Option<Duration> {
        let mut retry_after = None;
        for ((result, request), item) in results.iter_mut().zip(requests).zip(items) {
            // A repeated answer has the same lease, which is renewed since the first one.
            if result.is_ok() {
                continue;
            }
            *result = match http_call::acquired(item) {
                Ok(Acquired {
                    grant: Some(grant),
                    acquired: true,
                    ..
                }) => {
                    let ttl = Duration::from_secs(grant.ttl_seconds);
                    let deadline = schedule::deadline(sent, grant.remaining_ms, ttl);
                    let lease = Lease::start(self, &request.resource, grant, deadline);
                    pending.keep(&lease);
                    Ok(lease)
                }
                Ok(refused) => Err(AcquireError::from_acquired(refused)),
                Err(error) => {
                    if matches!(error, CallError::Unknown { .. }) {
                        retry_after = Some(RETRY_AFTER);
                    }
                    Err(AcquireError::from_call(&error))
                }
            };
        }
        retry_after
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

/// As [`Client::record_items`], for a call that failed as a whole.
fn record_failure(results: &mut [AcquireResult], error: &CallError) -> Option<Duration> {
    let retry_after = match error {
        CallError::Unknown { retry_after, .. } => Some(retry_after.unwrap_or_default()),
        _ => None,
    };
    for result in results {
        let is_open = match result {
            Ok(_) => false,
            Err(AcquireError::Unknown { .. }) => true,
            // Without an answer, a lock that was refused before may be granted now.
            Err(_) => retry_after.is_some(),
        };
        if is_open {
            *result = Err(AcquireError::from_call(error));
        }
    }
    retry_after
}

/// Requests of one call each, within the limits of the server, which refuses a request that alone is too large.
fn parts(requests: &[Request]) -> Vec<&[Request]> {
    let (mut parts, mut first, mut bytes) = (Vec::new(), 0, 0);
    for (place, request) in requests.iter().enumerate() {
        let operation = serde_json::to_vec(&request.batch_operation());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_server::TestServer;

    fn client(server: &TestServer) -> Client {
        let client = Client::builder(&server.address).without_events();
        client.build().unwrap()
    }

    fn requests(count: usize) -> Vec<Request> {
        let request = |number| Request::new(format!("r-{number}"), Duration::from_secs(30));
        (0..count).map(request).collect()
    }

    #[tokio::test]
    async fn a_lock_answered_503_is_retried_with_the_same_key() {
        // The first lock is granted at once; the third was held, and is free by then.
        let server = TestServer::start([
            (
                "200 OK",
                r#"{"results": [
                    {"acquire": {"acquired": true, "leaseId": "l-0", "fencingToken": 1, "ttlSeconds": 30, "remainingMs": 30000}},
                    {"problem": {"status": 503, "code": "overloaded", "detail": "This server is overloaded"}},
                    {"acquire": {"acquired": false, "heldBy": null, "waiters": 0, "retryAfterMs": 100}}
                ]}"#,
            ),
            (
                "200 OK",
                r#"{"results": [
                    {"acquire": {"acquired": true, "leaseId": "l-0", "fencingToken": 1, "ttlSeconds": 30, "remainingMs": 9}},
                    {"acquire": {"acquired": true, "leaseId": "l-1", "fencingToken": 2, "ttlSeconds": 30, "remainingMs": 30000}},
                    {"acquire": {"acquired": true, "leaseId": "l-2", "fencingToken": 3, "ttlSeconds": 30, "remainingMs": 30000}}
                ]}"#,
            ),
        ]);
        let results = client(&server).acquire_many(&requests(3)).await;
        let leases: Vec<Lease> = results.into_iter().map(Result::unwrap).collect();
        let tokens: Vec<u64> = leases.iter().map(Lease::fencing_token).collect();
        assert_eq!(tokens, [1, 2, 3]);
        // Not shortened by the repeated answer.
        assert!(leases[0].checkpoint(Duration::from_secs(10)).is_ok());
        let keys: Vec<String> = (0..2)
            .map(|_| TestServer::key_of(&server.next_request()).to_owned())
            .collect();
        assert_eq!(keys[0], keys[1]);
    }

    #[tokio::test]
    async fn a_batch_that_is_dropped_is_released() {
        // Dropped before the answer to its first call; the repeated call grants both locks.
        let both = r#"{"results": [
            {"acquire": {"acquired": true, "leaseId": "l-0", "fencingToken": 1, "ttlSeconds": 30, "remainingMs": 30000}},
            {"acquire": {"acquired": true, "leaseId": "l-1", "fencingToken": 2, "ttlSeconds": 30, "remainingMs": 30000}}
        ]}"#;
        let server = TestServer::start([
            ("503 Service Unavailable", "{}"),
            ("200 OK", both),
            ("200 OK", "{}"),
        ]);
        let (client, requests) = (client(&server), requests(2));
        let received = tokio::task::spawn_blocking(move || (server.next_request(), server));
        let (first, server) = tokio::select! {
            results = client.acquire_many(&requests) => panic!("{results:?}"),
            received = received => received.unwrap(),
        };
        client.withdrawn().await;
        let [repeated, released] = [(); 2].map(|()| server.next_request());
        assert_eq!(TestServer::key_of(&first), TestServer::key_of(&repeated));
        for lease in ["l-0", "l-1"] {
            let release = format!(r#"{{"release":{{"leaseId":"{lease}"}}}}"#);
            assert!(released.contains(&release), "{released}");
        }
    }

    #[tokio::test]
    async fn locks_with_an_unknown_outcome_are_released() {
        // The first lock is granted; the second stays unknown until the patience is over. It was granted too, which the client
        // learns at its second attempt, after one without a decision.
        let half = r#"{"results": [
            {"acquire": {"acquired": true, "leaseId": "l-0", "fencingToken": 1, "ttlSeconds": 30, "remainingMs": 30000}},
            {"problem": {"status": 503, "code": "overloaded", "detail": "This server is overloaded"}}
        ]}"#;
        let both = r#"{"results": [
            {"acquire": {"acquired": true, "leaseId": "l-0", "fencingToken": 1, "ttlSeconds": 30, "remainingMs": 30000}},
            {"acquire": {"acquired": true, "leaseId": "l-1", "fencingToken": 2, "ttlSeconds": 30, "remainingMs": 30000}}
        ]}"#;
        let server = TestServer::start([
            ("200 OK", half),
            ("503 Service Unavailable\r\nretry-after: 60", "{}"),
            ("200 OK", half),
            ("200 OK", both),
            ("200 OK", r#"{"results": [{"release": {}}]}"#),
        ]);
        let client = client(&server);
        let results = client.acquire_many(&requests(2)).await;
        client.withdrawn().await;
        let lease = results[0].as_ref().unwrap();
        assert!(lease.checkpoint(Duration::ZERO).is_ok());
        assert!(
            matches!(results[1], Err(AcquireError::Unknown { .. })),
            "{results:?}"
        );
        let [.., released] = [(); 5].map(|()| server.next_request());
        assert!(
            released.contains("l-1") && !released.contains("l-0"),
            "{released}"
        );
    }

    #[tokio::test]
    async fn a_lock_lost_before_its_answer_is_not_retried() {
        // The only answer: a second call would be refused its connection.
        let server = TestServer::start([(
            "200 OK",
            r#"{"results": [{"problem": {"status": 410, "code": "expired", "detail": "This lease expired"}}]}"#,
        )]);
        let results = client(&server).acquire_many(&requests(1)).await;
        let error = results.into_iter().next().unwrap().unwrap_err();
        assert!(matches!(error, AcquireError::Unknown { .. }), "{error}");
        assert!(error.to_string().contains("granted and lost"), "{error}");
    }
}
