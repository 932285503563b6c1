//! Acquire: in line where wanted, found again where the reply was lost, and fresh when it is handed over.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::call::{CallError, describe};
use crate::client::Client;
use crate::clock::{self, Moment};
use crate::lease::Lease;
use crate::wire::{AcquireBody, Acquired, Grant};
use crate::{chance, schedule};

/// The longest that the server lets one request stand in line; a longer wait is several requests.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// A refusal that came before the wait was over is not asked again at once.
const REFUSED_PAUSE: Duration = Duration::from_millis(100);

/// What to acquire.
#[derive(Debug, Clone)]
pub struct Request {
    resource: String,
    owner: String,
    ttl: Duration,
    wait: Duration,
    metadata: BTreeMap<String, String>,
}

/// Who holds what was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldBy {
    pub owner: String,
    pub fencing_token: u64,
    /// When the server answered.
    pub remaining: Duration,
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// Somebody else has it, and still had it when the wait was over.
    #[error("{}", held(held_by.as_ref(), *waiters))]
    Held {
        held_by: Option<HeldBy>,
        /// Others that stand in line.
        waiters: u32,
        /// Sooner is in vain.
        retry_after: Duration,
    },
    /// The same request will be refused again.
    #[error("the server refuses this: {detail}")]
    Refused {
        status: u16,
        /// Stable: branch on this.
        code: String,
        detail: String,
    },
    /// Not known. It may be held, by nobody who knows, for one TTL at most.
    #[error("no answer to acquire: {why}")]
    Unknown { why: String },
}

fn held(by: Option<&HeldBy>, waiters: u32) -> String {
    let by = by.map_or_else(
        || "held by somebody else".to_owned(),
        |by| {
            format!(
                "held by {} for {} ms more, unless it renews",
                by.owner,
                by.remaining.as_millis()
            )
        },
    );
    match waiters {
        0 => by,
        1 => format!("{by}; 1 other waits"),
        _ => format!("{by}; {waiters} others wait"),
    }
}

impl Request {
    /// `ttl` in whole seconds, a part of one counts as one: from 1 s to the server's limit.
    pub fn new(resource: impl Into<String>, ttl: Duration) -> Self {
        Self {
            resource: resource.into(),
            owner: format!("pid-{}", std::process::id()),
            ttl,
            wait: Duration::ZERO,
            metadata: BTreeMap::new(),
        }
    }

    /// Who holds it, for people: a host, a worker. By default the process id.
    #[must_use]
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = owner.into();
        self
    }

    /// How long to stand in line, in whole seconds like the TTL. By default not at all.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Shown beside the lease.
    #[must_use]
    pub fn metadata(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.insert(name.into(), value.into());
        self
    }
}

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
        let wait_seconds = whole_seconds(wait);
        let body = AcquireBody {
            resource: &request.resource,
            owner_id: &request.owner,
            ttl_seconds: whole_seconds(request.ttl),
            wait_seconds,
            metadata: &request.metadata,
        };
        let in_line = Duration::from_secs(wait_seconds);
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

impl AcquireError {
    fn held(answer: Acquired) -> Self {
        let held_by = answer.held_by.map(|it| HeldBy {
            owner: it.owner_id,
            fencing_token: it.fencing_token,
            remaining: Duration::from_millis(u64::try_from(it.remaining_ms).unwrap_or_default()),
        });
        Self::Held {
            held_by,
            waiters: answer.waiters,
            retry_after: Duration::from_millis(answer.retry_after_ms),
        }
    }

    fn lost_on_the_way() -> Self {
        Self::Unknown {
            why: "it was granted, and lost again before we knew".to_owned(),
        }
    }
}

fn whole_seconds(span: Duration) -> u64 {
    span.as_secs() + u64::from(span.subsec_nanos() > 0)
}

/// What a lost lease or a failed call says, for people.
pub(crate) fn sentence(error: &CallError) -> String {
    match error {
        CallError::Lost(loss) => loss.to_string(),
        CallError::LifetimeReached { .. } => "the lease cannot live longer".to_owned(),
        CallError::Refused { status, problem } => {
            let status = reqwest::StatusCode::from_u16(*status).unwrap_or_default();
            describe(status, problem)
        }
        CallError::Unknown { why, .. } => why.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_asked_for_in_whole_seconds_rounded_up() {
        // A wait of 200 ms is a second in line, and none is none.
        for (ms, seconds) in [(0, 0), (1, 1), (200, 1), (1_000, 1), (1_001, 2), (59_500, 60)] {
            assert_eq!(whole_seconds(Duration::from_millis(ms)), seconds);
        }
    }

    #[test]
    fn a_refusal_names_the_holder() {
        // With a holder and a line; and where nothing is known of it.
        let by = HeldBy {
            owner: "worker-7".to_owned(),
            fencing_token: 4,
            remaining: Duration::from_millis(900),
        };
        assert_eq!(
            held(Some(&by), 2),
            "held by worker-7 for 900 ms more, unless it renews; 2 others wait"
        );
        assert_eq!(held(None, 0), "held by somebody else");
    }
}
