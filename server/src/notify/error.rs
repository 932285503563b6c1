//! Why something about receivers or messages was not done.

use thiserror::Error;

use super::vault::VaultError;

#[derive(Debug, Error)]
pub enum NotifyError {
    /// `why` follows the field: "is not https".
    #[error("{field} {why}")]
    Invalid {
        field: &'static str,
        why: String,
        /// What to do: whole sentences.
        mend: String,
    },
    #[error("there is a receiver {name} already")]
    Exists { name: String },
    #[error("there is no {what} {name}")]
    NotFound { what: &'static str, name: String },
    #[error("there are {max} receivers already, which is the most")]
    TooMany { max: usize },
    #[error("this message is not a dead letter: it is {state}")]
    NotDead { state: &'static str },
    #[error("the console's store is unavailable: nothing was done")]
    Store(#[from] sqlx::Error),
    #[error("this machine gives no random numbers")]
    NoChance,
    /// What opens a receiver cannot be sealed or opened; `why` says the mend.
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
    pub(super) fn invalid(field: &'static str, why: impl Into<String>, mend: impl Into<String>) -> Self {
        Self::Invalid {
            field,
            why: why.into(),
            mend: mend.into(),
        }
    }
}
