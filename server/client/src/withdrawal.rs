//! Withdraws an acquire whose caller has dropped it: a lease that the server grants nevertheless is released.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::client::Client;
use crate::clock::{self, Moment};
use crate::dto::{Acquired, BatchItem, BatchOperation, LeaseBody};
use crate::http_call::{self, CallError, Calls};
use crate::lease::Lease;
use crate::request::Request;
use crate::{rng, schedule};

/// How long a withdrawal tries to reach the server.
const WITHDRAW_MAX: Duration = Duration::from_secs(2);

/// Withdrawals at once. A caller that drops acquires faster than the server answers leaves the others to their TTL.
const WITHDRAWALS_MAX: usize = 64;

/// Number of withdrawals that are running.
#[derive(Debug, Clone, Default)]
pub(crate) struct Withdrawals(Arc<watch::Sender<usize>>);

/// Counted until it is dropped.
struct Running(Withdrawals);

impl Withdrawals {
    fn start(&self, work: impl Future<Output = ()> + Send + 'static) {
        // Without a runtime the process is ending.
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        if *self.0.borrow() >= WITHDRAWALS_MAX {
            return;
        }
        self.0.send_modify(|count| *count += 1);
        let running = Running(self.clone());
        runtime.spawn(async move {
            let _running = running;
            let _ = tokio::time::timeout(WITHDRAW_MAX, work).await;
        });
    }

    async fn finished(&self) {
        let mut running = self.0.subscribe();
        let _ = tokio::time::timeout(WITHDRAW_MAX, running.wait_for(|count| *count == 0)).await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}

impl Client {
    /// Waits, for at most 2 s, until acquires that were dropped before their result have been withdrawn. Call it before the
    /// process ends: otherwise a lock that was granted meanwhile stays held for one TTL.
    pub async fn withdrawn(&self) {
        self.withdrawals.finished().await;
    }
}

/// One idempotency key whose result the caller has not received. Dropped before that, it is withdrawn.
pub(crate) struct PendingAcquire<'a> {
    client: &'a Client,
    request: &'a Request,
    wait: Duration,
    pub(crate) key: String,
    granted: Option<String>,
    /// Whether the server may have received it.
    may_have_arrived: bool,
    is_finished: bool,
}

impl<'a> PendingAcquire<'a> {
    pub(crate) fn new(client: &'a Client, request: &'a Request, wait: Duration) -> Self {
        Self {
            client,
            request,
            wait,
            key: rng::idempotency_key(),
            granted: None,
            may_have_arrived: false,
            is_finished: false,
        }
    }

    /// An attempt begins. Returns whether the server may have received an earlier one.
    pub(crate) fn begin(&mut self) -> bool {
        std::mem::replace(&mut self.may_have_arrived, true)
    }

    /// The attempt that was begun was not sent.
    pub(crate) fn set_unsent(&mut self, may_have_arrived: bool) {
        self.may_have_arrived = may_have_arrived;
    }

    /// The server has granted this lease.
    pub(crate) fn grant(&mut self, lease_id: &str) {
        self.granted = Some(lease_id.to_owned());
    }

    /// The caller has the result.
    pub(crate) fn finish(mut self) {
        self.is_finished = true;
    }
}

impl Drop for PendingAcquire<'_> {
    fn drop(&mut self) {
        if self.is_finished {
            return;
        }
        let calls = self.client.calls.clone();
        if let Some(lease_id) = self.granted.take() {
            let release = async move { release(&calls, &lease_id).await };
            self.client.withdrawals.start(release);
        } else if self.wait.is_zero() && self.may_have_arrived {
            let (request, key) = (self.request.clone(), std::mem::take(&mut self.key));
            let withdraw = async move { withdraw(&calls, &request, &key).await };
            self.client.withdrawals.start(withdraw);
        }
        // A request that waits in the queue leaves it when its connection closes.
    }
}

/// The idempotency key of a batch call whose results the caller has not received, or not all of them. Dropped before that, it
/// is withdrawn.
pub(crate) struct PendingBatch<'a> {
    client: &'a Client,
    requests: &'a [Request],
    pub(crate) key: String,
    /// Leases that the caller has.
    kept: Vec<String>,
    may_have_arrived: bool,
}

impl<'a> PendingBatch<'a> {
    pub(crate) fn new(client: &'a Client, requests: &'a [Request]) -> Self {
        Self {
            client,
            requests,
            key: rng::idempotency_key(),
            kept: Vec::new(),
            may_have_arrived: false,
        }
    }

    /// An attempt begins. Returns whether the server may have received an earlier one.
    pub(crate) fn begin(&mut self) -> bool {
        std::mem::replace(&mut self.may_have_arrived, true)
    }

    /// The attempt that was begun was not sent.
    pub(crate) fn set_unsent(&mut self, may_have_arrived: bool) {
        self.may_have_arrived = may_have_arrived;
    }

    /// This lease is the caller's, who releases it.
    pub(crate) fn keep(&mut self, lease: &Lease) {
        self.kept.push(lease.id().to_owned());
    }

    /// Every result is known.
    pub(crate) fn finish(mut self) {
        self.may_have_arrived = false;
    }
}

impl Drop for PendingBatch<'_> {
    fn drop(&mut self) {
        if !self.may_have_arrived {
            return;
        }
        let (calls, requests) = (self.client.calls.clone(), self.requests.to_vec());
        let (key, kept) = (std::mem::take(&mut self.key), std::mem::take(&mut self.kept));
        let withdraw = async move { withdraw_batch(&calls, &requests, &key, kept).await };
        self.client.withdrawals.start(withdraw);
    }
}

/// The attempts to learn a result, within [`WITHDRAW_MAX`].
struct Attempts {
    until: Moment,
    failures: u32,
}

impl Attempts {
    fn start() -> Self {
        Self {
            until: clock::now().plus(WITHDRAW_MAX),
            failures: 0,
        }
    }

    fn left(&self) -> Duration {
        self.until.since(clock::now())
    }

    async fn pause(&mut self) {
        self.failures += 1;
        tokio::time::sleep(schedule::backoff(self.failures, rng::unit())).await;
    }
}

/// Learns the result of a key, and releases what it was granted.
async fn withdraw(calls: &Calls, request: &Request, key: &str) {
    let body = request.body(Duration::ZERO);
    let mut attempts = Attempts::start();
    loop {
        match calls.acquire(&body, key, attempts.left()).await {
            Ok(Acquired {
                grant: Some(grant), ..
            }) => return release(calls, &grant.lease_id).await,
            Err(CallError::Unknown { .. }) => attempts.pause().await,
            Ok(_) | Err(_) => return,
        }
    }
}

/// As [`withdraw`], for a batch call. Leases that the caller has stay.
async fn withdraw_batch(calls: &Calls, requests: &[Request], key: &str, mut kept: Vec<String>) {
    let operations: Vec<_> = requests.iter().map(Request::batch_operation).collect();
    let mut attempts = Attempts::start();
    loop {
        let is_open = match calls.batch(&operations, key, attempts.left()).await {
            Ok(items) => {
                let results: Vec<_> = items.into_iter().map(http_call::acquired).collect();
                let is_unknown = |result: &_| matches!(result, Err(CallError::Unknown { .. }));
                let is_open = results.iter().any(is_unknown);
                let granted = results.into_iter().filter_map(|result| result.ok()?.grant);
                let granted = granted.map(|grant| grant.lease_id);
                let granted: Vec<_> = granted.filter(|id| !kept.contains(id)).collect();
                is_open || !release_all(calls, granted, &mut kept).await
            }
            Err(CallError::Unknown { .. }) => true,
            Err(_) => false,
        };
        if !is_open {
            return;
        }
        attempts.pause().await;
    }
}

/// Releases leases with one call, and adds them to `done`. Returns whether that is all of them.
async fn release_all(calls: &Calls, leases: Vec<String>, done: &mut Vec<String>) -> bool {
    if leases.is_empty() {
        return true;
    }
    let release = |lease_id: &String| {
        BatchOperation::Release(LeaseBody {
            lease_id: lease_id.clone(),
        })
    };
    let operations: Vec<_> = leases.iter().map(release).collect();
    match calls
        .batch(&operations, &rng::idempotency_key(), WITHDRAW_MAX)
        .await
    {
        Ok(items) => {
            // After another refusal the lease is not held either.
            let is_failed = |item: &BatchItem| matches!(item, BatchItem::Problem(it) if it.status >= 500);
            let all = !items.iter().any(is_failed);
            let ended = leases.into_iter().zip(items).filter(|(_, item)| !is_failed(item));
            done.extend(ended.map(|(id, _)| id));
            all
        }
        Err(error) => {
            tracing::debug!("withdrawn leases could not be released: {}", error.sentence());
            false
        }
    }
}

async fn release(calls: &Calls, lease_id: &str) {
    if let Err(error) = calls.release(lease_id, WITHDRAW_MAX).await {
        tracing::debug!(lease.id = %lease_id, "a withdrawn lease could not be released: {}", error.sentence());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_server::TestServer;

    const GRANT: &str =
        r#"{"acquired":true,"leaseId":"l","fencingToken":1,"ttlSeconds":30,"remainingMs":30000}"#;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_acquire_that_is_dropped_while_it_is_repeated_is_released() {
        // The outcome of the first request is unknown; the future is dropped in the pause after it.
        let server = TestServer::start([
            ("503 Service Unavailable\r\nretry-after: 5", ""),
            ("200 OK", GRANT),
            ("200 OK", "{}"),
        ]);
        let client = Client::builder(&server.address).without_events().build().unwrap();
        let request = Request::new("r", Duration::from_secs(30));
        let (failed, has_failed) = tokio::sync::oneshot::channel();
        let mut failed = Some(failed);
        let acquiring = client.acquire_observed(request, |_| {
            let _ = failed.take().map(|failed| failed.send(()));
        });
        tokio::select! {
            acquired = acquiring => panic!("{acquired:?}"),
            _ = has_failed => {}
        }
        client.withdrawn().await;
        let [first, repeated, released] = [(); 3].map(|()| server.next_request());
        assert_eq!(TestServer::key_of(&first), TestServer::key_of(&repeated));
        assert!(released.starts_with("DELETE /v1/locks/l "), "{released}");
    }

    #[tokio::test]
    async fn only_what_may_have_been_granted_is_withdrawn() {
        let client = Client::new("http://127.0.0.1:1").unwrap();
        let request = Request::new("r", Duration::from_secs(30));
        let begun = |wait| {
            let mut pending = PendingAcquire::new(&client, &request, wait);
            pending.begin();
            pending
        };
        let running = || *client.withdrawals.0.borrow();
        begun(Duration::ZERO).finish();
        drop(begun(Duration::from_secs(1)));
        drop(PendingAcquire::new(&client, &request, Duration::ZERO));
        let mut unsent = begun(Duration::ZERO);
        unsent.set_unsent(false);
        drop(unsent);
        let requests = [request.clone()];
        let begun_batch = || {
            let mut pending = PendingBatch::new(&client, &requests);
            pending.begin();
            pending
        };
        begun_batch().finish();
        drop(PendingBatch::new(&client, &requests));
        let mut unsent = begun_batch();
        unsent.set_unsent(false);
        drop(unsent);
        assert_eq!(running(), 0);
        drop(begun_batch());
        assert_eq!(running(), 1);
        for _ in 0..WITHDRAWALS_MAX * 2 {
            drop(begun(Duration::ZERO));
        }
        assert_eq!(running(), WITHDRAWALS_MAX);
    }
}
