//! What each call of the lease API knows of its request.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;

use crate::http::access::Standing;
use crate::http::problem::Problem;
use crate::lease::Caller;

/// Who asks, and under which request id. Takes the headers away from whatever is extracted after it.
pub(in crate::http) struct Context {
    pub(in crate::http) caller: Caller,
    pub(in crate::http) headers: HeaderMap,
    /// Where there is a guard.
    pub(in crate::http) standing: Option<Standing>,
}

impl Context {
    pub(in crate::http) fn problem(&self, error: impl Into<Problem>) -> Problem {
        error.into().with_request_id(&self.headers)
    }
}

impl<S: Sync> FromRequestParts<S> for Context {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let standing = parts.extensions.remove::<Standing>();
        let unguarded = || parts.extensions.get().cloned().unwrap_or_else(Caller::open);
        Ok(Self {
            caller: standing.as_ref().map_or_else(unguarded, Standing::caller),
            standing,
            headers: std::mem::take(&mut parts.headers),
        })
    }
}
