//! Answers with a page without the browser half, and redirects after forms.

use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse as _, Redirect, Response};

use crate::http::security_headers;
use crate::identity::IdentityError;

pub(in crate::http) fn html_response(status: StatusCode, html: String) -> Response {
    (
        status,
        [(header::CONTENT_SECURITY_POLICY, security_headers::page_policy())],
        Html(html),
    )
        .into_response()
}

/// A page with one more script of the console.
pub(in crate::http) fn answer_with_script(status: StatusCode, html: String, script: &str) -> Response {
    let mut response = html_response(status, html);
    let policy = security_headers::page_policy_with(script);
    response
        .headers_mut()
        .insert(header::CONTENT_SECURITY_POLICY, policy);
    response
}

/// The status of a page that shows this error.
pub(in crate::http) fn status_of(error: &IdentityError) -> StatusCode {
    match error {
        IdentityError::Invalid { .. } => StatusCode::UNPROCESSABLE_ENTITY,
        IdentityError::Exists { .. } | IdentityError::LastAdmin | IdentityError::PasswordChanged => {
            StatusCode::CONFLICT
        }
        IdentityError::NotFound { .. } => StatusCode::NOT_FOUND,
        IdentityError::WrongPassword | IdentityError::AccessEnded => StatusCode::UNAUTHORIZED,
        IdentityError::BadLink => StatusCode::GONE,
        IdentityError::TooManyGuesses { .. } | IdentityError::Busy { .. } => StatusCode::TOO_MANY_REQUESTS,
        IdentityError::NoChance | IdentityError::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// Adds `Retry-After`, if it is known when to try again.
pub(in crate::http) fn with_retry_after(mut response: Response, error: &IdentityError) -> Response {
    if let Some(seconds) = error.retry_after_s() {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

/// For display: nothing of the store's own words, a capital at the start, a full stop at the end.
pub(in crate::http) fn sentence(error: &IdentityError) -> String {
    let text = match error {
        IdentityError::Store(_) => {
            "the console's store is unavailable: users cannot be read or written".to_owned()
        }
        other => other.to_string(),
    };
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(chars).collect::<String>() + "."
    })
}

/// Redirects after a form has been processed, so that a reload does not send it again.
pub(in crate::http) fn see_other(path: &str) -> Response {
    Redirect::to(path).into_response()
}
