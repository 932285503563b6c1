//! Pages without the browser half: HTML that was made here, and the policy that lets nothing run in it but the one line
//! that sets the colours.

use std::convert::Infallible;
use std::sync::LazyLock;

use app::app::THEME;
use app::forms::chrome::{Chrome, Page, Place, page};
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::access::Right;
use futures::stream::{self, Stream, StreamExt as _};
use sha2::{Digest as _, Sha256};

use crate::identity::{IdentityError, Who};

pub(super) fn answer(status: StatusCode, html: String) -> Response {
    (
        status,
        [(header::CONTENT_SECURITY_POLICY, POLICY.clone())],
        Html(html),
    )
        .into_response()
}

/// A page whose middle comes in parts while they are made.
pub(super) fn answer_in_parts(
    status: StatusCode,
    before: String,
    parts: impl Stream<Item = String> + Send + 'static,
    after: String,
) -> Response {
    let all = stream::once(std::future::ready(before))
        .chain(parts)
        .chain(stream::once(std::future::ready(after)));
    let headers = [
        (header::CONTENT_SECURITY_POLICY, POLICY.clone()),
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        ),
    ];
    let body = Body::from_stream(all.map(Ok::<_, Infallible>));
    (status, headers, body).into_response()
}

/// What stands around a page for who looks at it.
pub(super) fn chrome(who: &Who, place: Place) -> Chrome {
    let is_stale = who.session.is_some() && !who.is_fresh && who.may_anywhere(Right::Administer);
    let prove = match place {
        Place::Settings(section) if is_stale && section.asks_for_fresh() => {
            Some(app::links::with_query("/prove", [("next", section.path())]))
        }
        _ => None,
    };
    Chrome {
        prove,
        name: who.name().to_owned(),
        is_admin: who.may_anywhere(Right::Administer),
        may_audit: who.may_anywhere(Right::AuditRead),
        place,
        is_read_only: who.read_only,
        is_alerts_overdue: who.alerts_overdue,
    }
}

/// A page that who looks may not open, said as a page.
pub(super) fn forbidden(who: &Who, right: &str) -> Response {
    let html = page(
        &chrome(who, Place::Elsewhere),
        Page {
            title: "This page is not for your role".to_owned(),
            lead: None,
            content: app::forms::forbidden::forbidden(right),
        },
    );
    answer(StatusCode::FORBIDDEN, html)
}

/// A page in which one more script of ours runs.
pub(super) fn answer_with_script(status: StatusCode, html: String, script: &str) -> Response {
    let mut response = answer(status, html);
    let policy = policy(&[THEME, script]);
    response
        .headers_mut()
        .insert(header::CONTENT_SECURITY_POLICY, policy);
    response
}

static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| policy(&[THEME]));

fn policy(scripts: &[&str]) -> HeaderValue {
    let hash = |script: &&str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(script.as_bytes())));
    let hashes: Vec<String> = scripts.iter().map(hash).collect();
    let policy = format!(
        "default-src 'none'; script-src {}; style-src 'self'; img-src 'self'; font-src 'self'; form-action 'self'; \
         frame-ancestors 'none'; object-src 'none'; base-uri 'none'",
        hashes.join(" ")
    );
    // Base64 is always fit for a header; without the hash the page keeps the system's colours.
    HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'; style-src 'self'"))
}

/// What a browser is told beside the page.
pub(super) fn status_of(error: &IdentityError) -> StatusCode {
    match error {
        IdentityError::Invalid { .. } => StatusCode::UNPROCESSABLE_ENTITY,
        IdentityError::Exists { .. } | IdentityError::LastAdmin => StatusCode::CONFLICT,
        IdentityError::NotFound { .. } => StatusCode::NOT_FOUND,
        IdentityError::WrongPassword => StatusCode::UNAUTHORIZED,
        IdentityError::BadLink => StatusCode::GONE,
        IdentityError::TooManyGuesses { .. } | IdentityError::Busy { .. } => StatusCode::TOO_MANY_REQUESTS,
        IdentityError::NoChance | IdentityError::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// Also in a header when to try again, where that is known.
pub(super) fn with_retry_after(mut response: Response, error: &IdentityError) -> Response {
    if let Some(seconds) = error.retry_after_s() {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

/// For people: nothing of the store's own words, a capital at the start, a full stop at the end.
pub(super) fn sentence(error: &IdentityError) -> String {
    let text = match error {
        IdentityError::Store(_) => "the store of people is unavailable".to_owned(),
        other => other.to_string(),
    };
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(chars).collect::<String>() + "."
    })
}
