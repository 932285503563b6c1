//! Errors of users, tokens and sign-in.

use thiserror::Error;

#[derive(Debug, Error)]
pub enum IdentityError {
    /// Names the field and the rule.
    #[error("{field}: {why}")]
    Invalid { field: &'static str, why: String },
    #[error("{what} {name:?} exists already")]
    Exists { what: &'static str, name: String },
    #[error("there is no {what} {name:?}")]
    NotFound { what: &'static str, name: String },
    /// The same for an unknown name, a wrong password and a disabled user.
    #[error("the name or the password is wrong")]
    WrongPassword,
    /// Since the request was authenticated.
    #[error("this session was ended, this user was disabled, or this API token was revoked")]
    AccessEnded,
    /// Between the check of the current password and the change to a new one.
    #[error(
        "another request changed your password first, so this change was not made; sign in with the password it set"
    )]
    PasswordChanged,
    /// Refused before the password was checked.
    #[error("too many failed sign-ins; try again in {wait_s} s")]
    TooManyGuesses { wait_s: u64 },
    #[error("this link is used or expired; ask an admin for a new one")]
    BadLink,
    #[error("the last enabled admin cannot lose the role admin; grant it to another user first")]
    LastAdmin,
    #[error("the operating system returned no random numbers; see the server's log and try again")]
    NoChance,
    /// The queue for password hashing is full.
    #[error("too many sign-ins at once; try again in {wait_s} s")]
    Busy { wait_s: u64 },
    #[error("the console's store is unavailable: users cannot be read or written")]
    Store(#[from] sqlx::Error),
}

impl IdentityError {
    pub fn invalid(field: &'static str, why: impl Into<String>) -> Self {
        Self::Invalid {
            field,
            why: why.into(),
        }
    }

    /// Value of `Retry-After`, if known.
    pub const fn retry_after_s(&self) -> Option<u64> {
        match self {
            Self::TooManyGuesses { wait_s } | Self::Busy { wait_s } => Some(*wait_s),
            Self::Invalid { .. }
            | Self::Exists { .. }
            | Self::NotFound { .. }
            | Self::WrongPassword
            | Self::AccessEnded
            | Self::PasswordChanged
            | Self::BadLink
            | Self::LastAdmin
            | Self::NoChance
            | Self::Store(_) => None,
        }
    }
}
