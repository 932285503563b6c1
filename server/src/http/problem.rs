//! Errors on the wire: RFC 9457 `application/problem+json` with a stable code, a sentence, a request id.
//!
//! **Invariant:** one `match` without wildcard maps the console's errors; no internal text reaches the wire.

use app::console::ConsoleError;
use axum::body::Body;
use axum::http::{HeaderMap, Response, StatusCode, header};
use axum::response::IntoResponse;
use serde::Serialize;
use utoipa::ToSchema;

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
    request_id: String,
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
            request_id: String::new(),
        }
    }

    #[must_use]
    pub fn with_request_id(mut self, headers: &HeaderMap) -> Self {
        let id = headers.get("x-request-id").and_then(|id| id.to_str().ok());
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
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response<Body> {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let kind = [(header::CONTENT_TYPE, "application/problem+json")];
        (status, kind, axum::Json(self).into_response().into_body()).into_response()
    }
}

pub(super) async fn no_such_route(headers: HeaderMap, uri: axum::http::Uri) -> Problem {
    let detail = format!(
        "There is no {} here; /v1/openapi.json lists what there is",
        uri.path()
    );
    Problem::new(StatusCode::NOT_FOUND, "no_such_route", detail).with_request_id(&headers)
}

pub(super) async fn no_such_method(headers: HeaderMap, method: axum::http::Method) -> Problem {
    let detail = format!("{method} is not possible here; /v1/openapi.json lists what is");
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "no_such_method", detail).with_request_id(&headers)
}

/// A bug: said in the log by the panic hook, and without details to the caller.
pub(super) fn from_panic(_: Box<dyn std::any::Any + Send + 'static>) -> Response<Body> {
    Problem::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "internal",
        "This is a bug of Leasehold; the log tells more",
    )
    .into_response()
}
