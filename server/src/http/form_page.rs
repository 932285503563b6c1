//! Pages without the browser half: HTML that was made here, and the policy that lets nothing run in it but the one line
//! that sets the colours.

use std::sync::LazyLock;

use app::app::THEME;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

pub(super) fn answer(status: StatusCode, html: String) -> Response {
    (
        status,
        [(header::CONTENT_SECURITY_POLICY, POLICY.clone())],
        Html(html),
    )
        .into_response()
}

static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let policy = format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'self'; img-src 'self'; font-src 'self'; form-action 'self'; \
         frame-ancestors 'none'; object-src 'none'; base-uri 'none'",
        STANDARD.encode(Sha256::digest(THEME.as_bytes()))
    );
    // Base64 is always fit for a header; without the hash the page keeps the system's colours.
    HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'; style-src 'self'"))
});
