//! What the console said about one name: the lock, a choice between sources, or that there is none.
//!
//! A refusal of the console is an answer here, with a page of its own; only silence stays an error.

use domain::detail::LockDetail;
use domain::names::Source;
use serde::{Deserialize, Serialize};

use crate::api::{self, ApiError};
use crate::console::ConsoleError;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum Answer {
    Lock(Box<LockDetail>),
    /// Several sources hold this name.
    Choose {
        backend: String,
        resource: String,
        sources: Vec<Source>,
    },
    /// No such backend, or no such lock on it; `what` says which.
    Missing {
        backend: String,
        resource: String,
        what: String,
    },
    /// The address cannot be one of a lock.
    BadAddress {
        what: String,
    },
}

pub(super) async fn find(
    backend: String,
    source: String,
    resource: String,
    search: String,
) -> Result<Answer, ApiError> {
    match api::lock::lock(backend.clone(), source, resource.clone(), search).await {
        Ok(detail) => Ok(Answer::Lock(Box::new(detail))),
        Err(ApiError::Console(ConsoleError::Ambiguous { sources })) => Ok(Answer::Choose {
            backend,
            resource,
            sources,
        }),
        Err(ApiError::Console(ConsoleError::NotFound { what })) => Ok(Answer::Missing {
            backend,
            resource,
            what,
        }),
        Err(ApiError::Console(ConsoleError::BadQuery(error))) => Ok(Answer::BadAddress {
            what: error.to_string(),
        }),
        Err(error @ (ApiError::Console(ConsoleError::Busy { .. }) | ApiError::Unreachable(_))) => Err(error),
    }
}
