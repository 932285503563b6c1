//! Converts Redis errors, each with its remedy. Details come from the server and the system;
//! none contains credentials.

use std::time::Duration;

use ::redis::{ErrorKind, RedisError, ServerError, ServerErrorKind};
use config::redis::RedisMode;
use domain::duration::millis;

use super::connection_config::Target;
use super::reply_filter::UNREADABLE;
use crate::BackendError;

const LOGIN_REMEDY: &str = "Check `user` and `password` (or `password_file`) of this backend; docs/backends/redis.md has \
    the account to create.";
const GRANT_REMEDY: &str = "Grant it with ACL SETUSER: docs/backends/redis.md has the whole line.";
const TLS_REMEDY: &str =
    "Check `ca_file`, `server_name`, `cert_file` and `key_file`, and that this port speaks TLS.";

/// Codes of a server that answers and cannot serve, with their remedies.
const UNAVAILABLE: [(&str, &str); 8] = [
    (
        "LOADING",
        "Wait until the server has loaded its data; its log shows the progress.",
    ),
    (
        "MASTERDOWN",
        "Restore the replica's link to its master, or name the master in this backend's addresses.",
    ),
    (
        "CLUSTERDOWN",
        "`redis-cli --cluster check HOST:PORT` shows the slots that no master serves; start their masters.",
    ),
    (
        "READONLY",
        "Name the master in `urls` and `unlock_url`: this server is a replica.",
    ),
    (
        "MISCONF",
        "The server accepts no writes while it cannot save its data: free its disk; its log has the cause.",
    ),
    (
        "OOM",
        "The server is at its memory limit: raise `maxmemory` or delete other data.",
    ),
    (
        "NOREPLICAS",
        "Restore the replicas: the server's `min-replicas-to-write` requires them for each write.",
    ),
    (
        "BUSY",
        "A script occupies the server: wait, or end it with SCRIPT KILL.",
    ),
];

/// A failed request. `timeout` is the time waited.
pub(super) fn mapped(error: &RedisError, timeout: Duration) -> BackendError {
    let code = error.code().unwrap_or_default();
    let text = error.detail().unwrap_or(error.category());
    if error.is_timeout() {
        return no_answer(timeout);
    }
    match error.kind() {
        ErrorKind::AuthenticationFailed => denied(code, text, LOGIN_REMEDY),
        ErrorKind::Server(kind) => server(kind, code, text),
        ErrorKind::Extension => match code {
            "WRONGPASS" | "NOAUTH" => denied(code, text, LOGIN_REMEDY),
            _ => unavailable_or_unexpected(code, text),
        },
        ErrorKind::Io => system(error),
        ErrorKind::InvalidClientConfig => BackendError::Unreachable {
            detail: text.to_owned(),
        },
        ErrorKind::RESP3NotSupported => BackendError::Protocol {
            detail: "the server is older than Redis 6 and knows no RESP3".to_owned(),
        },
        _ => BackendError::Protocol {
            detail: error.to_string(),
        },
    }
}

/// The server refused: it is reachable.
pub(super) fn is_answer(error: &RedisError) -> bool {
    matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension)
}

/// A failed connection attempt.
pub(super) fn connecting(error: &RedisError, target: &Target) -> BackendError {
    let mapped = mapped(error, target.timeout);
    match mapped {
        // With TLS 1.3 a server rejects our certificate only after our side of the handshake is
        // complete: often the only sign is a closed connection.
        BackendError::Unreachable { detail } if target.tls && !error.is_connection_refusal() => {
            let hint = "does it require a client certificate (`cert_file`, `key_file`)?";
            BackendError::Unreachable {
                detail: format!("{detail} while setting TLS up; {hint}"),
            }
        }
        other => other,
    }
}

/// A server error in place of a value.
pub(super) fn refused(error: &ServerError) -> BackendError {
    let text = error.details().unwrap_or_default();
    match error.kind() {
        Some(kind) => server(kind, error.code(), text),
        None if matches!(error.code(), "NOAUTH" | "WRONGPASS") => denied(error.code(), text, LOGIN_REMEDY),
        None => unavailable_or_unexpected(error.code(), text),
    }
}

fn server(kind: ServerErrorKind, code: &str, text: &str) -> BackendError {
    match kind {
        ServerErrorKind::NoPerm => denied(code, text, GRANT_REMEDY),
        ServerErrorKind::Moved | ServerErrorKind::Ask | ServerErrorKind::CrossSlot => {
            BackendError::Misconfigured {
                detail: "the server belongs to a cluster".to_owned(),
                remedy: "Set mode = \"cluster\" for this backend, with its nodes as `urls`.".to_owned(),
            }
        }
        _ if text.contains("invalid password") || text.contains("Client sent AUTH") => {
            denied(code, text, LOGIN_REMEDY)
        }
        _ => unavailable_or_unexpected(code, text),
    }
}

/// Before Redis 7 an error inside a script has the code ERR, and its own code in the text.
fn unavailable_or_unexpected(code: &str, text: &str) -> BackendError {
    let has = |name: &str| code == name || text.contains(&format!("-{name} "));
    let detail = format!("{code} {text}");
    match UNAVAILABLE.iter().find(|(name, _)| has(name)) {
        Some((_, remedy)) => BackendError::Unavailable {
            detail,
            remedy: (*remedy).to_owned(),
        },
        None => BackendError::Protocol { detail },
    }
}

fn system(error: &RedisError) -> BackendError {
    let text = error.to_string();
    if text.contains(UNREADABLE) {
        return BackendError::Protocol { detail: text };
    }
    // rustls errors arrive as text inside an io error.
    if ["certificate", "fatal alert", "InvalidContentType", "tls", "TLS"]
        .iter()
        .any(|sign| text.contains(sign))
    {
        let detail = format!("TLS failed: {text}");
        return BackendError::Misconfigured {
            detail,
            remedy: TLS_REMEDY.to_owned(),
        };
    }
    BackendError::Unreachable { detail: text }
}

fn denied(code: &str, text: &str, remedy: &str) -> BackendError {
    BackendError::Denied {
        detail: format!("{code} {text}").trim().to_owned(),
        remedy: remedy.to_owned(),
    }
}

pub(super) fn no_answer(after: Duration) -> BackendError {
    BackendError::NoAnswer {
        after_ms: millis(after).unsigned_abs(),
    }
}

pub(super) fn unexpected(what: &str) -> BackendError {
    BackendError::Protocol {
        detail: format!("{what} got an unexpected answer"),
    }
}

/// The server runs in the mode `found`, which does not fit the configured one.
pub(super) fn other_mode(found: &str, configured: RedisMode) -> BackendError {
    let remedy = match configured {
        RedisMode::Standalone | RedisMode::Cluster => {
            format!("Set mode = {found:?} for this backend, or name other servers in `urls`.")
        }
        RedisMode::Sentinel | RedisMode::Redlock => {
            "Each data node must be a standalone server: check the addresses.".to_owned()
        }
    };
    BackendError::Misconfigured {
        detail: format!("the server runs in {found} mode"),
        remedy,
    }
}
