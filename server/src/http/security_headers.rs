//! Security headers of every answer, and the content security policies of pages.

use std::sync::LazyLock;

use app::app::THEME;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

/// Headers of every answer, unless its handler sets another value.
const ALWAYS: [(HeaderName, &str); 2] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::CACHE_CONTROL, "no-store"),
];

/// Headers of everything that a browser may show or load.
const FOR_BROWSERS: [(HeaderName, &str); 4] = [
    (header::REFERRER_POLICY, "same-origin"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; frame-ancestors 'none'",
    ),
];

fn set(response: &mut Response, headers: &[(HeaderName, &'static str)]) {
    for (name, value) in headers {
        let entry = response.headers_mut().entry(name);
        entry.or_insert(HeaderValue::from_static(value));
    }
}

/// Adds the headers that the handler did not set. JSON of the API gets the first two alone: lease clients are no browsers,
/// and each header costs time on their path.
pub(super) fn add(mut response: Response) -> Response {
    let kind = response.headers().get(header::CONTENT_TYPE);
    let is_json = kind.is_some_and(|kind| kind.as_bytes() == b"application/json");
    set(&mut response, &ALWAYS);
    if !is_json {
        set(&mut response, &FOR_BROWSERS);
    }
    response
}

/// Adds all headers that the handler did not set, whatever the content type.
pub(super) async fn add_all(mut response: Response) -> Response {
    set(&mut response, &ALWAYS);
    set(&mut response, &FOR_BROWSERS);
    response
}

/// For pages with the browser half: scripts run with the nonce of this answer only.
pub(super) fn policy_with_nonce(nonce: &str) -> Option<HeaderValue> {
    let policy = format!(
        "default-src 'none'; script-src 'self' 'nonce-{nonce}' 'wasm-unsafe-eval'; style-src 'self'; \
         img-src 'self'; font-src 'self'; connect-src 'self'; form-action 'self'; \
         frame-ancestors 'none'; object-src 'none'; base-uri 'none'"
    );
    HeaderValue::try_from(policy).ok()
}

/// For pages without the browser half: the script that sets the colours runs, by its hash, and no other.
pub(super) fn page_policy() -> HeaderValue {
    static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| policy_with_hashes(&[THEME]));
    POLICY.clone()
}

/// For a page that runs one more inline script.
pub(super) fn page_policy_with(script: &str) -> HeaderValue {
    policy_with_hashes(&[THEME, script])
}

fn policy_with_hashes(scripts: &[&str]) -> HeaderValue {
    let hash = |script: &&str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(script.as_bytes())));
    let hashes: Vec<String> = scripts.iter().map(hash).collect();
    let policy = format!(
        "default-src 'none'; script-src {}; style-src 'self'; img-src 'self'; font-src 'self'; form-action 'self'; \
         frame-ancestors 'none'; object-src 'none'; base-uri 'none'",
        hashes.join(" ")
    );
    // Base64 is always valid in a header; without the hash the page keeps the colours of the system.
    HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'; style-src 'self'"))
}
