//! A held lease, renewed by its own task.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::client::Client;
use crate::clock::{self, Moment};
use crate::dto::Grant;
use crate::http_call::Calls;
use crate::lease_state::{CheckpointError, LeaseState};
use crate::loss::Loss;
use crate::renewer::Renewer;
use crate::{events, rng, schedule};

/// Timeout of a release.
const RELEASE_MAX: Duration = Duration::from_secs(5);

/// One lease, renewed until it is released, dropped or lost.
///
/// Dropping it stops the renewals immediately and releases it in the background; if the runtime ends at the same
/// time, the lease expires instead.
#[must_use = "a lease is released when it is dropped"]
#[derive(Debug)]
pub struct Lease {
    calls: Calls,
    id: String,
    resource: String,
    fencing_token: u64,
    state: LeaseState,
    is_released: AtomicBool,
    /// Of the acquire: the lease may be dropped by a thread without one.
    runtime: tokio::runtime::Handle,
}

/// The server did not confirm a release; the lease ends by its expiry at the latest.
#[derive(Debug, thiserror::Error)]
#[error("the lease is no longer renewed, but could not be released: {why}")]
pub struct ReleaseError {
    pub why: String,
}

impl Lease {
    pub(crate) fn start(client: &Client, resource: &str, grant: Grant, deadline: Moment) -> Self {
        let lease = Self {
            calls: client.calls.clone(),
            id: grant.lease_id,
            resource: resource.to_owned(),
            fencing_token: grant.fencing_token,
            state: LeaseState::new(deadline),
            is_released: AtomicBool::new(false),
            runtime: tokio::runtime::Handle::current(),
        };
        let renewer = Renewer {
            calls: lease.calls.clone(),
            id: lease.id.clone(),
            resource: lease.resource.clone(),
            ttl: Duration::from_secs(grant.ttl_seconds),
            state: lease.state.clone(),
        };
        background(renewer.run());
        if client.reads_events {
            background(events::listen(
                lease.calls.clone(),
                lease.id.clone(),
                lease.state.clone(),
            ));
        }
        lease
    }

    /// Its id on the server, which names this one acquisition.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The resource of the request.
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// Token to send with each write to the resource.
    pub fn fencing_token(&self) -> u64 {
        self.fencing_token
    }

    /// The state of the lease, for code that has to stop when it is lost.
    pub fn state(&self) -> LeaseState {
        self.state.clone()
    }

    /// See [`LeaseState::is_lost`].
    pub fn is_lost(&self) -> bool {
        self.state.is_lost()
    }

    /// See [`LeaseState::loss`].
    pub fn loss(&self) -> Option<Loss> {
        self.state.loss()
    }

    /// See [`LeaseState::lost`].
    pub async fn lost(&self) -> Loss {
        self.state.lost().await
    }

    /// See [`LeaseState::checkpoint`].
    ///
    /// # Errors
    /// The lease is lost, or less than `margin` is left.
    pub fn checkpoint(&self, margin: Duration) -> Result<Duration, CheckpointError> {
        self.state.checkpoint(margin)
    }

    /// Releases the lease, which counts as lost from the call on. Idempotent, also after a loss: it never affects
    /// the next owner's lease.
    ///
    /// # Errors
    /// The server was not reached within 5 s: the lease expires by itself, and the call can be repeated.
    pub async fn release(&self) -> Result<(), ReleaseError> {
        self.state.end(Loss::Released);
        if self.is_released.load(Ordering::Acquire) || self.is_gone_for_the_server() {
            return Ok(());
        }
        let deadline = clock::now().plus(RELEASE_MAX);
        let mut failures = 0;
        loop {
            let within = schedule::answer_within(deadline.since(clock::now()));
            let Err(error) = self.calls.release(&self.id, within).await else {
                self.is_released.store(true, Ordering::Release);
                return Ok(());
            };
            failures += 1;
            let pause = schedule::backoff(failures, rng::unit());
            if deadline.since(clock::now()) <= pause {
                return Err(ReleaseError {
                    why: error.sentence(),
                });
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Counts as lost from now on.
    pub(crate) fn end(&self) {
        self.state.end(Loss::Released);
    }

    pub(crate) fn mark_released(&self) {
        self.is_released.store(true, Ordering::Release);
    }

    /// Whether the server has confirmed its end.
    fn is_gone_for_the_server(&self) -> bool {
        let loss = self.state.loss();
        matches!(loss, Some(Loss::Revoked { .. } | Loss::Expired | Loss::NotFound))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.state.end(Loss::Released);
        if *self.is_released.get_mut() || self.is_gone_for_the_server() {
            return;
        }
        let (calls, id) = (self.calls.clone(), std::mem::take(&mut self.id));
        self.runtime.spawn(async move {
            if let Err(error) = calls.release(&id, RELEASE_MAX).await {
                tracing::debug!(lease.id = %id, "a dropped lease could not be released: {}", error.sentence());
            }
        });
    }
}

/// A background task that ends with its lease.
#[expect(
    clippy::disallowed_methods,
    reason = "a library of its own: its two tasks end when the lease is lost, and nothing relies on their life"
)]
fn background(work: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(work);
}
