//! Errors of rules, silences and alerts.

use domain::alerts::FieldError;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum AlertError {
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Invalid(Vec<FieldError>),
    #[error("no {0} has this id")]
    NotFound(&'static str),
    #[error("it was changed in the meantime: read version {now} and change that")]
    Changed { now: i64 },
    #[error("the limit of {max} {what} is reached; end one first")]
    TooMany { max: i64, what: &'static str },
    /// A clause: the missing permission and its object.
    #[error("{0}")]
    Forbidden(String),
    #[error("the console's store does not answer: nothing was changed")]
    Store(#[from] sqlx::Error),
}

impl AlertError {
    pub(super) fn invalid(field: &str, why: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Invalid(vec![FieldError::new(field, why, remedy)])
    }
}
