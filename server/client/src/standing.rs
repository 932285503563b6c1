//! How a lease stands: held until its deadline, or lost for ever.
//!
//! **Invariant:** once anybody was told that it is lost, it stays lost: the clock is read, and the loss kept, under one
//! lock with whatever could prolong it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::clock::{self, Moment};
use crate::loss::Loss;

/// A view of one lease. Clones are views of the same lease, and outlive its [`Lease`](crate::Lease).
#[derive(Debug, Clone)]
pub struct Standing(Arc<watch::Sender<Inner>>);

#[derive(Debug)]
struct Inner {
    deadline: Moment,
    /// The cap on its life is reached: the deadline is its end, whatever renewals do.
    is_final: bool,
    last_error: Option<String>,
    loss: Option<Loss>,
}

/// Why a checkpoint was not passed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Checkpoint {
    #[error("{0}")]
    Lost(Loss),
    #[error("only {} ms of the lease are left, and {} ms are wanted", left.as_millis(), margin.as_millis())]
    TooLittleLeft { left: Duration, margin: Duration },
}

impl Inner {
    /// Keeps the loss of a lease whose deadline has passed. The first thing that anybody does here.
    fn look(&mut self, now: Moment) -> bool {
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

impl Standing {
    pub(crate) fn new(deadline: Moment) -> Self {
        Self(Arc::new(watch::Sender::new(Inner {
            deadline,
            is_final: false,
            last_error: None,
            loss: None,
        })))
    }

    /// None while it is held.
    pub fn loss(&self) -> Option<Loss> {
        self.0.send_if_modified(|inner| inner.look(clock::now()));
        self.0.borrow().loss.clone()
    }

    /// True from the deadline on at the latest, and never false again.
    pub fn is_lost(&self) -> bool {
        self.loss().is_some()
    }

    /// Until when it counts as held, unless it is renewed before.
    pub fn deadline(&self) -> Moment {
        self.0.borrow().deadline
    }

    /// Passes while at least `margin` is left; says how much is. Call it before each step that must not outlive the
    /// lease, with the longest time that the step may take.
    ///
    /// # Errors
    /// The lease is lost, or too little is left.
    pub fn checkpoint(&self, margin: Duration) -> Result<Duration, Checkpoint> {
        if let Some(loss) = self.loss() {
            return Err(Checkpoint::Lost(loss));
        }
        let left = self.deadline().since(clock::now());
        if left < margin || left.is_zero() {
            return Err(Checkpoint::TooLittleLeft { left, margin });
        }
        Ok(left)
    }

    /// Waits until it is lost. Needs neither the server nor the task that renews: the deadline alone is enough.
    pub async fn lost(&self) -> Loss {
        let mut changes = self.0.subscribe();
        loop {
            if let Some(loss) = self.loss() {
                return loss;
            }
            let deadline = changes.borrow_and_update().deadline;
            tokio::select! {
                () = clock::sleep_until(deadline) => {}
                // This view keeps the sender alive.
                _ = changes.changed() => {}
            }
        }
    }

    /// Waits until the deadline is another than `known`; says which. Never returns for a lease that is not renewed.
    pub async fn renewed_after(&self, known: Moment) -> Moment {
        let mut changes = self.0.subscribe();
        let other = changes.wait_for(|inner| inner.deadline != known).await;
        other.map_or(known, |inner| inner.deadline)
    }

    /// A renewal has succeeded. False when that came too late, or the lease was lost otherwise: then it stays lost.
    pub(crate) fn prolong(&self, deadline: Moment, is_final: bool) -> bool {
        let mut is_held = false;
        self.0.send_if_modified(|inner| {
            let changed = inner.look(clock::now());
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
            inner.last_error = Some(error);
            false
        });
    }

    /// The first loss is the one that counts.
    pub(crate) fn end(&self, loss: Loss) {
        self.0.send_if_modified(|inner| {
            if inner.look(clock::now()) {
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

    fn held_for(ms: u64) -> Standing {
        Standing::new(clock::now().plus(Duration::from_millis(ms)))
    }

    #[test]
    fn a_lost_lease_is_never_revived() {
        // The deadline is over before anybody looks; the good answer that arrives then changes nothing.
        let standing = held_for(0);
        assert!(!standing.prolong(clock::now().plus(Duration::from_secs(60)), false));
        assert_eq!(standing.loss(), Some(Loss::DeadlinePassed { last_error: None }));
        standing.end(Loss::Expired);
        assert_eq!(standing.loss().unwrap().code(), "deadline_passed");
    }

    #[test]
    fn the_first_loss_is_kept_and_its_last_error_is_told() {
        // Revoked, then everything else that could be said of it; and a deadline that passes after a failed try.
        let revoked = Loss::Revoked {
            by: "dana".to_owned(),
            reason: "stuck".to_owned(),
            audit_id: "a-7".to_owned(),
        };
        let standing = held_for(60_000);
        standing.end(revoked.clone());
        standing.end(Loss::Released);
        assert!(!standing.prolong(clock::now().plus(Duration::from_secs(60)), false));
        assert_eq!(standing.loss(), Some(revoked));
        let standing = held_for(0);
        standing.note_error("connection refused".to_owned());
        let told = standing.loss().unwrap().to_string();
        assert!(told.ends_with("in time: connection refused"), "{told}");
    }

    #[test]
    fn a_checkpoint_wants_its_margin() {
        // A minute is left: half of it passes, two minutes do not; once lost nothing passes.
        let standing = held_for(60_000);
        assert!(standing.checkpoint(Duration::from_secs(30)).unwrap() <= Duration::from_secs(60));
        let error = standing.checkpoint(Duration::from_secs(120)).unwrap_err();
        assert!(matches!(error, Checkpoint::TooLittleLeft { .. }), "{error}");
        standing.end(Loss::Expired);
        let error = standing.checkpoint(Duration::ZERO).unwrap_err();
        assert_eq!(error, Checkpoint::Lost(Loss::Expired));
    }

    #[tokio::test]
    async fn the_deadline_alone_tells_that_it_is_lost() {
        // Nobody renews and nobody looks: waiting ends; the cap on its life has its own name.
        let standing = held_for(50);
        assert_eq!(standing.lost().await.code(), "deadline_passed");
        let capped = held_for(60_000);
        assert!(capped.prolong(clock::now().plus(Duration::from_millis(50)), true));
        assert_eq!(capped.lost().await, Loss::LifetimeReached);
    }
}
