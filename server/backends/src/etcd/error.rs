//! Error of one call, and whether a retry can help.
//!
//! etcd's own messages are included; they name neither users nor passwords.

use etcd_client::Error;
use etcd_cluster::{GrpcCode, error_text};

use crate::BackendError;
use crate::error::misconfigured;

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
                GrpcCode::from(i32::from(status.code())),
                status.message(),
                &error_text(error),
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
                    error_text(error),
                    "Check `endpoints`, `ca_file`, `cert_file` and `key_file`.",
                ),
            ),
            _ => Self::new(
                EtcdErrorKind::Transport,
                BackendError::Protocol {
                    detail: error_text(error),
                },
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

fn by_message(code: GrpcCode, message: &str, chain: &str, timeout_ms: i64) -> EtcdError {
    let denied = |detail: &str, remedy: &str| BackendError::Denied {
        detail: detail.to_owned(),
        remedy: remedy.to_owned(),
    };
    let has = |part: &str| message.contains(part);
    if let Some(unavailable) = unavailable(message) {
        unavailable
    } else if has("authentication is not enabled") {
        EtcdError::new(
            EtcdErrorKind::AuthOff,
            misconfigured(
                "etcd has authentication off",
                "Remove `user`, or run `etcdctl auth enable`.",
            ),
        )
    } else if has("authentication failed") || has("user name not found") {
        let remedy = "Check `user` and `password`; `etcdctl user get NAME` shows whether the user exists.";
        EtcdError::new(
            EtcdErrorKind::Other,
            denied("etcd refused the user or the password", remedy),
        )
    } else if has("user name is empty") {
        let remedy =
            "Set `user` and `password`; docs/backends/etcd.md has the commands that create such a user.";
        EtcdError::new(
            EtcdErrorKind::LoginLost,
            denied("etcd requires a user and none was sent", remedy),
        )
    } else if code == GrpcCode::Unauthenticated
        || has("invalid auth token")
        || has("revision of auth store is old")
    {
        EtcdError::new(
            EtcdErrorKind::LoginLost,
            denied(message, "Check `user` and `password`."),
        )
    } else if code == GrpcCode::PermissionDenied || has("permission denied") {
        let remedy = "etcdctl role grant-permission leasehold-watch --prefix=true read PREFIX";
        EtcdError::new(EtcdErrorKind::Denied, denied(message, remedy))
    } else if has("has been compacted") {
        protocol(EtcdErrorKind::Compacted, message)
    } else if has("message length too large") || has("larger than max") {
        protocol(EtcdErrorKind::TooLarge, message)
    } else if code == GrpcCode::DeadlineExceeded || has("request timed out") {
        EtcdError::no_answer(timeout_ms)
    } else if code == GrpcCode::Unavailable || code == GrpcCode::Cancelled {
        EtcdError::new(
            EtcdErrorKind::Transport,
            BackendError::Unreachable {
                detail: chain.to_owned(),
            },
        )
    } else if code == GrpcCode::Unknown || code == GrpcCode::Internal {
        protocol(EtcdErrorKind::Transport, chain)
    } else {
        protocol(EtcdErrorKind::Other, chain)
    }
}

/// Errors of an etcd that answers and cannot serve, with the cause and the remedy.
fn unavailable(message: &str) -> Option<EtcdError> {
    let has = |part: &str| message.contains(part);
    let (kind, detail, remedy) = if has("no leader") || has("leader changed") {
        (
            EtcdErrorKind::Transport,
            "etcd has no leader now",
            "Check that a majority of etcd's members run and reach each other.",
        )
    } else if has("corrupt cluster") {
        (
            EtcdErrorKind::Other,
            "the data of etcd's members differ (alarm CORRUPT), and etcd accepts no writes",
            "`etcdctl alarm list` names the member. Restore its data from the others, then `etcdctl alarm disarm`.",
        )
    } else if has("too many requests") {
        (
            EtcdErrorKind::Other,
            "etcd is overloaded and refused the request (too many requests)",
            "Try again. If it persists, check the load and the disks of etcd's members.",
        )
    } else {
        return None;
    };
    let (detail, remedy) = (detail.to_owned(), remedy.to_owned());
    Some(EtcdError::new(kind, BackendError::Unavailable { detail, remedy }))
}

fn protocol(kind: EtcdErrorKind, detail: &str) -> EtcdError {
    let detail = detail.to_owned();
    EtcdError::new(kind, BackendError::Protocol { detail })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overloaded_or_corrupt_etcd_is_unavailable() {
        // The messages of etcd's server; both have status codes that are used for other errors too.
        for (message, part) in [
            ("etcdserver: too many requests", "overloaded"),
            ("etcdserver: corrupt cluster", "CORRUPT"),
        ] {
            let EtcdError { kind, error } = by_message(GrpcCode::Other, message, message, 1_000);
            assert_eq!(kind, EtcdErrorKind::Other);
            assert!(
                matches!(&error, BackendError::Unavailable { detail, .. } if detail.contains(part)),
                "{error:?}"
            );
        }
    }
}
