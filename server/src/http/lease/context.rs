//! The request context of the lease API.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;

use crate::http::auth::SessionGuard;
use crate::http::problem::Problem;
use lease::LeaseCaller;

/// The lease caller and the headers. Takes the headers from the extractors after it.
pub(in crate::http) struct Context {
    pub(in crate::http) caller: LeaseCaller,
    pub(in crate::http) headers: HeaderMap,
    /// With the authentication layer only.
    pub(in crate::http) guard: Option<SessionGuard>,
}

impl Context {
    pub(in crate::http) fn problem(&self, error: impl Into<Problem>) -> Problem {
        error.into().with_request_id(&self.headers)
    }
}

impl<S: Sync> FromRequestParts<S> for Context {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let guard = parts.extensions.remove::<SessionGuard>();
        let unguarded = || parts.extensions.get().cloned().unwrap_or_else(LeaseCaller::open);
        Ok(Self {
            caller: guard.as_ref().map_or_else(unguarded, SessionGuard::caller),
            guard,
            headers: std::mem::take(&mut parts.headers),
        })
    }
}
