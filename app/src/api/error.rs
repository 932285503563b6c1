//! Errors of a page's data. The UI branches on the kind, never on the text.

use std::sync::Arc;

use leptos::prelude::*;
use leptos::server_fn::Bytes;
use leptos::server_fn::error::{FromServerFnError, ServerFnErrorErr};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::codec::{self, Payload, PayloadError};
use crate::console::{ConsoleError, SharedConsole};
use crate::pages::SharedPageData;

#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApiError {
    /// The console answered with an error.
    #[error(transparent)]
    Console(ConsoleError),
    /// The console could not be reached: the network, or its own process.
    #[error("the console did not answer: {0}")]
    Unreachable(String),
    /// The session has ended.
    #[error("your session has ended")]
    SignedOut,
    /// The server has another version than this page.
    #[error("the console has another version than this page")]
    OtherBuild,
}

impl FromServerFnError for ApiError {
    type Encoder = Payload;

    fn from_server_fn_error(error: ServerFnErrorErr) -> Self {
        match error {
            ServerFnErrorErr::Deserialization(why) if why == PayloadError::OtherBuild.to_string() => {
                Self::OtherBuild
            }
            error => Self::Unreachable(error.to_string()),
        }
    }

    /// Also reads the refusals of the authentication layer, which are problems in JSON, and text of a proxy.
    fn de(data: Bytes) -> Self {
        match codec::read(&data) {
            Ok(error) => error,
            Err(PayloadError::OtherBuild) if data.starts_with(b"{") => of_problem(&data),
            Err(PayloadError::OtherBuild) if !codec::is_stamped(&data) => {
                Self::Unreachable("the error is from a proxy or load balancer".to_owned())
            }
            Err(PayloadError::OtherBuild) => Self::OtherBuild,
            Err(error @ PayloadError::Malformed) => Self::Unreachable(error.to_string()),
        }
    }
}

/// In the browser only, by its JSON parser.
fn of_problem(problem: &[u8]) -> ApiError {
    let text = std::str::from_utf8(problem).unwrap_or_default();
    let Ok(problem) = js_sys::JSON::parse(text) else {
        return ApiError::Unreachable("an unknown error".to_owned());
    };
    let member = |name: &str| {
        let member = js_sys::Reflect::get(&problem, &name.into()).ok()?;
        member.as_string()
    };
    match member("code").as_deref() {
        Some("unauthenticated") => ApiError::SignedOut,
        Some("forbidden") => ApiError::Console(ConsoleError::Forbidden {
            permission: member("permission").unwrap_or_else(|| "for this page".to_owned()),
        }),
        _ => ApiError::Unreachable(member("detail").unwrap_or_default()),
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
            Self::Console(ConsoleError::Forbidden { .. }) => 403,
            Self::Console(
                ConsoleError::Busy { .. } | ConsoleError::Unavailable { .. } | ConsoleError::Unread { .. },
            )
            | Self::Unreachable(_)
            | Self::OtherBuild => 503,
            Self::SignedOut => 401,
        }
    }

    /// Whether a retry may succeed. It cannot for an invalid query, a missing lock or a missing permission.
    pub const fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::Console(
                ConsoleError::Busy { .. } | ConsoleError::Unavailable { .. } | ConsoleError::Unread { .. }
            ) | Self::Unreachable(_)
                | Self::SignedOut
                | Self::OtherBuild
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

/// A call of the ports that sets the response status.
pub struct Ports {
    pub console: SharedConsole,
    /// `None`: the console has data of locks only.
    pub pages: Option<SharedPageData>,
    /// Taken before the first await: the context is available only at the call.
    status: Option<SetStatus>,
}

/// The port from the context of pages and server functions.
///
/// # Errors
/// [`ApiError::Unreachable`] if the context has none, which is a setup error.
pub fn from_context() -> Result<Ports, ApiError> {
    let console = use_context::<SharedConsole>();
    let console = console.ok_or_else(|| ApiError::Unreachable("no console is set up".to_owned()))?;
    Ok(Ports {
        console,
        pages: use_context::<SharedPageData>(),
        status: use_context::<SetStatus>(),
    })
}

impl Ports {
    /// The port of pages besides locks.
    ///
    /// # Errors
    /// This console has none.
    pub fn pages(&self) -> Result<&SharedPageData, ApiError> {
        let unavailable = ConsoleError::Unavailable {
            what: "this console shows locks only".to_owned(),
        };
        let pages = self.pages.as_ref().ok_or(unavailable);
        self.set_status(pages)
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_page_of_a_proxy_is_no_new_version() {
        // `OtherBuild` reloads the page: the reload would replace it with the proxy's error page.
        for body in ["<html>502 Bad Gateway", "\u{feff}no healthy upstream", ""] {
            let error = ApiError::de(Bytes::from_static(body.as_bytes()));
            assert!(matches!(error, ApiError::Unreachable(_)), "{body:?}: {error}");
        }
        // A stamp of another build: its first byte is not text, the others are.
        let other_build = Bytes::from_static(&[0xbb, b'h', b't', b'm', 2]);
        assert_eq!(ApiError::de(other_build), ApiError::OtherBuild);
    }
}
