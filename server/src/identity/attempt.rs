//! One attempt to prove who somebody is with a password: counted, queued, evaluated.

use std::time::Duration;

use secrecy::SecretString;

use super::Identity;
use super::error::IdentityError;
use super::hashing_queue::{Place, Share, in_time, whole_seconds};
use super::password;
use super::throttle::{Key, Reservation};

/// Counted, with a place in the queue. Dropped, it stays counted.
pub(super) struct Attempt<'a> {
    reservation: Reservation<'a>,
    place: Place,
}

impl Attempt<'_> {
    /// It could not be evaluated, through no fault of the client.
    pub(super) fn cancel(self) {
        self.reservation.refund();
    }
}

impl Identity {
    /// Counts an attempt, before anything is looked up or hashed.
    ///
    /// # Errors
    /// `TooManyGuesses`, `Busy`: with the time to wait.
    pub(super) async fn begin_attempt(
        &self,
        keys: Vec<Key>,
        share: Share,
    ) -> Result<Attempt<'_>, IdentityError> {
        let place = self.hashing.enter(share)?;
        let reserved = in_time(self.throttle.reserve(keys, &self.clock)).await?;
        Ok(Attempt {
            reservation: reserved.map_err(too_many)?,
            place,
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
        let Attempt { reservation, place } = attempt;
        let turn = match self.hashing.turn(place).await {
            Ok(turn) => turn,
            Err(error) => {
                reservation.refund();
                return Err(error);
            }
        };
        let fits = password::fits(turn, password, stored).await?;
        if fits {
            reservation.refund();
        }
        Ok(fits)
    }
}

pub(super) const fn too_many(wait: Duration) -> IdentityError {
    IdentityError::TooManyGuesses {
        wait_s: whole_seconds(wait),
    }
}
