//! Error of one call, and whether a retry can help.
//!
//! etcd's own messages are included; they name neither users nor passwords.

use etcd_client::Error;

use crate::BackendError;
use crate::error::misconfigured;

/// gRPC status codes by number: the crate that names them is not a direct dependency.
mod code {
    pub(super) const CANCELLED: i32 = 1;
    pub(super) const UNKNOWN: i32 = 2;
    pub(super) const DEADLINE_EXCEEDED: i32 = 4;
    pub(super) const PERMISSION_DENIED: i32 = 7;
    pub(super) const INTERNAL: i32 = 13;
    pub(super) const UNAVAILABLE: i32 = 14;
    pub(super) const UNAUTHENTICATED: i32 = 16;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EtcdErrorKind {
    /// Connection or member: another endpoint or a new connection may work.
    Transport,
    /// The login was lost (a restart drops simple tokens) or is missing: log in again.
    LoginLost,
    /// Login failed because etcd has authentication off.
    AuthOff,
    Denied,
    /// The requested revision has been compacted.
    Compacted,
    /// The response exceeds the size limit.
    TooLarge,
    Other,
}

#[derive(Debug, Clone)]
pub(super) struct EtcdError {
    pub(super) kind: EtcdErrorKind,
    pub(super) error: BackendError,
}

impl EtcdError {
    pub(super) fn no_answer(after_ms: i64) -> Self {
        let after_ms = u64::try_from(after_ms).unwrap_or(0);
        Self {
            kind: EtcdErrorKind::Transport,
            error: BackendError::NoAnswer { after_ms },
        }
    }

    fn new(kind: EtcdErrorKind, error: BackendError) -> Self {
        Self { kind, error }
    }

    pub(super) fn from_error(error: &Error, timeout_ms: i64) -> Self {
        match error {
            Error::GRpcStatus(status) => by_message(
                i32::from(status.code()),
                status.message(),
                &status_text(status.message(), status),
                timeout_ms,
            ),
            Error::InvalidArgs(_) | Error::InvalidUri(_) | Error::InvalidMetadataValue(_) => Self::new(
                EtcdErrorKind::Other,
                misconfigured(error.to_string(), "Check the settings of this backend."),
            ),
            // Only occurs while the endpoint and its TLS settings are parsed.
            Error::TransportError(_) => Self::new(
                EtcdErrorKind::Other,
                misconfigured(
                    chain(error),
                    "Check `endpoints`, `ca_file`, `cert_file` and `key_file`.",
                ),
            ),
            _ => Self::new(
                EtcdErrorKind::Transport,
                BackendError::Protocol { detail: chain(error) },
            ),
        }
    }

    /// A permission error with the requested prefix and the command that grants it.
    pub(super) fn on_prefix(self, prefix: &[u8]) -> Self {
        if self.kind != EtcdErrorKind::Denied {
            return self;
        }
        let prefix = domain::escape::text(prefix);
        Self::new(
            EtcdErrorKind::Denied,
            BackendError::Denied {
                detail: format!("etcd does not let this account read the keys below {prefix}"),
                remedy: format!(
                    "etcdctl role grant-permission leasehold-watch --prefix=true read '{prefix}'"
                ),
            },
        )
    }
}

fn by_message(code: i32, message: &str, chain: &str, timeout_ms: i64) -> EtcdError {
    let denied = |detail: &str, remedy: &str| BackendError::Denied {
        detail: detail.to_owned(),
        remedy: remedy.to_owned(),
    };
    let has = |part: &str| message.contains(part);
    if has("authentication is not enabled") {
        EtcdError::new(
            EtcdErrorKind::AuthOff,
            misconfigured("etcd has authentication off", "Remove `user`, or enable it."),
        )
    } else if has("authentication failed") || has("user name not found") {
        let remedy = "Check `user` and `password`; `etcdctl user get NAME` shows whether the user exists.";
        EtcdError::new(
            EtcdErrorKind::Other,
            denied("etcd refused the user or the password", remedy),
        )
    } else if has("user name is empty") {
        let remedy =
            "Set `user` and `password`; docs/backends/etcd.md has the commands that make such a user.";
        EtcdError::new(
            EtcdErrorKind::LoginLost,
            denied("etcd requires a user and none was sent", remedy),
        )
    } else if code == code::UNAUTHENTICATED
        || has("invalid auth token")
        || has("revision of auth store is old")
    {
        EtcdError::new(
            EtcdErrorKind::LoginLost,
            denied(message, "Check `user` and `password`."),
        )
    } else if code == code::PERMISSION_DENIED || has("permission denied") {
        let remedy = "etcdctl role grant-permission leasehold-watch --prefix=true read PREFIX";
        EtcdError::new(EtcdErrorKind::Denied, denied(message, remedy))
    } else if has("has been compacted") {
        protocol(EtcdErrorKind::Compacted, message)
    } else if has("message length too large") || has("larger than max") {
        protocol(EtcdErrorKind::TooLarge, message)
    } else if has("no leader") || has("leader changed") {
        let remedy = "Check that a majority of etcd's members run and reach each other.";
        EtcdError::new(
            EtcdErrorKind::Transport,
            misconfigured("etcd has no leader now", remedy),
        )
    } else if code == code::DEADLINE_EXCEEDED || has("request timed out") {
        EtcdError::no_answer(timeout_ms)
    } else if code == code::UNAVAILABLE || code == code::CANCELLED {
        EtcdError::new(
            EtcdErrorKind::Transport,
            BackendError::Unreachable {
                detail: chain.to_owned(),
            },
        )
    } else if code == code::UNKNOWN || code == code::INTERNAL {
        protocol(EtcdErrorKind::Transport, chain)
    } else {
        protocol(EtcdErrorKind::Other, chain)
    }
}

fn protocol(kind: EtcdErrorKind, detail: &str) -> EtcdError {
    let detail = detail.to_owned();
    EtcdError::new(kind, BackendError::Protocol { detail })
}

/// The message and the innermost cause, which has the detail ("Connection refused") where the
/// message is "transport error". The status' own `Display` is debug output.
fn status_text(message: &str, status: &dyn std::error::Error) -> String {
    let Some(mut cause) = status.source() else {
        return message.to_owned();
    };
    while let Some(next) = cause.source() {
        cause = next;
    }
    let cause = cause.to_string();
    if message.contains(&cause) {
        message.to_owned()
    } else {
        format!("{message}: {cause}")
    }
}

/// The two innermost causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut causes: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(cause) = next {
        let text = cause.to_string();
        if !causes.iter().any(|known| known.contains(&text)) {
            causes.push(text);
        }
        next = cause.source();
    }
    let skipped = causes.len().saturating_sub(2);
    causes[skipped..].join(": ")
}
