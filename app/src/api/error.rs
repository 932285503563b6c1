//! What a page is told when its data could not be had. The UI branches on the kind, never on the text.

use std::sync::Arc;

use leptos::prelude::*;
use leptos::server_fn::error::{FromServerFnError, ServerFnErrorErr};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::payload::Payload;
use crate::console::{ConsoleError, SharedConsole};

#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApiError {
    /// The console answered, and this is why it has no data.
    #[error(transparent)]
    Console(ConsoleError),
    /// The console could not be asked: the network, or its own process.
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
    /// The HTTP status that says the same.
    pub const fn status(&self) -> u16 {
        match self {
            Self::Console(ConsoleError::BadQuery(_)) => 400,
            Self::Console(ConsoleError::NotFound { .. }) => 404,
            Self::Console(ConsoleError::Ambiguous { .. }) => 409,
            Self::Console(ConsoleError::Busy { .. }) | Self::Unreachable(_) => 503,
        }
    }

    /// Asking again may help; a bad query stays bad.
    pub const fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::Console(ConsoleError::Busy { .. }) | Self::Unreachable(_)
        )
    }
}

/// Sets the status of the answer being made. The server provides it; the browser has no need of it.
#[derive(Clone)]
pub struct SetStatus(pub Arc<dyn Fn(u16) + Send + Sync>);

/// Gives the answer being made this status, where there is an answer being made.
pub fn set_status(status: u16) {
    if let Some(SetStatus(set)) = use_context::<SetStatus>() {
        set(status);
    }
}

/// A question to the port, with the status of its answer.
pub struct Asked {
    pub console: SharedConsole,
    /// Taken before the first wait: the context belongs to the moment of the call.
    status: Option<SetStatus>,
}

/// The port, as the server put it into the context of pages and server functions.
///
/// # Errors
/// [`ApiError::Unreachable`] where nobody provided it, which is a fault of the set-up.
pub fn ask() -> Result<Asked, ApiError> {
    let console = use_context::<SharedConsole>();
    let console = console.ok_or_else(|| ApiError::Unreachable("no console is set up".to_owned()))?;
    Ok(Asked {
        console,
        status: use_context::<SetStatus>(),
    })
}

impl Asked {
    /// The answer of the port, its status told.
    ///
    /// # Errors
    /// What the port answered.
    pub fn answer<T>(&self, outcome: Result<T, ConsoleError>) -> Result<T, ApiError> {
        outcome.map_err(|error| {
            let error = ApiError::from(error);
            if let Some(SetStatus(set)) = &self.status {
                set(error.status());
            }
            error
        })
    }
}
