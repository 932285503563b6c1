//! Acquire: in line where wanted, found again where the reply was lost, and fresh when it is handed over.

use std::time::Duration;

use crate::call::CallError;
use crate::client::Client;
use crate::clock::{self, Moment};
use crate::lease::Lease;
use crate::request::{AcquireError, Request};
use crate::wire::{Acquired, Grant};
use crate::{chance, schedule};

/// The longest that the server lets one request stand in line; a longer wait is several requests.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// A refusal that came before the wait was over is not asked again at once.
const REFUSED_PAUSE: Duration = Duration::from_millis(100);

/// How one key fared.
enum Round {
    Granted {
        grant: Grant,
        sent: Moment,
    },
    Refused(Acquired),
    /// It was ours, and is no more.
    Gone,
}

impl Client {
    /// Takes the lock of a resource; from then on the lease is renewed until it is released, dropped or lost.
    ///
    /// Dropping the future gives up the place in line; where the answer is under way already, the lock may stay held
    /// by nobody who knows, for one TTL at most.
    ///
    /// # Errors
    /// See [`AcquireError`].
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn acquire(&self, request: Request) -> Result<Lease, AcquireError> {
        let until = clock::now().plus(request.wait);
        loop {
            let left = until.since(clock::now());
            let refused = match self.round(&request, left.min(WAIT_MAX)).await? {
                Round::Granted { grant, sent } => match self.fresh(&request, grant, sent).await {
                    Some((grant, deadline)) => {
                        return Ok(Lease::start(self, &request.resource, grant, deadline));
                    }
                    None => None,
                },
                Round::Refused(answer) => Some(answer),
                Round::Gone => None,
            };
            if until.since(clock::now()).is_zero() {
                return Err(refused.map_or_else(AcquireError::lost_on_the_way, AcquireError::held));
            }
            tokio::time::sleep(REFUSED_PAUSE.min(until.since(clock::now()))).await;
        }
    }

    /// One key, until an answer is known or patience ends.
    async fn round(&self, request: &Request, wait: Duration) -> Result<Round, AcquireError> {
        let key = chance::idempotency_key();
        let body = request.body(wait);
        let in_line = Duration::from_secs(body.wait_seconds);
        let give_up = clock::now().plus(in_line).plus(self.patience);
        let mut failures = 0;
        loop {
            let sent = clock::now();
            let within = (in_line + schedule::ANSWER_MAX).min(give_up.since(sent));
            let (why, retry_after) = match self.calls.acquire(&body, &key, within).await {
                Ok(Acquired {
                    grant: Some(grant),
                    acquired: true,
                    ..
                }) => {
                    return Ok(Round::Granted { grant, sent });
                }
                Ok(refused) => return Ok(Round::Refused(refused)),
                Err(CallError::Lost(_) | CallError::LifetimeReached { .. }) => return Ok(Round::Gone),
                Err(CallError::Refused { status, problem }) => {
                    return Err(AcquireError::Refused {
                        status,
                        code: problem.code,
                        detail: problem.detail,
                    });
                }
                Err(CallError::Unknown { why, retry_after }) => (why, retry_after),
            };
            failures += 1;
            let pause = schedule::backoff(failures, chance::unit()).max(retry_after.unwrap_or_default());
            if give_up.since(clock::now()) <= pause {
                return Err(AcquireError::Unknown { why });
            }
            tracing::debug!(lock.resource = %request.resource, "acquire is asked again: {why}");
            tokio::time::sleep(pause).await;
        }
    }

    /// The grant and its deadline; one that stood in line is renewed first. None when it was gone by then.
    async fn fresh(&self, request: &Request, grant: Grant, sent: Moment) -> Option<(Grant, Moment)> {
        let ttl = Duration::from_secs(grant.ttl_seconds);
        let received = clock::now();
        let deadline = schedule::deadline(sent, grant.remaining_ms, ttl);
        if !schedule::is_stale_grant(sent, received, deadline.since(sent)) {
            return Some((grant, deadline));
        }
        // Nobody acts on it yet, so it may be asked for until it must have ended for the server too.
        let give_up = schedule::deadline(received, grant.remaining_ms, ttl);
        let mut failures = 0;
        loop {
            let sent = clock::now();
            let left = give_up.since(sent);
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
                Err(CallError::Unknown { why, .. }) => {
                    tracing::debug!(lock.resource = %request.resource, "a fresh lease is confirmed again: {why}");
                }
                Err(_) => return None,
            }
            failures += 1;
            tokio::time::sleep(schedule::backoff(failures, chance::unit())).await;
        }
    }
}
