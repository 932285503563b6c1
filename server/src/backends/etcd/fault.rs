//! What went wrong in one call, in our words, and whether trying again can help.
//!
//! etcd's own messages are kept; they name neither users nor passwords.

use etcd_client::Error;

use super::settings::misconfigured;
use crate::backends::BackendError;

/// gRPC status codes by number: the crate that names them is not a dependency of ours.
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
pub(super) enum Kind {
    /// The connection or the member: another endpoint or a new connection may do better.
    Transport,
    /// The login was lost (a restart forgets simple tokens) or is missing: log in again.
    LoginLost,
    /// We tried to log in and etcd has authentication off.
    AuthOff,
    Denied,
    /// The revision asked for is no longer kept.
    Compacted,
    /// The answer was larger than we take at once.
    TooLarge,
    Other,
}

#[derive(Debug, Clone)]
pub(super) struct Fault {
    pub(super) kind: Kind,
    pub(super) error: BackendError,
}

impl Fault {
    pub(super) fn no_answer(after_ms: i64) -> Self {
        let after_ms = u64::try_from(after_ms).unwrap_or(0);
        Self {
            kind: Kind::Transport,
            error: BackendError::NoAnswer { after_ms },
        }
    }

    fn new(kind: Kind, error: BackendError) -> Self {
        Self { kind, error }
    }

    pub(super) fn of(error: &Error, timeout_ms: i64) -> Self {
        match error {
            Error::GRpcStatus(status) => by_message(
                i32::from(status.code()),
                status.message(),
                &of_status(status.message(), status),
                timeout_ms,
            ),
            Error::InvalidArgs(_) | Error::InvalidUri(_) | Error::InvalidMetadataValue(_) => Self::new(
                Kind::Other,
                misconfigured(error.to_string(), "Check the settings of this backend."),
            ),
            // Only made while the endpoint and its TLS settings are read.
            Error::TransportError(_) => Self::new(
                Kind::Other,
                misconfigured(
                    chain(error),
                    "Check `endpoints`, `ca_file`, `cert_file` and `key_file`.",
                ),
            ),
            _ => Self::new(Kind::Transport, BackendError::Protocol { detail: chain(error) }),
        }
    }

    /// A refusal that names what was asked for and the command that grants it.
    pub(super) fn on_prefix(self, prefix: &[u8]) -> Self {
        if self.kind != Kind::Denied {
            return self;
        }
        let prefix = domain::escape::text(prefix);
        Self::new(
            Kind::Denied,
            BackendError::Denied {
                detail: format!("etcd does not let this account read the keys below {prefix}"),
                mend: format!("etcdctl role grant-permission leasehold-watch --prefix=true read '{prefix}'"),
            },
        )
    }
}

fn by_message(code: i32, message: &str, chain: &str, timeout_ms: i64) -> Fault {
    let denied = |detail: &str, mend: &str| BackendError::Denied {
        detail: detail.to_owned(),
        mend: mend.to_owned(),
    };
    let has = |part: &str| message.contains(part);
    if has("authentication is not enabled") {
        Fault::new(
            Kind::AuthOff,
            misconfigured("etcd has authentication off", "Remove `user`, or enable it."),
        )
    } else if has("authentication failed") || has("user name not found") {
        let mend = "Check `user` and `password`; `etcdctl user get NAME` tells whether the user exists.";
        Fault::new(Kind::Other, denied("etcd refused the user or the password", mend))
    } else if has("user name is empty") {
        let mend = "Set `user` and `password`; docs/backends/etcd.md has the commands that make such a user.";
        Fault::new(
            Kind::LoginLost,
            denied("etcd wants a user and none was sent", mend),
        )
    } else if code == code::UNAUTHENTICATED
        || has("invalid auth token")
        || has("revision of auth store is old")
    {
        Fault::new(Kind::LoginLost, denied(message, "Check `user` and `password`."))
    } else if code == code::PERMISSION_DENIED || has("permission denied") {
        let mend = "etcdctl role grant-permission leasehold-watch --prefix=true read PREFIX";
        Fault::new(Kind::Denied, denied(message, mend))
    } else if has("has been compacted") {
        Fault::new(
            Kind::Compacted,
            BackendError::Protocol {
                detail: message.to_owned(),
            },
        )
    } else if has("message length too large") || has("larger than max") {
        Fault::new(
            Kind::TooLarge,
            BackendError::Protocol {
                detail: message.to_owned(),
            },
        )
    } else if has("no leader") || has("leader changed") {
        let mend = "Check that a majority of etcd's members run and reach each other.";
        Fault::new(Kind::Transport, misconfigured("etcd has no leader now", mend))
    } else if code == code::DEADLINE_EXCEEDED || has("request timed out") {
        Fault::no_answer(timeout_ms)
    } else if code == code::UNAVAILABLE || code == code::CANCELLED {
        Fault::new(
            Kind::Transport,
            BackendError::Unreachable {
                detail: chain.to_owned(),
            },
        )
    } else if code == code::UNKNOWN || code == code::INTERNAL {
        Fault::new(
            Kind::Transport,
            BackendError::Protocol {
                detail: chain.to_owned(),
            },
        )
    } else {
        Fault::new(
            Kind::Other,
            BackendError::Protocol {
                detail: chain.to_owned(),
            },
        )
    }
}

/// The message and the innermost cause, which says what happened ("Connection refused") where the message says
/// "transport error". A status itself prints like a debugger.
fn of_status(message: &str, status: &dyn std::error::Error) -> String {
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
