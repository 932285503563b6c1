//! The acquire request, its progress and its errors.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::clock::Moment;
use crate::dto::{AcquireBody, Acquired, BatchAcquireBody, BatchOperation};
use crate::http_call::CallError;

/// An acquire request.
#[must_use]
#[derive(Debug, Clone)]
pub struct Request {
    pub(crate) resource: String,
    owner: String,
    ttl: Duration,
    pub(crate) wait: Duration,
    metadata: BTreeMap<String, String>,
}

/// The current holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldBy {
    /// As it named itself, for display.
    pub owner: String,
    /// Of its lease.
    pub fencing_token: u64,
    /// At the time of the server's response.
    pub remaining: Duration,
}

/// What happens during an acquire, before its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AcquireProgress {
    /// An attempt failed without a result, and is repeated.
    Failed {
        why: String,
        /// The server was not reached, or the connection broke; otherwise it answered with an error.
        is_unreachable: bool,
        /// Attempts end then: the wait and the [patience](crate::Builder::patience) are over.
        until: Moment,
    },
    /// The server has answered after failed attempts.
    Answered,
}

/// Why a lock was not acquired.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// Not granted, not even within the wait.
    #[error("{}", refusal_text(held_by.as_ref(), *waiters, *retry_after))]
    Held {
        /// `None`: no live lease, but waiters are queued, or the lock delay after a forced unlock is running.
        held_by: Option<HeldBy>,
        /// Other waiters in the queue of this resource.
        waiters: u32,
        /// An earlier acquire without a wait is refused again.
        retry_after: Duration,
    },
    /// The same request will be refused again.
    #[error("the server refuses this: {detail}")]
    Refused {
        status: u16,
        /// Stable code.
        code: String,
        detail: String,
    },
    /// The outcome is unknown. The lock may be held without an owner for one TTL at most.
    #[error("acquire has failed: {why}")]
    Unknown { why: String },
}

fn refusal_text(by: Option<&HeldBy>, waiters: u32, retry_after: Duration) -> String {
    let by = match (by, waiters) {
        (Some(by), _) => format!(
            "held by {} for {} ms more, unless it renews",
            by.owner,
            by.remaining.as_millis()
        ),
        (None, 0) => format!(
            "not held, but in its lock delay for {} ms",
            retry_after.as_millis()
        ),
        (None, _) => "not held, but waiters are next".to_owned(),
    };
    match waiters {
        0 => by,
        1 => format!("{by}; 1 other waits"),
        _ => format!("{by}; {waiters} others wait"),
    }
}

impl Request {
    /// `ttl` in whole seconds, rounded up: from 1 s to the server's limit.
    pub fn new(resource: impl Into<String>, ttl: Duration) -> Self {
        Self {
            resource: resource.into(),
            owner: format!("pid-{}", std::process::id()),
            ttl,
            wait: Duration::ZERO,
            metadata: BTreeMap::new(),
        }
    }

    /// Owner for display: a host, a worker. Default: the process id.
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = owner.into();
        self
    }

    /// How long to wait in the queue, in whole seconds rounded up. Default: no wait.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Request body with `wait` as the part of the total wait.
    pub(crate) fn body(&self, wait: Duration) -> AcquireBody<'_> {
        AcquireBody {
            resource: &self.resource,
            owner_id: &self.owner,
            ttl_seconds: whole_seconds(self.ttl),
            wait_seconds: whole_seconds(wait),
            metadata: &self.metadata,
        }
    }

    /// This request in a batch call.
    pub(crate) fn batch_operation(&self) -> BatchOperation<'_> {
        BatchOperation::Acquire(BatchAcquireBody {
            resource: &self.resource,
            owner_id: &self.owner,
            ttl_seconds: whole_seconds(self.ttl),
            metadata: &self.metadata,
        })
    }

    /// Shown with the lease.
    pub fn metadata(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.insert(name.into(), value.into());
        self
    }
}

impl AcquireError {
    pub(crate) fn from_call(error: &CallError) -> Self {
        match error {
            CallError::Refused { status, problem } => Self::Refused {
                status: *status,
                code: problem.code.clone(),
                detail: problem.detail.clone(),
            },
            CallError::Lost(_) | CallError::LifetimeReached { .. } => Self::lost_on_the_way(),
            CallError::Unknown { why, .. } => Self::Unknown { why: why.clone() },
        }
    }

    pub(crate) fn from_acquired(answer: Acquired) -> Self {
        let held_by = answer.held_by.map(|holder| HeldBy {
            owner: holder.owner_id,
            fencing_token: holder.fencing_token,
            remaining: Duration::from_millis(u64::try_from(holder.remaining_ms).unwrap_or_default()),
        });
        Self::Held {
            held_by,
            waiters: answer.waiters,
            retry_after: Duration::from_millis(answer.retry_after_ms),
        }
    }

    pub(crate) fn lost_on_the_way() -> Self {
        Self::Unknown {
            why: "it was granted and lost before the client received the answer".to_owned(),
        }
    }
}

fn whole_seconds(span: Duration) -> u64 {
    span.as_secs() + u64::from(span.subsec_nanos() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_sent_in_whole_seconds_rounded_up() {
        // A wait of 200 ms becomes 1 s, and zero stays zero.
        for (ms, seconds) in [(0, 0), (1, 1), (200, 1), (1_000, 1), (1_001, 2), (59_500, 60)] {
            assert_eq!(whole_seconds(Duration::from_millis(ms)), seconds);
        }
    }

    #[test]
    fn a_refusal_names_the_holder_or_the_queue() {
        // With a holder and a queue; without a holder, with and without a queue.
        let retry = Duration::from_millis(10);
        let by = HeldBy {
            owner: "worker-7".to_owned(),
            fencing_token: 4,
            remaining: Duration::from_millis(900),
        };
        assert_eq!(
            refusal_text(Some(&by), 2, retry),
            "held by worker-7 for 900 ms more, unless it renews; 2 others wait"
        );
        assert_eq!(
            refusal_text(None, 1, retry),
            "not held, but waiters are next; 1 other waits"
        );
        assert_eq!(
            refusal_text(None, 0, retry),
            "not held, but in its lock delay for 10 ms"
        );
    }
}
