//! Error of one call, and what the status and text of an answer mean.

use reqwest::StatusCode;

use crate::BackendError;
use crate::error::misconfigured;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConsulErrorKind {
    /// Connection or agent: nothing is known of the request.
    Transport,
    Denied,
    /// The token was deleted, has expired, or never existed.
    UnknownToken,
    /// The ACL system is off.
    AclsOff,
    /// The agent does not know this path of the API.
    NotFound,
    Other,
}

#[derive(Debug, Clone)]
pub(super) struct ConsulError {
    pub(super) kind: ConsulErrorKind,
    pub(super) error: BackendError,
}

impl ConsulError {
    pub(super) fn new(kind: ConsulErrorKind, error: BackendError) -> Self {
        Self { kind, error }
    }

    pub(super) fn no_answer(after_ms: i64) -> Self {
        let after_ms = u64::try_from(after_ms).unwrap_or(0);
        Self::new(ConsulErrorKind::Transport, BackendError::NoAnswer { after_ms })
    }

    pub(super) fn protocol(detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Self::new(ConsulErrorKind::Other, BackendError::Protocol { detail })
    }

    /// reqwest's message names the URL, not the cause, which is in its sources.
    pub(super) fn from_error(error: &reqwest::Error) -> Self {
        let mut cause: &dyn std::error::Error = error;
        while let Some(next) = cause.source() {
            cause = next;
        }
        let detail = cause.to_string();
        let error = if error.is_connect() || error.is_timeout() || error.is_request() || error.is_body() {
            BackendError::Unreachable { detail }
        } else {
            BackendError::Protocol { detail }
        };
        Self::new(ConsulErrorKind::Transport, error)
    }

    pub(super) fn from_status(status: StatusCode, text: &str) -> Self {
        if let Some(known) = by_message(text) {
            return known;
        }
        let detail = or_status(text.trim(), status);
        if matches!(status, StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED) {
            let remedy = "Give the token the rules of docs/backends/consul.md.".to_owned();
            return Self::new(ConsulErrorKind::Denied, BackendError::Denied { detail, remedy });
        }
        let kind = match status {
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => ConsulErrorKind::NotFound,
            _ if status.is_server_error() => ConsulErrorKind::Transport,
            _ => ConsulErrorKind::Other,
        };
        Self::new(kind, BackendError::Protocol { detail })
    }
}

/// Errors that Consul distinguishes by their text only.
fn by_message(text: &str) -> Option<ConsulError> {
    let has = |part: &str| text.contains(part);
    let wrong = |kind, detail, remedy| Some(ConsulError::new(kind, misconfigured(detail, remedy)));
    if has("ACL support disabled") {
        let remedy = "Remove `token_file`, or turn ACLs on.";
        return wrong(ConsulErrorKind::AclsOff, "Consul's ACL system is off", remedy);
    }
    if has("ACL not found") {
        let denied = BackendError::Denied {
            detail: "Consul does not know this token".to_owned(),
            remedy: "Check `token_file`; `consul acl token read -self` shows whether the token exists."
                .to_owned(),
        };
        return Some(ConsulError::new(ConsulErrorKind::UnknownToken, denied));
    }
    if has("No path to datacenter") {
        let remedy = "Correct `datacenter`; `consul catalog datacenters` lists them.";
        return wrong(ConsulErrorKind::Other, "Consul knows no such datacenter", remedy);
    }
    if has("Namespaces are a Consul Enterprise feature") {
        let remedy = "Remove `namespace`: it is a feature of Consul Enterprise.";
        return wrong(ConsulErrorKind::Other, "this Consul has no namespaces", remedy);
    }
    if has("No cluster leader") || has("No known Consul servers") {
        let remedy = "Check that a majority of Consul's servers run and reach each other.";
        return wrong(ConsulErrorKind::Transport, "Consul has no leader now", remedy);
    }
    None
}

/// The first line of an answer, which may be a page of another server.
fn or_status(text: &str, status: StatusCode) -> String {
    let line: String = text
        .lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(200)
        .collect();
    if line.is_empty() {
        format!("the answer is HTTP {status}")
    } else {
        format!("HTTP {status}: {line}")
    }
}
