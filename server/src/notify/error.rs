//! Errors of receivers and messages.

use thiserror::Error;

use super::secret_box::VaultError;

#[derive(Debug, Error)]
pub enum NotifyError {
    /// `why` follows the field name: "is not https".
    #[error("{field} {why}")]
    Invalid {
        field: &'static str,
        why: String,
        /// The remedy, in whole sentences.
        remedy: String,
    },
    #[error("a receiver {name} exists already; choose another name")]
    Exists { name: String },
    #[error("there is no {what} {name}")]
    NotFound { what: &'static str, name: String },
    #[error("the limit of {max} receivers is reached; remove one first")]
    TooMany { max: usize },
    #[error("this message is not a dead letter: it is {state}")]
    NotDead { state: &'static str },
    #[error("the console's store is unavailable: nothing was changed")]
    Store(#[from] sqlx::Error),
    #[error("the operating system returned no random numbers; see the server's log and try again")]
    NoChance,
    /// The receiver's secrets cannot be encrypted or decrypted; `why` includes the remedy.
    #[error("{why}")]
    Locked { why: String },
}

impl From<VaultError> for NotifyError {
    fn from(error: VaultError) -> Self {
        match error {
            VaultError::NoChance => Self::NoChance,
            VaultError::NoKey(_) | VaultError::OtherKey(_) | VaultError::Damaged => Self::Locked {
                why: error.to_string(),
            },
        }
    }
}

impl NotifyError {
    pub(super) fn invalid(field: &'static str, why: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Invalid {
            field,
            why: why.into(),
            remedy: remedy.into(),
        }
    }
}
