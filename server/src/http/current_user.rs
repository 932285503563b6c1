//! Extractors of the principal that sent a request: [`CurrentUser`] for pages, [`ApiUser`] for the API.
//!
//! The authentication layer puts the principal into the extensions of each request. Without that layer every request is
//! anonymous.

use std::convert::Infallible;

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use super::json_body;
use super::problem::Problem;
use crate::audit::Origin;
use crate::identity::Principal;

fn principal(parts: &mut Parts) -> Principal {
    let principal = parts.extensions.remove::<Principal>();
    principal.unwrap_or_else(|| Principal::anonymous(Origin::default()))
}

/// The principal for handlers that answer with a page.
pub(super) struct CurrentUser(pub(super) Principal);

impl<S: Sync> FromRequestParts<S> for CurrentUser {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(principal(parts)))
    }
}

/// The principal for handlers that answer with JSON. Takes the headers from the extractors after it.
pub(super) struct ApiUser {
    pub(super) who: Principal,
    pub(super) headers: HeaderMap,
}

impl ApiUser {
    /// The body of this request.
    pub(super) async fn read<T: DeserializeOwned>(&self, body: Body) -> Result<T, Problem> {
        let read = json_body::read(&self.headers, body).await;
        read.map_err(|error| self.problem(error))
    }

    /// An error as problem+json, with the id of this request.
    pub(super) fn problem(&self, error: impl Into<Problem>) -> Problem {
        error.into().with_request_id(&self.headers)
    }
}

impl<S: Sync> FromRequestParts<S> for ApiUser {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self {
            who: principal(parts),
            headers: std::mem::take(&mut parts.headers),
        })
    }
}
