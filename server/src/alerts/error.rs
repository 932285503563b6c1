//! What can go wrong with rules, silences and alerts.

use domain::alerts::Fault;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum AlertError {
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Invalid(Vec<Fault>),
    #[error("there is no such {0}")]
    NotFound(&'static str),
    #[error("somebody else has changed it since: it is version {now} now")]
    Changed { now: i64 },
    /// A clause: what one may not do, and on what.
    #[error("{0}")]
    Forbidden(String),
    #[error("the console's store does not answer: nothing was done")]
    Store(#[from] sqlx::Error),
}

impl AlertError {
    pub(super) fn invalid(field: &str, why: impl Into<String>, mend: impl Into<String>) -> Self {
        Self::Invalid(vec![Fault::new(field, why, mend)])
    }
}
