//! Errors of backend calls with their remedies. The code that creates an error removes
//! credentials from it: the text reaches pages and logs.

use std::time::Duration;

use domain::duration::millis;
use runtime::tls_client::TlsFileError;
use thiserror::Error;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BackendError {
    #[error("cannot connect: {detail}")]
    Unreachable { detail: String },
    #[error("no answer within {after_ms} ms")]
    NoAnswer { after_ms: u64 },
    #[error("access denied: {detail}")]
    Denied { detail: String, remedy: String },
    #[error("{detail}")]
    Misconfigured { detail: String, remedy: String },
    /// The server answers, and cannot serve the request in its present condition.
    #[error("{detail}")]
    Unavailable { detail: String, remedy: String },
    #[error("unexpected answer: {detail}")]
    Protocol { detail: String },
}

/// Limits the time of several calls together.
pub(super) async fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, BackendError>>,
) -> Result<T, BackendError> {
    let answer = tokio::time::timeout(limit, work).await;
    answer.unwrap_or_else(|_| {
        let after_ms = u64::try_from(millis(limit)).unwrap_or(0);
        Err(BackendError::NoAnswer { after_ms })
    })
}

pub(super) fn misconfigured(detail: impl Into<String>, remedy: impl Into<String>) -> BackendError {
    BackendError::Misconfigured {
        detail: detail.into(),
        remedy: remedy.into(),
    }
}

impl From<TlsFileError> for BackendError {
    fn from(error: TlsFileError) -> Self {
        misconfigured(error.to_string(), error.remedy())
    }
}

impl BackendError {
    /// The remedy for the user.
    pub fn remedy(&self) -> String {
        match self {
            Self::Unreachable { .. } => {
                "Check that the server runs and that this host may connect to the address in the configuration."
                    .to_owned()
            }
            Self::NoAnswer { .. } => {
                "Check the network and the load of the server; raise `timeout` if it is known to be slow.".to_owned()
            }
            Self::Denied { remedy, .. }
            | Self::Misconfigured { remedy, .. }
            | Self::Unavailable { remedy, .. } => remedy.clone(),
            Self::Protocol { .. } => "Check that the address is of the configured kind and version.".to_owned(),
        }
    }
}
