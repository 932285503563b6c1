//! Converts driver errors: refusals of the server, lost sessions, remedies. No address with
//! credentials and no password passes through here.

use std::io::ErrorKind;

use crate::BackendError;

/// Error of one statement.
#[derive(Debug, Clone)]
pub(super) enum StatementError {
    /// The server refused the statement; the session stays usable.
    Refused(Refusal),
    /// The session is lost.
    Lost(BackendError),
}

/// The server's error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    /// Five characters, SQLSTATE.
    pub(super) code: String,
    pub(super) message: String,
}

/// SQLSTATE `read_only_sql_transaction`.
const READ_ONLY: &str = "25006";

impl Refusal {
    /// A standby has locks of its own and answers as if those of its primary did not exist.
    pub(super) fn standby() -> Self {
        Self {
            code: READ_ONLY.to_owned(),
            message: "this server is a standby, which does not show the sessions of its primary".to_owned(),
        }
    }

    /// `lock_timeout`: another session's lock blocks.
    pub(super) fn is_lock_timeout(&self) -> bool {
        self.code == "55P03"
    }

    /// `statement_timeout` ran out.
    pub(super) fn is_statement_timeout(&self) -> bool {
        self.code == "57014"
    }

    pub(super) fn is_insufficient_privilege(&self) -> bool {
        self.code == "42501"
    }

    /// An unknown name, a wrong type, bad syntax, a value that cannot be computed, or a write.
    pub(super) fn is_of_expression(&self) -> bool {
        ["22", "25", "42", "P0"]
            .iter()
            .any(|class| self.code.starts_with(class))
    }
}

impl StatementError {
    /// For calls that fail as a whole if one source fails.
    pub(super) fn into_backend(self, timeout_ms: u64) -> BackendError {
        match self {
            Self::Lost(error) => error,
            Self::Refused(refusal) if refusal.is_statement_timeout() => {
                BackendError::NoAnswer { after_ms: timeout_ms }
            }
            Self::Refused(refusal) if refusal.is_insufficient_privilege() => BackendError::Denied {
                detail: refusal.message,
                remedy: "Grant the account the permissions listed in docs/backends/postgres.md.".to_owned(),
            },
            Self::Refused(refusal) if refusal == Refusal::standby() => BackendError::Misconfigured {
                detail: refusal.message,
                remedy: "Name the primary in `url`.".to_owned(),
            },
            Self::Refused(refusal) => BackendError::Protocol {
                detail: message(&refusal),
            },
        }
    }
}

/// Classes 08 (connection), 57P (the server ends sessions), 53 (out of resources) and 28
/// (login) end a session.
fn ends_session(code: &str) -> bool {
    ["08", "57P", "53", "28"]
        .iter()
        .any(|class| code.starts_with(class))
}

/// For a statement on an open session.
pub(super) fn from_statement(error: sqlx::Error) -> StatementError {
    match refusal(&error) {
        Some(refusal) if !ends_session(&refusal.code) => StatementError::Refused(refusal),
        _ => StatementError::Lost(from_connection(error)),
    }
}

fn refusal(error: &sqlx::Error) -> Option<Refusal> {
    let database = error.as_database_error()?;
    let code = database.code().map(|code| code.into_owned()).unwrap_or_default();
    Some(Refusal {
        code,
        message: database.message().to_owned(),
    })
}

/// For opening a session, and for a session that ended.
pub(super) fn from_connection(error: sqlx::Error) -> BackendError {
    if let Some(refusal) = refusal(&error) {
        return from_refusal(refusal);
    }
    match error {
        sqlx::Error::Io(error) => from_io(&error),
        sqlx::Error::Tls(error) => from_tls(&error.to_string()),
        sqlx::Error::Configuration(error) => BackendError::Misconfigured {
            detail: format!("the connection settings do not fit: {error}"),
            remedy: "Correct `url`, `cert_file` and `key_file` of this backend.".to_owned(),
        },
        other => BackendError::Protocol {
            detail: other.to_string(),
        },
    }
}

fn from_io(error: &std::io::Error) -> BackendError {
    match error.kind() {
        // rustls reports a rejected certificate as invalid data.
        ErrorKind::InvalidData => from_tls(&error.to_string()),
        ErrorKind::NotFound => BackendError::Misconfigured {
            detail: format!("a file named in the configuration cannot be read: {error}"),
            remedy: "Correct `ca_file`, `cert_file`, `key_file` or the socket's folder in `url`.".to_owned(),
        },
        ErrorKind::ConnectionRefused => BackendError::Unreachable {
            detail: "connection refused".to_owned(),
        },
        _ => BackendError::Unreachable {
            detail: error.to_string(),
        },
    }
}

fn from_tls(detail: &str) -> BackendError {
    let remedy = if detail.contains("does not support TLS") {
        "Switch TLS on at the server, or ask for plain text with `?sslmode=disable`."
    } else {
        "Set `ca_file` to the authority that signed the server's certificate and `server_name` to a name in it."
    };
    BackendError::Misconfigured {
        detail: format!("TLS failed: {detail}"),
        remedy: remedy.to_owned(),
    }
}

fn from_refusal(refusal: Refusal) -> BackendError {
    let detail = message(&refusal);
    match refusal.code.as_str() {
        "3D000" => BackendError::Misconfigured {
            detail,
            remedy:
                "Correct the database's name at the end of `url` or, for forced unlocks, of `unlock_url`."
                    .to_owned(),
        },
        "42501" => BackendError::Denied {
            detail,
            remedy: "GRANT CONNECT ON DATABASE to the account, as in docs/backends/postgres.md.".to_owned(),
        },
        code if code.starts_with("28") => BackendError::Denied {
            detail,
            remedy: "Check `user`, `password` and the server's pg_hba.conf.".to_owned(),
        },
        "08P01" if refusal.message.contains("startup parameter") => BackendError::Misconfigured {
            detail,
            remedy:
                "Connect to Postgres directly: a pooler drops the timeouts that limit Leasehold's queries."
                    .to_owned(),
        },
        code if ends_session(code) => BackendError::Unreachable { detail },
        _ => BackendError::Protocol { detail },
    }
}

fn message(refusal: &Refusal) -> String {
    format!("the server reported: {} ({})", refusal.message, refusal.code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: &str) -> BackendError {
        from_refusal(Refusal {
            code: code.to_owned(),
            message: "no".to_owned(),
        })
    }

    #[test]
    fn connection_errors_have_distinct_kinds() {
        // By SQLSTATE only: messages are in the server's language.
        assert!(matches!(refused("28P01"), BackendError::Denied { .. }));
        assert!(matches!(refused("3D000"), BackendError::Misconfigured { .. }));
        assert!(matches!(refused("57P03"), BackendError::Unreachable { .. }));
        assert!(matches!(refused("XX000"), BackendError::Protocol { .. }));
    }
}
