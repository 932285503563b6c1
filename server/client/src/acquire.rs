//! Acquire: waits in the queue if requested, retries with the same key after a lost response, and returns a fresh
//! lease.

use std::time::Duration;

use crate::client::Client;
use crate::clock::{self, Moment};
use crate::dto::{Acquired, Grant};
use crate::http_call::CallError;
use crate::lease::Lease;
use crate::request::{AcquireError, AcquireProgress, Request};
use crate::withdrawal::PendingAcquire;
use crate::{rng, schedule};

/// Longest wait that the server accepts per request; a longer wait uses several requests.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// Pause after a refusal that came before the end of the wait.
const REFUSED_PAUSE: Duration = Duration::from_millis(100);

type Observer<'a> = &'a mut (dyn FnMut(AcquireProgress) + Send);

/// Result of one idempotency key.
enum Round<'a> {
    Granted {
        grant: Grant,
        sent: Moment,
        pending: PendingAcquire<'a>,
    },
    Refused(Acquired),
    /// Granted, and already lost.
    Gone,
}

impl Client {
    /// Acquires the lock of a resource; the lease is then renewed until it is released, dropped or lost.
    ///
    /// Dropping the future leaves the queue, and releases in the background what an acquire without a wait is granted: see
    /// [`withdrawn`](Self::withdrawn). If the answer to a wait is already on its way, the lock may stay held without an owner
    /// for one TTL at most.
    ///
    /// # Errors
    /// See [`AcquireError`].
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn acquire(&self, request: Request) -> Result<Lease, AcquireError> {
        self.acquire_observed(request, |_| {}).await
    }

    /// As [`acquire`](Self::acquire); calls `observe` when an attempt fails and is repeated, and when the server answers again.
    /// An outage at the start of a long wait is otherwise reported at the end of the wait.
    ///
    /// # Errors
    /// See [`AcquireError`].
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn acquire_observed(
        &self,
        request: Request,
        mut observe: impl FnMut(AcquireProgress) + Send,
    ) -> Result<Lease, AcquireError> {
        self.acquire_in_rounds(request, WAIT_MAX, &mut observe).await
    }

    async fn acquire_in_rounds(
        &self,
        request: Request,
        wait_max: Duration,
        observe: Observer<'_>,
    ) -> Result<Lease, AcquireError> {
        let until = clock::now().plus(request.wait);
        loop {
            let left = until.since(clock::now());
            let round = self.round(&request, left.min(wait_max), until, observe);
            let refused = match round.await? {
                Round::Granted { grant, sent, pending } => {
                    let held = self.renew_after_wait(&request, grant, sent).await;
                    pending.finish();
                    if let Some((grant, deadline)) = held {
                        return Ok(Lease::start(self, &request.resource, grant, deadline));
                    }
                    None
                }
                Round::Refused(answer) => Some(answer),
                Round::Gone => None,
            };
            if until.since(clock::now()).is_zero() {
                return Err(refused.map_or_else(AcquireError::lost_on_the_way, AcquireError::from_acquired));
            }
            tokio::time::sleep(REFUSED_PAUSE.min(until.since(clock::now()))).await;
        }
    }

    /// Retries one key until the result is known, or until the patience after the whole wait ends: an outage in this round
    /// does not end a longer wait.
    async fn round<'a>(
        &'a self,
        request: &'a Request,
        wait: Duration,
        until: Moment,
        observe: Observer<'_>,
    ) -> Result<Round<'a>, AcquireError> {
        let body = request.body(wait);
        let server_wait = Duration::from_secs(body.wait_seconds);
        let mut pending = PendingAcquire::new(self, request, server_wait);
        let deadline = until.max(clock::now().plus(server_wait)).plus(self.patience);
        let mut failures = 0;
        loop {
            let sent = clock::now();
            let within = (server_wait + schedule::ANSWER_MAX).min(deadline.since(sent));
            let had_arrived = pending.begin();
            let answer = self.calls.acquire(&body, &pending.key, within).await;
            if failures > 0 && !matches!(answer, Err(CallError::Unknown { .. })) {
                observe(AcquireProgress::Answered);
            }
            let (why, is_unreachable, retry_after) = match answer {
                Ok(Acquired {
                    grant: Some(grant),
                    acquired: true,
                    ..
                }) => {
                    pending.grant(&grant.lease_id);
                    return Ok(Round::Granted { grant, sent, pending });
                }
                Ok(refused) => {
                    pending.finish();
                    return Ok(Round::Refused(refused));
                }
                Err(CallError::Lost(_) | CallError::LifetimeReached { .. }) => {
                    pending.finish();
                    return Ok(Round::Gone);
                }
                Err(error @ CallError::Refused { .. }) => {
                    pending.finish();
                    return Err(AcquireError::from_call(&error));
                }
                Err(CallError::Unknown {
                    why,
                    is_unreachable,
                    is_unsent,
                    retry_after,
                }) => {
                    if is_unsent {
                        pending.set_unsent(had_arrived);
                    }
                    (why, is_unreachable, retry_after)
                }
            };
            failures += 1;
            let pause = schedule::backoff(failures, rng::unit()).max(retry_after.unwrap_or_default());
            if deadline.since(clock::now()) <= pause {
                return Err(AcquireError::Unknown { why });
            }
            tracing::debug!(lock.resource = %request.resource, "acquire is retried: {why}");
            observe(AcquireProgress::Failed {
                why,
                is_unreachable,
                until: deadline,
            });
            tokio::time::sleep(pause).await;
        }
    }

    /// The grant and its deadline; a grant after a wait is renewed first. `None` if it was lost by then.
    async fn renew_after_wait(
        &self,
        request: &Request,
        grant: Grant,
        sent: Moment,
    ) -> Option<(Grant, Moment)> {
        let ttl = Duration::from_secs(grant.ttl_seconds);
        let received = clock::now();
        let deadline = schedule::deadline(sent, grant.remaining_ms, ttl);
        if !schedule::is_stale_grant(sent, received, deadline.since(sent)) {
            return Some((grant, deadline));
        }
        // Not used yet, so renewal may be retried until the server must have ended the lease.
        let server_deadline = schedule::deadline(received, grant.remaining_ms, ttl);
        let mut failures = 0;
        loop {
            let sent = clock::now();
            let left = server_deadline.since(sent);
            if left.is_zero() {
                return None;
            }
            match self
                .calls
                .renew(&grant.lease_id, schedule::answer_within(left))
                .await
            {
                Ok(renewed) => {
                    let deadline = schedule::deadline(sent, renewed.remaining_ms, ttl);
                    return Some((renewed, deadline));
                }
                // Held until its end, as it was granted.
                Err(CallError::LifetimeReached { remaining_ms }) => {
                    return Some((grant, schedule::deadline(sent, remaining_ms, ttl)));
                }
                Err(CallError::Unknown { why, .. }) => {
                    tracing::debug!(lock.resource = %request.resource, "confirmation of a new lease is retried: {why}");
                }
                Err(_) => return None,
            }
            failures += 1;
            tokio::time::sleep(schedule::backoff(failures, rng::unit())).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_server::TestServer;

    #[tokio::test]
    async fn an_outage_in_one_round_does_not_end_a_longer_wait() {
        // The patience is shorter than the pause after the first answer; the wait continues.
        let server = TestServer::start([
            ("503 Service Unavailable", ""),
            (
                "200 OK",
                r#"{"acquired":true,"leaseId":"l","fencingToken":1,"ttlSeconds":30,"remainingMs":30000}"#,
            ),
        ]);
        let client = Client::builder(&server.address).without_events();
        let client = client.patience(Duration::from_millis(30)).build().unwrap();
        let request = Request::new("r", Duration::from_secs(30)).wait(Duration::from_secs(600));
        let mut progress = Vec::new();
        let mut observe = |step| progress.push(step);
        let acquired = client.acquire_in_rounds(request, Duration::ZERO, &mut observe);
        assert_eq!(acquired.await.unwrap().fencing_token(), 1);
        let [
            AcquireProgress::Failed {
                why, is_unreachable, ..
            },
            AcquireProgress::Answered,
        ] = &progress[..]
        else {
            panic!("{progress:?}");
        };
        assert_eq!(
            (why.as_str(), *is_unreachable),
            ("the server answers 503 Service Unavailable", false)
        );
    }
}
