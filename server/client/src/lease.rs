//! A lease that is held, and kept by a task of its own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::call::Calls;
use crate::client::Client;
use crate::clock::{self, Moment};
use crate::keeper::Keeper;
use crate::loss::Loss;
use crate::standing::{Checkpoint, Standing};
use crate::wire::Grant;
use crate::{chance, events, schedule};

/// How long giving a lease back may take.
const RELEASE_MAX: Duration = Duration::from_secs(5);

/// One lease, renewed until it is released, dropped or lost.
///
/// Dropping it stops the renewals at once and gives it back as far as that works without waiting: where the runtime
/// ends at the same time, it runs out instead.
#[derive(Debug)]
pub struct Lease {
    calls: Calls,
    id: String,
    resource: String,
    fencing_token: u64,
    standing: Standing,
    is_released: AtomicBool,
}

#[derive(Debug, thiserror::Error)]
#[error("the lease is not renewed any more, but could not be given back: {why}")]
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
            standing: Standing::new(deadline),
            is_released: AtomicBool::new(false),
        };
        let keeper = Keeper {
            calls: lease.calls.clone(),
            id: lease.id.clone(),
            resource: lease.resource.clone(),
            ttl: Duration::from_secs(grant.ttl_seconds),
            standing: lease.standing.clone(),
        };
        background(keeper.keep());
        if client.hears_events {
            background(events::listen(
                lease.calls.clone(),
                lease.id.clone(),
                lease.standing.clone(),
            ));
        }
        lease
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// What each write to the resource carries.
    pub fn fencing_token(&self) -> u64 {
        self.fencing_token
    }

    /// A view to hand to whoever has to stop when it is lost.
    pub fn standing(&self) -> Standing {
        self.standing.clone()
    }

    /// See [`Standing::is_lost`].
    pub fn is_lost(&self) -> bool {
        self.standing.is_lost()
    }

    /// See [`Standing::loss`].
    pub fn loss(&self) -> Option<Loss> {
        self.standing.loss()
    }

    /// See [`Standing::lost`].
    pub async fn lost(&self) -> Loss {
        self.standing.lost().await
    }

    /// See [`Standing::checkpoint`].
    ///
    /// # Errors
    /// The lease is lost, or less than `margin` is left.
    pub fn checkpoint(&self, margin: Duration) -> Result<Duration, Checkpoint> {
        self.standing.checkpoint(margin)
    }

    /// Gives the lease back; from the call on it counts as lost. Harmless when it is lost already, and as often as
    /// you like: the next owner's lease is another one.
    ///
    /// # Errors
    /// The server was not reached within 5 s: it runs out by itself then, and calling again is another try.
    pub async fn release(&self) -> Result<(), ReleaseError> {
        self.standing.end(Loss::Released);
        if self.is_released.load(Ordering::Acquire) || self.is_gone_for_the_server() {
            return Ok(());
        }
        let give_up = clock::now().plus(RELEASE_MAX);
        let mut failures = 0;
        loop {
            let within = schedule::answer_within(give_up.since(clock::now()));
            let Err(error) = self.calls.release(&self.id, within).await else {
                self.is_released.store(true, Ordering::Release);
                return Ok(());
            };
            failures += 1;
            let pause = schedule::backoff(failures, chance::unit());
            if give_up.since(clock::now()) <= pause {
                return Err(ReleaseError {
                    why: error.sentence(),
                });
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// By its own word.
    fn is_gone_for_the_server(&self) -> bool {
        let loss = self.standing.loss();
        matches!(loss, Some(Loss::Revoked { .. } | Loss::Expired | Loss::NotFound))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.standing.end(Loss::Released);
        if *self.is_released.get_mut() || self.is_gone_for_the_server() {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let (calls, id) = (self.calls.clone(), std::mem::take(&mut self.id));
        runtime.spawn(async move {
            if let Err(error) = calls.release(&id, RELEASE_MAX).await {
                tracing::debug!(lease.id = %id, "a dropped lease was not given back: {}", error.sentence());
            }
        });
    }
}

/// A task that ends with the lease that it serves.
#[expect(
    clippy::disallowed_methods,
    reason = "a library of its own: its two tasks end when the lease is lost, and nothing relies on their life"
)]
fn background(work: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(work);
}
