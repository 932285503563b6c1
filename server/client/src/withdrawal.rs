//! Withdraws an acquire whose caller has dropped it: a lease that the server grants nevertheless is released.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::client::Client;
use crate::clock;
use crate::dto::Acquired;
use crate::http_call::{CallError, Calls};
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

/// Learns the result of a key, and releases what it was granted.
async fn withdraw(calls: &Calls, request: &Request, key: &str) {
    let until = clock::now().plus(WITHDRAW_MAX);
    let mut failures = 0;
    loop {
        let body = request.body(Duration::ZERO);
        match calls.acquire(&body, key, until.since(clock::now())).await {
            Ok(Acquired {
                grant: Some(grant), ..
            }) => return release(calls, &grant.lease_id).await,
            Err(CallError::Unknown { .. }) => {}
            Ok(_) | Err(_) => return,
        }
        failures += 1;
        tokio::time::sleep(schedule::backoff(failures, rng::unit())).await;
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
        assert_eq!(running(), 0);
        for _ in 0..WITHDRAWALS_MAX * 2 {
            drop(begun(Duration::ZERO));
        }
        assert_eq!(running(), WITHDRAWALS_MAX);
    }
}
