//! Failure of one call to etcd, and whether another member can help.

use etcd_client::Error;
use etcd_cluster::GrpcCode;

use super::connection::REPLY_TIMEOUT;
use crate::store::StoreError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EtcdErrorKind {
    /// Another member, connection or moment may succeed. The outcome of the call is unknown.
    Unavailable,
    /// The etcd lease of this replica is gone.
    NoLease,
    /// The account lacks a right, or the login is wrong.
    Denied,
    /// The quota of the database is exhausted.
    NoSpace,
    /// The requested revision has been compacted.
    Compacted,
    Refused,
}

#[derive(Debug, Clone)]
pub(super) struct EtcdError {
    pub(super) kind: EtcdErrorKind,
    pub(super) text: String,
}

impl EtcdError {
    pub(super) fn no_answer() -> Self {
        Self {
            kind: EtcdErrorKind::Unavailable,
            text: format!("no answer within {} ms", REPLY_TIMEOUT.as_millis()),
        }
    }
}

impl From<Error> for EtcdError {
    fn from(error: Error) -> Self {
        let (kind, text) = match &error {
            Error::GRpcStatus(status) => (
                classify(GrpcCode::from(i32::from(status.code())), status.message()),
                status.message().to_owned(),
            ),
            Error::LeaseKeepAliveError(_) => (EtcdErrorKind::NoLease, error.to_string()),
            Error::InvalidArgs(_) | Error::InvalidUri(_) | Error::InvalidMetadataValue(_) => {
                (EtcdErrorKind::Refused, error.to_string())
            }
            _ => (EtcdErrorKind::Unavailable, error.to_string()),
        };
        Self { kind, text }
    }
}

fn classify(code: GrpcCode, message: &str) -> EtcdErrorKind {
    let has = |part: &str| message.contains(part);
    if has("database space exceeded") {
        EtcdErrorKind::NoSpace
    } else if has("requested lease not found") {
        EtcdErrorKind::NoLease
    } else if has("has been compacted") {
        EtcdErrorKind::Compacted
    } else if has("authentication failed")
        || has("user name is empty")
        || has("authentication is not enabled")
    {
        EtcdErrorKind::Denied
    } else if has("too many requests") || has("message length too large") {
        // An answer that is too large comes after the commit.
        EtcdErrorKind::Unavailable
    } else if has("invalid auth token")
        || has("revision of auth store is old")
        || code == GrpcCode::Unauthenticated
    {
        // Log in again.
        EtcdErrorKind::Unavailable
    } else if code == GrpcCode::PermissionDenied || has("permission denied") {
        EtcdErrorKind::Denied
    } else if matches!(
        code,
        GrpcCode::Cancelled
            | GrpcCode::Unknown
            | GrpcCode::DeadlineExceeded
            | GrpcCode::Internal
            | GrpcCode::Unavailable
    ) {
        EtcdErrorKind::Unavailable
    } else {
        EtcdErrorKind::Refused
    }
}

impl From<EtcdError> for StoreError {
    fn from(fault: EtcdError) -> Self {
        Self::Etcd(fault.text)
    }
}
