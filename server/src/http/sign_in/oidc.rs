//! `/sign-in/oidc` and its callback: to the identity provider and back. What went wrong is told on the sign-in page,
//! where the password still works.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use serde::Deserialize;

use super::{form, page, sign_in, welcome, with_cookie};
use crate::http::access::{Gate, cookie};
use crate::http::form_page;
use crate::identity::{OidcError, Returned, Who};

#[derive(Debug, Default, Deserialize)]
pub(super) struct Asked {
    next: Option<String>,
    /// Prove again who you are, though the provider knows you.
    again: Option<String>,
}

pub(super) async fn begin(
    State(gate): State<Arc<Gate>>,
    Extension(who): Extension<Who>,
    Query(asked): Query<Asked>,
) -> Response {
    let next = cookie::next_path(asked.next.as_deref());
    let Some(oidc) = &gate.oidc else {
        return none(&gate, next);
    };
    match oidc.begin(next, asked.again.is_some(), &who.origin).await {
        Ok((begun, url)) => with_cookie(
            Redirect::to(&url).into_response(),
            cookie::set_flow(&begun.secret, gate.is_secure),
        ),
        Err(error) => refused(&gate, &error, next),
    }
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Answer {
    code: Option<String>,
    state: Option<String>,
    error: Option<String>,
}

pub(super) async fn finish(
    State(gate): State<Arc<Gate>>,
    Extension(who): Extension<Who>,
    headers: HeaderMap,
    Query(answer): Query<Answer>,
) -> Response {
    let Some(oidc) = &gate.oidc else {
        return none(&gate, "/");
    };
    let returned = Returned {
        code: answer.code,
        state: answer.state,
        error: answer.error,
        cookie: cookie::read_flow(&headers, gate.is_secure),
    };
    let response = match oidc.finish(returned, &who.origin).await {
        Ok((signed_in, next)) => welcome(&gate, &signed_in, cookie::next_path(Some(&next))),
        Err(error) => refused(&gate, &error, "/"),
    };
    with_cookie(response, cookie::clear_flow(gate.is_secure))
}

fn refused(gate: &Gate, error: &OidcError, next: &str) -> Response {
    let name = gate.oidc.as_ref().map_or("", |oidc| oidc.name());
    let (status, why) = match error {
        OidcError::Down(_) => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!(
                "{name} cannot be reached at the moment. Try again soon, or use a password if you have one here."
            ),
        ),
        OidcError::Refused { why: "no_role", .. } => (
            StatusCode::FORBIDDEN,
            format!("{name} knows you, but gives you no role here. Ask whoever administers Leasehold."),
        ),
        OidcError::Refused { why: "disabled", .. } => (
            StatusCode::FORBIDDEN,
            "You were disabled here. Ask whoever administers Leasehold.".to_owned(),
        ),
        OidcError::Refused { .. } => (
            StatusCode::BAD_REQUEST,
            format!(
                "The answer of {name} was not accepted. Begin again; if it stays so, the server's log says why."
            ),
        ),
        OidcError::TooOften { wait_s } => (
            StatusCode::TOO_MANY_REQUESTS,
            format!("Too many sign-ins were begun from your address. Try again in {wait_s} s."),
        ),
        OidcError::Identity(error) => (form_page::status_of(error), form_page::sentence(error)),
    };
    let content = sign_in::SignIn {
        refusal: Some(why),
        ..form(gate, next.to_owned())
    };
    let mut response = page(status, sign_in::sign_in(content));
    if let OidcError::TooOften { wait_s } = error {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, (*wait_s).into());
    }
    response
}

fn none(gate: &Gate, next: &str) -> Response {
    let content = sign_in::SignIn {
        refusal: Some("There is no identity provider here.".to_owned()),
        ..form(gate, next.to_owned())
    };
    page(StatusCode::NOT_FOUND, sign_in::sign_in(content))
}
