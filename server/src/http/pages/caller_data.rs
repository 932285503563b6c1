//! The pages' ports for the caller of a request. Each page implements its own, next to what it calls.
//!
//! The table of routes decides who may open a page and call its server function; each method limits its data to the caller's
//! scope, and data without a scope is [checked](CallerData::check) again.

use app::console::ConsoleError;
use app::pages::PageData;
use domain::access::Permission;

use crate::http::state::AppState;
use crate::identity::Principal;

pub(super) struct CallerData {
    pub(super) state: AppState,
    pub(super) who: Principal,
}

impl PageData for CallerData {}

impl CallerData {
    /// The pages' router reads the path on its own: it ignores a slash at the end, for example.
    pub(super) fn check(&self, permission: Permission) -> Result<(), ConsoleError> {
        if self.who.may_anywhere(permission) {
            return Ok(());
        }
        Err(ConsoleError::Forbidden {
            permission: permission.as_str().to_owned(),
        })
    }
}

/// The store of the console does not answer.
pub(super) fn unavailable(what: &str) -> ConsoleError {
    ConsoleError::Unavailable {
        what: what.to_owned(),
    }
}
