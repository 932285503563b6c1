//! Why a backend could not be asked, with what to do about it. Details are cleaned of credentials by whoever
//! builds the error: this text reaches pages and logs.

use thiserror::Error;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BackendError {
    #[error("cannot connect: {detail}")]
    Unreachable { detail: String },
    #[error("no answer within {after_ms} ms")]
    NoAnswer { after_ms: u64 },
    #[error("access denied: {detail}")]
    Denied { detail: String, mend: String },
    #[error("{detail}")]
    Misconfigured { detail: String, mend: String },
    #[error("unexpected answer: {detail}")]
    Protocol { detail: String },
}

impl BackendError {
    /// What a person can do.
    pub fn mend(&self) -> String {
        match self {
            Self::Unreachable { .. } => {
                "Check that the server runs and that this host may connect to the address in the configuration."
                    .to_owned()
            }
            Self::NoAnswer { .. } => {
                "Check the network and the load of the server; raise `timeout` if it is known to be slow.".to_owned()
            }
            Self::Denied { mend, .. } | Self::Misconfigured { mend, .. } => mend.clone(),
            Self::Protocol { .. } => "Check that the address is of the configured kind and version.".to_owned(),
        }
    }
}
