//! `/sign-in/oidc` and its callback: sign-in through the identity provider. Errors appear on the sign-in page,
//! where the password still works.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use serde::Deserialize;

use super::{form, page, sign_in, signed_in_redirect, with_cookie};
use crate::http::auth::{Authenticator, cookie};
use crate::http::current_user::CurrentUser;
use crate::http::pages::response;
use crate::identity::{OidcError, Returned};

#[derive(Debug, Default, Deserialize)]
pub(in crate::http) struct OidcStart {
    next: Option<String>,
    /// Authenticate again, though the provider knows you.
    again: Option<String>,
}

pub(in crate::http) async fn begin(
    State(auth): State<Arc<Authenticator>>,
    CurrentUser(who): CurrentUser,
    Query(asked): Query<OidcStart>,
) -> Response {
    let next = cookie::next_path(asked.next.as_deref());
    let Some(oidc) = &auth.oidc else {
        return no_provider_page(&auth, next);
    };
    match oidc.begin(next, asked.again.is_some(), &who.origin).await {
        Ok((begun, url)) => with_cookie(
            Redirect::to(&url).into_response(),
            cookie::set_flow(&begun.cookie, auth.is_secure),
        ),
        Err(error) => error_page(&auth, &error, next),
    }
}

#[derive(Debug, Default, Deserialize)]
pub(in crate::http) struct OidcCallback {
    code: Option<String>,
    state: Option<String>,
    error: Option<String>,
}

pub(in crate::http) async fn finish(
    State(auth): State<Arc<Authenticator>>,
    CurrentUser(who): CurrentUser,
    headers: HeaderMap,
    Query(answer): Query<OidcCallback>,
) -> Response {
    let Some(oidc) = &auth.oidc else {
        return no_provider_page(&auth, "/");
    };
    let returned = Returned {
        code: answer.code,
        state: answer.state,
        error: answer.error,
        cookie: cookie::read_flow(&headers, auth.is_secure),
    };
    let response = match oidc.finish(returned, &who.origin).await {
        Ok((signed_in, next)) => signed_in_redirect(&auth, &signed_in, cookie::next_path(Some(&next))),
        Err(error) => error_page(&auth, &error, "/"),
    };
    with_cookie(response, cookie::clear_flow(auth.is_secure))
}

fn error_page(auth: &Authenticator, error: &OidcError, next: &str) -> Response {
    let name = auth.oidc.as_ref().map_or("", |oidc| oidc.name());
    let (status, why) = match error {
        OidcError::Down(_) => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!(
                "{name} cannot be reached at the moment. Try again soon, or use a password if you have one here."
            ),
        ),
        OidcError::Refused { why: "no_role", .. } => (
            StatusCode::FORBIDDEN,
            format!("{name} knows your account, but it has no role here. Ask an admin of Leasehold."),
        ),
        OidcError::Refused { why: "disabled", .. } => (
            StatusCode::FORBIDDEN,
            "Your user is disabled here. Ask an admin of Leasehold.".to_owned(),
        ),
        OidcError::Refused { .. } => (
            StatusCode::BAD_REQUEST,
            format!(
                "The answer of {name} was rejected. Sign in again; if it fails again, the server's log has the cause."
            ),
        ),
        OidcError::TooOften { wait_s } => (
            StatusCode::TOO_MANY_REQUESTS,
            format!("Too many sign-ins from your address. Try again in {wait_s} s."),
        ),
        OidcError::Identity(error) => (response::status_of(error), response::sentence(error)),
    };
    let content = sign_in::SignIn {
        refusal: Some(why),
        ..form(auth, next.to_owned())
    };
    let mut response = page(status, sign_in::sign_in(content));
    if let OidcError::TooOften { wait_s } = error {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, (*wait_s).into());
    }
    response
}

fn no_provider_page(auth: &Authenticator, next: &str) -> Response {
    let content = sign_in::SignIn {
        refusal: Some("No identity provider is configured.".to_owned()),
        ..form(auth, next.to_owned())
    };
    page(StatusCode::NOT_FOUND, sign_in::sign_in(content))
}
