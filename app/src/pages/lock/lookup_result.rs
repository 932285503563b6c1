//! Result of a lookup by name: the lock, a choice between sources, or not found.
//!
//! Errors that the console returns have pages of their own; only an unreachable console stays
//! an error.

use domain::lock_detail::LockDetail;
use domain::names::Source;
use serde::{Deserialize, Serialize};

use super::data::lock;
use crate::api::ApiError;
use crate::console::ConsoleError;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum LookupResult {
    Lock(Box<LockDetail>),
    /// Several sources have this name.
    Choose {
        backend: String,
        resource: String,
        sources: Vec<Source>,
    },
    /// No such backend, or no such lock on it; `what` names it.
    Missing {
        backend: String,
        resource: String,
        what: String,
    },
    /// The URL is invalid.
    BadAddress {
        what: String,
    },
}

pub(super) async fn find(
    backend: String,
    source: String,
    resource: String,
    search: String,
) -> Result<LookupResult, ApiError> {
    match lock(backend.clone(), source, resource.clone(), search).await {
        Ok(detail) => Ok(LookupResult::Lock(Box::new(detail))),
        Err(ApiError::Console(ConsoleError::Ambiguous { sources })) => Ok(LookupResult::Choose {
            backend,
            resource,
            sources,
        }),
        Err(ApiError::Console(ConsoleError::NotFound { what })) => Ok(LookupResult::Missing {
            backend,
            resource,
            what,
        }),
        Err(ApiError::Console(ConsoleError::BadQuery(error))) => Ok(LookupResult::BadAddress {
            what: error.to_string(),
        }),
        Err(
            error @ (ApiError::Console(
                ConsoleError::Busy { .. }
                | ConsoleError::Forbidden { .. }
                | ConsoleError::Unavailable { .. }
                | ConsoleError::Unread { .. },
            )
            | ApiError::Unreachable(_)
            | ApiError::SignedOut
            | ApiError::OtherBuild),
        ) => Err(error),
    }
}
