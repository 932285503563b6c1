//! Errors of a page's data. The UI branches on the kind, never on the text.

use std::sync::Arc;

use leptos::prelude::*;
use leptos::server_fn::error::{FromServerFnError, ServerFnErrorErr};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::codec::Payload;
use crate::console::{ConsoleError, SharedConsole};

#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApiError {
    /// The console answered with an error.
    #[error(transparent)]
    Console(ConsoleError),
    /// The console could not be reached: the network, or its own process.
    #[error("the console did not answer: {0}")]
    Unreachable(String),
}

impl FromServerFnError for ApiError {
    type Encoder = Payload;

    fn from_server_fn_error(error: ServerFnErrorErr) -> Self {
        Self::Unreachable(error.to_string())
    }
}

impl From<ConsoleError> for ApiError {
    fn from(error: ConsoleError) -> Self {
        Self::Console(error)
    }
}

impl ApiError {
    /// The corresponding HTTP status.
    pub const fn status(&self) -> u16 {
        match self {
            Self::Console(ConsoleError::BadQuery(_)) => 400,
            Self::Console(ConsoleError::NotFound { .. }) => 404,
            Self::Console(ConsoleError::Ambiguous { .. }) => 409,
            Self::Console(ConsoleError::Busy { .. }) | Self::Unreachable(_) => 503,
        }
    }

    /// A retry may succeed; an invalid query stays invalid.
    pub const fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::Console(ConsoleError::Busy { .. }) | Self::Unreachable(_)
        )
    }
}

/// Sets the status of the current response. Provided on the server only.
#[derive(Clone)]
pub struct SetStatus(pub Arc<dyn Fn(u16) + Send + Sync>);

/// Sets the status of the current response, if there is one.
pub fn set_status(status: u16) {
    if let Some(SetStatus(set)) = use_context::<SetStatus>() {
        set(status);
    }
}

/// A call of the port that sets the response status.
pub struct RequestedLock {
    pub console: SharedConsole,
    /// Taken before the first await: the context is available only at the call.
    status: Option<SetStatus>,
}

/// The port from the context of pages and server functions.
///
/// # Errors
/// [`ApiError::Unreachable`] if the context has none, which is a setup error.
pub fn from_context() -> Result<RequestedLock, ApiError> {
    let console = use_context::<SharedConsole>();
    let console = console.ok_or_else(|| ApiError::Unreachable("no console is set up".to_owned()))?;
    Ok(RequestedLock {
        console,
        status: use_context::<SetStatus>(),
    })
}

impl RequestedLock {
    /// Sets the response status for `outcome`.
    ///
    /// # Errors
    /// The error of the port.
    pub fn set_status<T>(&self, outcome: Result<T, ConsoleError>) -> Result<T, ApiError> {
        outcome.map_err(|error| {
            let error = ApiError::from(error);
            if let Some(SetStatus(set)) = &self.status {
                set(error.status());
            }
            error
        })
    }
}
