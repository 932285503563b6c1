//! State of a lease: held until its deadline, or lost for good.
//!
//! **Invariant:** once reported as lost it stays lost: the clock is read and the loss stored under the same lock as
//! any extension.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::clock::{self, Moment};
use crate::loss::Loss;

/// The state of one lease. Clones share it, and outlive its [`Lease`](crate::Lease).
#[derive(Debug, Clone)]
pub struct LeaseState(Arc<watch::Sender<Inner>>);

#[derive(Debug)]
struct Inner {
    deadline: Moment,
    /// The maximum lifetime is reached: renewals no longer extend the deadline.
    is_final: bool,
    last_error: Option<String>,
    loss: Option<Loss>,
}

/// Why a checkpoint failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    #[error("{0}")]
    Lost(Loss),
    #[error("the lease has {} ms left, but {} ms are required", left.as_millis(), margin.as_millis())]
    TooLittleLeft { left: Duration, margin: Duration },
}

impl Inner {
    /// Records the loss of a lease whose deadline has passed. Called before each use of `loss`.
    fn refresh(&mut self, now: Moment) -> bool {
        if self.loss.is_some() || now < self.deadline {
            return false;
        }
        self.loss = Some(if self.is_final {
            Loss::LifetimeReached
        } else {
            Loss::DeadlinePassed {
                last_error: self.last_error.take(),
            }
        });
        true
    }
}

impl LeaseState {
    pub(crate) fn new(deadline: Moment) -> Self {
        Self(Arc::new(watch::Sender::new(Inner {
            deadline,
            is_final: false,
            last_error: None,
            loss: None,
        })))
    }

    /// `None` while it is held.
    pub fn loss(&self) -> Option<Loss> {
        self.0.send_if_modified(|inner| inner.refresh(clock::now()));
        self.0.borrow().loss.clone()
    }

    /// True from the deadline on at the latest, and never false again.
    pub fn is_lost(&self) -> bool {
        self.loss().is_some()
    }

    /// Until when the lease counts as held, unless it is renewed.
    pub fn deadline(&self) -> Moment {
        self.0.borrow().deadline
    }

    /// Succeeds while at least `margin` is left; returns the time left. Call it before each step that must not
    /// outlive the lease, with the longest time that the step may take.
    ///
    /// # Errors
    /// The lease is lost, or too little time is left.
    pub fn checkpoint(&self, margin: Duration) -> Result<Duration, CheckpointError> {
        if let Some(loss) = self.loss() {
            return Err(CheckpointError::Lost(loss));
        }
        let left = self.deadline().since(clock::now());
        if left < margin || left.is_zero() {
            return Err(CheckpointError::TooLittleLeft { left, margin });
        }
        Ok(left)
    }

    /// Resolves when the lease is lost. Needs neither the server nor the renewal task: the deadline is sufficient.
    pub async fn lost(&self) -> Loss {
        let mut changes = self.0.subscribe();
        loop {
            if let Some(loss) = self.loss() {
                return loss;
            }
            let deadline = changes.borrow_and_update().deadline;
            tokio::select! {
                () = clock::sleep_until(deadline) => {}
                // This handle keeps the sender alive.
                _ = changes.changed() => {}
            }
        }
    }

    /// Waits until the deadline differs from `known` and returns it. Never resolves for a lease that is not renewed.
    pub async fn renewed_after(&self, known: Moment) -> Moment {
        let mut changes = self.0.subscribe();
        let other = changes.wait_for(|inner| inner.deadline != known).await;
        other.map_or(known, |inner| inner.deadline)
    }

    /// Resolves when the last attempt to renew has failed, with its error. It is retried until the deadline; a success
    /// resolves [`renewed_after`](Self::renewed_after).
    pub async fn renewal_failed(&self) -> String {
        let mut changes = self.0.subscribe();
        let failed = changes.wait_for(|inner| inner.last_error.is_some()).await;
        let error = failed.ok().and_then(|inner| inner.last_error.clone());
        error.unwrap_or_default()
    }

    /// Applies a successful renewal. False if it came too late or the lease was lost otherwise: it stays lost.
    pub(crate) fn prolong(&self, deadline: Moment, is_final: bool) -> bool {
        let mut is_held = false;
        self.0.send_if_modified(|inner| {
            let changed = inner.refresh(clock::now());
            is_held = inner.loss.is_none();
            if is_held {
                inner.deadline = deadline;
                inner.is_final = is_final;
                inner.last_error = None;
            }
            changed || is_held
        });
        is_held
    }

    pub(crate) fn note_error(&self, error: String) {
        self.0.send_if_modified(|inner| {
            // Later errors of an outage wake no task.
            inner.last_error.replace(error).is_none()
        });
    }

    /// The first loss is kept.
    pub(crate) fn end(&self, loss: Loss) {
        self.0.send_if_modified(|inner| {
            if inner.refresh(clock::now()) {
                return true;
            }
            let is_first = inner.loss.is_none();
            if is_first {
                inner.loss = Some(loss);
            }
            is_first
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held_for(ms: u64) -> LeaseState {
        LeaseState::new(clock::now().plus(Duration::from_millis(ms)))
    }

    #[test]
    fn a_lost_lease_is_never_revived() {
        // The deadline has passed before any access; a later successful response changes nothing.
        let state = held_for(0);
        assert!(!state.prolong(clock::now().plus(Duration::from_secs(60)), false));
        assert_eq!(state.loss(), Some(Loss::DeadlinePassed { last_error: None }));
        state.end(Loss::Expired);
        assert_eq!(state.loss().unwrap().code(), "deadline_passed");
    }

    #[test]
    fn the_first_loss_is_kept_with_the_last_error() {
        // Revoked, followed by other losses; and a deadline that passes after a failed renewal.
        let revoked = Loss::Revoked {
            by: "dana".to_owned(),
            reason: "stuck".to_owned(),
            audit_id: "a-7".to_owned(),
        };
        let state = held_for(60_000);
        state.end(revoked.clone());
        state.end(Loss::Released);
        assert!(!state.prolong(clock::now().plus(Duration::from_secs(60)), false));
        assert_eq!(state.loss(), Some(revoked));
        let state = held_for(0);
        state.note_error("connection refused".to_owned());
        let message = state.loss().unwrap().to_string();
        assert!(message.ends_with("in time: connection refused"), "{message}");
    }

    #[test]
    fn a_checkpoint_requires_its_margin() {
        // A minute is left: half of it succeeds, two minutes fail; after a loss everything fails.
        let state = held_for(60_000);
        assert!(state.checkpoint(Duration::from_secs(30)).unwrap() <= Duration::from_secs(60));
        let error = state.checkpoint(Duration::from_secs(120)).unwrap_err();
        assert!(matches!(error, CheckpointError::TooLittleLeft { .. }), "{error}");
        state.end(Loss::Expired);
        let error = state.checkpoint(Duration::ZERO).unwrap_err();
        assert_eq!(error, CheckpointError::Lost(Loss::Expired));
    }

    #[tokio::test]
    async fn a_failed_renewal_is_reported_until_one_succeeds() {
        // Two errors in a row, of which the last counts.
        let state = held_for(60_000);
        state.note_error("connection refused".to_owned());
        state.note_error("no answer in time".to_owned());
        assert_eq!(state.renewal_failed().await, "no answer in time");
        assert!(state.prolong(clock::now().plus(Duration::from_secs(60)), false));
        // Polled once.
        let polled = tokio::time::timeout(Duration::ZERO, state.renewal_failed()).await;
        assert!(polled.is_err());
    }

    #[tokio::test]
    async fn a_lease_is_lost_by_its_deadline_alone() {
        // Without renewals and accesses the wait ends; the maximum lifetime has its own cause.
        let state = held_for(50);
        assert_eq!(state.lost().await.code(), "deadline_passed");
        let capped = held_for(60_000);
        assert!(capped.prolong(clock::now().plus(Duration::from_millis(50)), true));
        assert_eq!(capped.lost().await, Loss::LifetimeReached);
    }
}
