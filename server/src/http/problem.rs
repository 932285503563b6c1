//! Errors on the wire: RFC 9457 `application/problem+json` with a stable code, a sentence, a request id.
//!
//! **Invariant:** one `match` without wildcard maps the console's errors; no internal text reaches the wire.

use app::console::ConsoleError;
use axum::body::Body;
use axum::http::{HeaderMap, Response, StatusCode, header};
use axum::response::IntoResponse;
use domain::lease::How;
use domain::lease::limits::BODY_BYTES_MAX;
use serde::Serialize;
use utoipa::ToSchema;

use super::REQUEST_ID;
use super::lease::body::BodyError;
use super::wire::unlock::HoldingWire;
use crate::lease::LeaseError;

/// RFC 9457 problem details.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// `about:blank`: the code says which problem it is.
    #[serde(rename = "type")]
    kind: &'static str,
    title: &'static str,
    status: u16,
    /// Stable: branch on this.
    code: &'static str,
    detail: String,
    /// The parameter at fault, when there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    /// Sources that hold the name, with code `ambiguous_source`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sources: Vec<String>,
    /// Who revoked the lease, why, and under which record; with code `revoked`.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audit_id: Option<String>,
    /// What is left of a lease that cannot live longer; with code `lifetime_reached`.
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining_ms: Option<i64>,
    /// Whose holding an operator looked at, and whose it is now; with code `holder_changed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<Box<HoldingWire>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    now: Option<Box<HoldingWire>>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    mend: Option<String>,
    request_id: String,
    /// Goes into `Retry-After`, in seconds.
    #[serde(skip)]
    retry_after_s: Option<u32>,
}

impl Problem {
    fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self {
            kind: "about:blank",
            title: status.canonical_reason().unwrap_or("Problem"),
            status: status.as_u16(),
            code,
            detail: detail.into(),
            field: None,
            sources: Vec::new(),
            by: None,
            reason: None,
            audit_id: None,
            remaining_ms: None,
            before: None,
            now: None,
            mend: None,
            request_id: String::new(),
            retry_after_s: None,
        }
    }

    pub(super) fn status(&self) -> u16 {
        self.status
    }

    pub(super) fn unlock(status: StatusCode, code: &'static str, detail: &str) -> Self {
        let mut chars = detail.chars();
        let first = chars.next().map(|first| first.to_uppercase().collect::<String>());
        Self::new(status, code, first.unwrap_or_default() + chars.as_str())
    }

    pub(super) fn with_field(self, field: &str) -> Self {
        Self {
            field: Some(field.to_owned()),
            ..self
        }
    }

    pub(super) fn with_sources(self, sources: &[domain::names::Source]) -> Self {
        Self {
            sources: sources.iter().map(ToString::to_string).collect(),
            ..self
        }
    }

    pub(super) fn with_holders(self, before: Option<HoldingWire>, now: Option<HoldingWire>) -> Self {
        Self {
            before: before.map(Box::new),
            now: now.map(Box::new),
            ..self
        }
    }

    pub(super) fn with_mend(self, mend: Option<String>) -> Self {
        Self { mend, ..self }
    }

    pub(super) fn unauthenticated(detail: &str) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthenticated", sentence(detail))
    }

    /// A session that authenticated too long ago for what it asks.
    pub(super) fn needs_reauthentication() -> Self {
        let detail = "this change needs authentication within the last 15 minutes";
        Self::unlock(StatusCode::FORBIDDEN, "needs_reauthentication", detail).with_mend(Some(
            "Give your password at /prove, or sign in again, and send it once more.".to_owned(),
        ))
    }

    pub(super) fn forbidden(detail: String) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", detail)
    }

    pub(super) fn needs_https(home: &str) -> Self {
        let mend = Some(format!("Use {home}."));
        let detail = "This came in clear, neither by HTTPS nor through a declared proxy: nothing was done";
        Self::new(StatusCode::FORBIDDEN, "needs_https", detail).with_mend(mend)
    }

    /// It was sent to a name that is not one of this server's.
    pub(super) fn misdirected(home: &str) -> Self {
        let mend =
            format!("Use {home}, or add this name to allowed_hosts in the configuration of the server.");
        let detail = "This server does not answer requests for this host: nothing was done";
        Self::new(StatusCode::MISDIRECTED_REQUEST, "misdirected", detail).with_mend(Some(mend))
    }

    pub(super) fn not_found(detail: String) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", sentence(&detail))
    }

    pub(super) fn conflict(code: &'static str, detail: String) -> Self {
        Self::new(StatusCode::CONFLICT, code, sentence(&detail))
    }

    pub(super) fn invalid(field: &str, detail: String) -> Self {
        Self {
            field: Some(field.to_owned()),
            ..Self::new(StatusCode::BAD_REQUEST, "invalid", detail)
        }
    }

    pub(super) fn too_many(code: &'static str, detail: String, wait_s: u64) -> Self {
        Self {
            retry_after_s: Some(u32::try_from(wait_s).unwrap_or(u32::MAX)),
            ..Self::new(StatusCode::TOO_MANY_REQUESTS, code, sentence(&detail))
        }
    }

    pub(super) fn too_many_streams(max: usize) -> Self {
        Self {
            retry_after_s: Some(5),
            ..Self::new(
                StatusCode::TOO_MANY_REQUESTS,
                "too_many_streams",
                format!("You have {max} event streams open already, which is the most"),
            )
        }
    }

    pub(super) fn store_unavailable() -> Self {
        Self {
            retry_after_s: Some(1),
            ..Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "store_unavailable",
                "The console's store is unavailable: nothing was done",
            )
        }
    }

    pub(super) fn no_such_route(uri: &axum::http::Uri) -> Self {
        let detail = format!(
            "There is no {} here; /v1/openapi.json lists what there is",
            uri.path()
        );
        Self::new(StatusCode::NOT_FOUND, "no_such_route", detail)
    }

    pub(super) fn no_such_method(method: &axum::http::Method) -> Self {
        let detail = format!("{method} is not possible here; /v1/openapi.json lists what is");
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "no_such_method", detail)
    }

    #[must_use]
    pub fn with_request_id(mut self, headers: &HeaderMap) -> Self {
        let id = headers.get(&REQUEST_ID).and_then(|id| id.to_str().ok());
        id.unwrap_or_default().clone_into(&mut self.request_id);
        self
    }
}

impl From<ConsoleError> for Problem {
    fn from(error: ConsoleError) -> Self {
        match error {
            ConsoleError::BadQuery(bad) => Self {
                field: Some(bad.field.clone()),
                ..Self::new(StatusCode::BAD_REQUEST, "invalid_parameter", bad.to_string())
            },
            ConsoleError::NotFound { what } => Self::new(StatusCode::NOT_FOUND, "not_found", what),
            ConsoleError::Ambiguous { sources } => Self {
                sources: sources.iter().map(ToString::to_string).collect(),
                ..Self::new(
                    StatusCode::CONFLICT,
                    "ambiguous_source",
                    "Several sources of this backend hold the name; say which with ?source=",
                )
            },
            ConsoleError::Busy { retry_after_s } => Self {
                retry_after_s: Some(retry_after_s),
                mend: Some("Ask again later, or narrow the search with a prefix.".to_owned()),
                ..Self::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "overloaded",
                    "As many searches run as this server takes at once",
                )
            },
        }
    }
}

impl From<LeaseError> for Problem {
    fn from(error: LeaseError) -> Self {
        let text = error.to_string();
        let plain = |status, code| Self::new(status, code, sentence(&text));
        let later = |code| Self {
            retry_after_s: Some(1),
            ..plain(StatusCode::SERVICE_UNAVAILABLE, code)
        };
        match error {
            LeaseError::Invalid(invalid) => Self {
                field: Some(invalid.field),
                ..plain(StatusCode::BAD_REQUEST, "invalid")
            },
            LeaseError::OutOfScope => plain(StatusCode::FORBIDDEN, "out_of_scope"),
            LeaseError::Reserved => Self {
                field: Some("resource".to_owned()),
                ..plain(StatusCode::BAD_REQUEST, "reserved")
            },
            LeaseError::NotFound => plain(StatusCode::NOT_FOUND, "not_found"),
            LeaseError::KeyReused => Self {
                field: Some("Idempotency-Key".to_owned()),
                ..plain(StatusCode::CONFLICT, "idempotency_key_reused")
            },
            LeaseError::Lost(How::Revoked(revocation)) => Self {
                by: Some(revocation.by.to_string()),
                reason: Some(revocation.reason.to_string()),
                audit_id: Some(revocation.audit_id.to_string()),
                ..plain(StatusCode::GONE, "revoked")
            },
            LeaseError::Lost(how @ (How::Released | How::Expired)) => {
                let detail = match how {
                    How::Released => "This lease was released",
                    _ => "This lease ran out",
                };
                Self::new(StatusCode::GONE, how.wire(), detail)
            }
            LeaseError::LifetimeReached { remaining_ms } => Self {
                remaining_ms: Some(remaining_ms),
                ..plain(StatusCode::CONFLICT, "lifetime_reached")
            },
            LeaseError::Unavailable => later("store_unavailable"),
            LeaseError::Overloaded => later("overloaded"),
            LeaseError::ShuttingDown => later("shutting_down"),
            LeaseError::Broken => plain(StatusCode::INTERNAL_SERVER_ERROR, "internal"),
        }
    }
}

impl From<BodyError> for Problem {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::Invalid(invalid) => LeaseError::Invalid(invalid).into(),
            BodyError::TooLarge => Self {
                field: Some("body".to_owned()),
                ..Self::new(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    "body_too_large",
                    format!("The body may have at most {BODY_BYTES_MAX} bytes"),
                )
            },
            BodyError::NotJson => Self {
                field: Some("Content-Type".to_owned()),
                ..Self::new(
                    StatusCode::UNSUPPORTED_MEDIA_TYPE,
                    "unsupported_media_type",
                    "The body must be application/json",
                )
            },
        }
    }
}

/// With a capital at its start, unless that is a field's name.
fn sentence(text: &str) -> String {
    match text.split_once(' ') {
        Some(("the", rest)) => format!("The {rest}"),
        Some(("this", rest)) => format!("This {rest}"),
        Some(("there", rest)) => format!("There {rest}"),
        _ => text.to_owned(),
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response<Body> {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let kind = [(header::CONTENT_TYPE, "application/problem+json")];
        let retry_after = self.retry_after_s;
        let mut response = (status, kind, axum::Json(self).into_response().into_body()).into_response();
        if let Some(seconds) = retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}

pub(super) async fn no_such_route(headers: HeaderMap, uri: axum::http::Uri) -> Problem {
    Problem::no_such_route(&uri).with_request_id(&headers)
}

pub(super) async fn no_such_method(headers: HeaderMap, method: axum::http::Method) -> Problem {
    Problem::no_such_method(&method).with_request_id(&headers)
}

/// A bug: said in the log by the panic hook, and without details to the caller.
pub(super) fn from_panic(_: Box<dyn std::any::Any + Send + 'static>) -> Response<Body> {
    let problem = Problem::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "internal",
        "This is a bug of Leasehold; the log tells more",
    );
    super::settled(problem.into_response())
}
