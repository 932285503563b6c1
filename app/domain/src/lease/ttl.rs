//! TTL of a lease: whole seconds.

use super::limits::TTL_SECONDS_MIN;
use super::validation_error::ValidationError;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ttl {
    seconds: i64,
}

impl Ttl {
    /// # Errors
    /// Names `ttlSeconds` when it is outside 1 to `seconds_max`.
    pub fn parse(seconds: i64, seconds_max: i64) -> Result<Self, ValidationError> {
        if (TTL_SECONDS_MIN..=seconds_max).contains(&seconds) {
            return Ok(Self { seconds });
        }
        let message = format!("must be {TTL_SECONDS_MIN} to {seconds_max}, but is {seconds}");
        Err(ValidationError::new("ttlSeconds", message))
    }

    /// From a store: a TTL that an older limit allowed stays valid; one that no limit ever
    /// allowed does not.
    pub const fn from_stored(seconds: i64) -> Option<Self> {
        if seconds >= TTL_SECONDS_MIN && seconds <= i32::MAX as i64 {
            Some(Self { seconds })
        } else {
            None
        }
    }

    pub const fn seconds(self) -> i64 {
        self.seconds
    }

    pub const fn ms(self) -> i64 {
        self.seconds * 1_000
    }
}
