//! One password attempt: counted, queued, evaluated.

use std::time::Duration;

use secrecy::SecretString;

use super::Identity;
use super::error::IdentityError;
use super::hashing_queue::{QueueSlot, Share, in_time, whole_seconds};
use super::password;
use super::sign_in_throttle::{Key, Reservation};

/// A counted attempt with a queue slot. It stays counted when dropped.
pub(super) struct Attempt<'a> {
    reservation: Reservation<'a>,
    slot: QueueSlot,
}

impl Attempt<'_> {
    /// It could not be evaluated and does not count.
    pub(super) fn cancel(self) {
        self.reservation.refund();
    }
}

impl Identity {
    /// Counts an attempt before any lookup or hash.
    ///
    /// # Errors
    /// `TooManyGuesses`, `Busy`: with the time to wait.
    pub(super) async fn begin_attempt(
        &self,
        keys: Vec<Key>,
        share: Share,
    ) -> Result<Attempt<'_>, IdentityError> {
        let slot = self.hashing.reserve_slot(share)?;
        let reserved = in_time(self.throttle.reserve(keys, &self.clock)).await?;
        Ok(Attempt {
            reservation: reserved.map_err(too_many)?,
            slot,
        })
    }

    /// Whether the password is the stored one. If it is, the attempt no longer counts.
    ///
    /// # Errors
    /// `Busy`: it was not evaluated and does not count.
    pub(super) async fn evaluate(
        &self,
        attempt: Attempt<'_>,
        password: &SecretString,
        stored: Option<String>,
    ) -> Result<bool, IdentityError> {
        let Attempt { reservation, slot } = attempt;
        let permit = match self.hashing.acquire_permit(slot).await {
            Ok(permit) => permit,
            Err(error) => {
                reservation.refund();
                return Err(error);
            }
        };
        let is_match = password::verify(permit, password, stored).await?;
        if is_match {
            reservation.refund();
        }
        Ok(is_match)
    }
}

pub(super) const fn too_many(wait: Duration) -> IdentityError {
    IdentityError::TooManyGuesses {
        wait_s: whole_seconds(wait),
    }
}
