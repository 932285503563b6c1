//! Errors on the wire: RFC 9457 `application/problem+json` with a stable code, a sentence, a request id.
//!
//! **Invariant:** one `match` without wildcard maps the console's errors; no internal text reaches the wire.

mod remedies;

use app::console::ConsoleError;
use axum::body::Body;
use axum::http::{HeaderMap, Response, StatusCode, header};
use axum::response::IntoResponse;
use domain::lease::EndCause;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::REQUEST_ID;
use crate::http::dto::unlock::HoldingDto;
use crate::http::json_body::BodyError;
use lease::LeaseError;

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
    /// Every field at fault, when there are several; `field` is the first of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<FieldErrorDto>,
    /// Sources that hold the name, with code `ambiguous_source`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sources: Vec<String>,
    /// Who revoked the lease, the reason and the audit entry; with code `revoked`.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audit_id: Option<String>,
    /// Time left of a lease at its maximum lifetime; with code `lifetime_reached`.
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining_ms: Option<i64>,
    /// The reviewed and the present holder; with code `holder_changed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<Box<HoldingDto>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    now: Option<Box<HoldingDto>>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
    request_id: String,
    /// Goes into `Retry-After`, in seconds.
    #[serde(skip)]
    retry_after_s: Option<u32>,
}

/// One of several fields at fault.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(title = "FieldError")]
pub struct FieldErrorDto {
    field: String,
    /// Continues the name of the field.
    detail: String,
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
            errors: Vec::new(),
            sources: Vec::new(),
            by: None,
            reason: None,
            audit_id: None,
            remaining_ms: None,
            before: None,
            now: None,
            remedy: remedies::find_remedy(code).map(str::to_owned),
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

    /// Lists the invalid fields with their errors, if there is more than one.
    pub(super) fn with_errors(self, errors: impl IntoIterator<Item = (String, String)>) -> Self {
        let errors = errors.into_iter();
        let mut errors: Vec<_> = errors
            .map(|(field, detail)| FieldErrorDto { field, detail })
            .collect();
        if errors.len() < 2 {
            errors.clear();
        }
        Self { errors, ..self }
    }

    pub(super) fn with_sources(self, sources: &[domain::names::Source]) -> Self {
        Self {
            sources: sources.iter().map(ToString::to_string).collect(),
            ..self
        }
    }

    pub(super) fn with_holders(self, before: Option<HoldingDto>, now: Option<HoldingDto>) -> Self {
        Self {
            before: before.map(Box::new),
            now: now.map(Box::new),
            ..self
        }
    }

    pub(super) fn with_remedy(self, remedy: Option<String>) -> Self {
        Self { remedy, ..self }
    }

    pub(super) fn unauthenticated(detail: &str) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthenticated", sentence(detail))
    }

    /// A session that authenticated too long ago for what it asks.
    pub(super) fn needs_reauthentication() -> Self {
        let detail = "this change needs authentication within the last 15 minutes";
        Self::unlock(StatusCode::FORBIDDEN, "needs_reauthentication", detail).with_remedy(Some(
            "Enter your password at /prove or sign in again, then repeat the request.".to_owned(),
        ))
    }

    pub(super) fn forbidden(detail: String) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", detail)
    }

    pub(super) fn needs_https(home: &str) -> Self {
        let remedy = Some(format!("Use {home}."));
        let detail =
            "Nothing was changed: the request came by plain HTTP, not by HTTPS or through a declared proxy";
        Self::new(StatusCode::FORBIDDEN, "needs_https", detail).with_remedy(remedy)
    }

    /// It was sent to a name that is not one of this server's.
    pub(super) fn misdirected(home: &str) -> Self {
        let remedy =
            format!("Use {home}, or add this name to allowed_hosts in the configuration of the server.");
        let detail = "Nothing was changed: this server does not answer requests for this host";
        Self::new(StatusCode::MISDIRECTED_REQUEST, "misdirected", detail).with_remedy(Some(remedy))
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
                format!("You have {max} event streams open, which is the limit; close one first"),
            )
        }
    }

    pub(super) fn store_unavailable() -> Self {
        Self {
            retry_after_s: Some(1),
            ..Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "store_unavailable",
                "The console's store is unavailable: nothing was changed",
            )
        }
    }

    pub(super) fn no_such_route(uri: &axum::http::Uri) -> Self {
        let detail = format!(
            "No resource has the path {}; /v1/openapi.json lists all paths",
            uri.path()
        );
        Self::new(StatusCode::NOT_FOUND, "no_such_route", detail)
    }

    pub(super) fn no_such_method(method: &axum::http::Method) -> Self {
        let detail = format!("{method} is not allowed here; /v1/openapi.json lists the methods");
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
                    "Several sources of this backend hold the name; set ?source=",
                )
            },
            ConsoleError::Busy { retry_after_s } => Self {
                retry_after_s: Some(retry_after_s),
                remedy: Some("Retry after the seconds in Retry-After, or narrow the search.".to_owned()),
                ..Self::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "overloaded",
                    "The limit of concurrent searches is reached",
                )
            },
            ConsoleError::Forbidden { permission } => Self::forbidden(format!(
                "This needs the permission `{permission}`; an admin can grant it"
            )),
            ConsoleError::Unavailable { what } => Self {
                retry_after_s: Some(1),
                ..Self::new(StatusCode::SERVICE_UNAVAILABLE, "store_unavailable", what)
            },
            ConsoleError::Unread { what } => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "backend_stale", what)
            }
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
            LeaseError::Lost(EndCause::Revoked(revocation)) => Self {
                by: Some(revocation.by.to_string()),
                reason: Some(revocation.reason.to_string()),
                audit_id: Some(revocation.audit_id.to_string()),
                ..plain(StatusCode::GONE, "revoked")
            },
            LeaseError::Lost(how @ (EndCause::Released | EndCause::Expired)) => {
                let detail = match how {
                    EndCause::Released => "This lease was released",
                    _ => "This lease expired",
                };
                Self::new(StatusCode::GONE, how.as_str(), detail)
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
            BodyError::Invalid(errors) => {
                let detail = errors
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join("; ");
                let first = errors.first().map_or("body", |first| &first.field);
                Self::invalid(first, detail)
                    .with_errors(errors.into_iter().map(|error| (error.field, error.message)))
            }
            BodyError::TooLarge { bytes_max } => Self {
                field: Some("body".to_owned()),
                ..Self::new(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    "body_too_large",
                    format!("The body may have at most {bytes_max} bytes"),
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

/// A bug. The panic hook logs it; the caller gets no details.
pub(super) fn from_panic(_: Box<dyn std::any::Any + Send + 'static>) -> Response<Body> {
    let problem = Problem::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "internal",
        "This is a bug in Leasehold; the server's log has the cause",
    );
    super::security_headers::add(problem.into_response())
}
