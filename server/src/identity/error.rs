//! Why it was not done.

use thiserror::Error;

#[derive(Debug, Error)]
pub enum IdentityError {
    /// Names the field and what it must be.
    #[error("{field}: {why}")]
    Invalid { field: &'static str, why: String },
    #[error("{what} {name:?} exists already")]
    Exists { what: &'static str, name: String },
    #[error("there is no {what} {name:?}")]
    NotFound { what: &'static str, name: String },
    /// The same for an unknown name, a wrong password and somebody who was disabled.
    #[error("name or password is not right")]
    WrongPassword,
    /// Refused before the password was looked at.
    #[error("too many failed sign-ins; try again in {wait_s} s")]
    TooManyGuesses { wait_s: u64 },
    #[error("this link was used, or is too old; ask for a new one")]
    BadLink,
    #[error("the last admin cannot be taken away: nobody could give the right back")]
    LastAdmin,
    #[error("the machine gives no random numbers")]
    NoChance,
    /// The queue for password hashing is full.
    #[error("too many sign-ins at once; try again in {wait_s} s")]
    Busy { wait_s: u64 },
    #[error("the store of people is unavailable")]
    Store(#[from] sqlx::Error),
}

impl IdentityError {
    pub fn invalid(field: &'static str, why: impl Into<String>) -> Self {
        Self::Invalid {
            field,
            why: why.into(),
        }
    }

    /// When to try again, where that is known; the value of `Retry-After`.
    pub const fn retry_after_s(&self) -> Option<u64> {
        match self {
            Self::TooManyGuesses { wait_s } | Self::Busy { wait_s } => Some(*wait_s),
            Self::Invalid { .. }
            | Self::Exists { .. }
            | Self::NotFound { .. }
            | Self::WrongPassword
            | Self::BadLink
            | Self::LastAdmin
            | Self::NoChance
            | Self::Store(_) => None,
        }
    }
}
