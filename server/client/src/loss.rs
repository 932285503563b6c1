//! Causes of a lost lease.

use std::fmt;

use crate::dto::{Event, Problem};

/// Why a lease is no longer held, as far as this client knows.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loss {
    /// Revoked by an operator.
    Revoked {
        by: String,
        reason: String,
        /// Id of the audit entry.
        audit_id: String,
    },
    /// The server reported its expiry.
    Expired,
    /// Released by this client, or with its lease id.
    Released,
    /// The id is unknown to the server, or belongs to another token.
    NotFound,
    /// No renewal succeeded in time. On the server the lease may still be live.
    DeadlinePassed {
        /// Error of the last attempt, if one failed since the last success.
        last_error: Option<String>,
    },
    /// The maximum lifetime of a lease is reached.
    LifetimeReached,
}

impl Loss {
    /// Stable code: the server's codes, and `deadline_passed`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Revoked { .. } => "revoked",
            Self::Expired => "expired",
            Self::Released => "released",
            Self::NotFound => "not_found",
            Self::DeadlinePassed { .. } => "deadline_passed",
            Self::LifetimeReached => "lifetime_reached",
        }
    }

    /// `None` if the problem does not report a loss.
    pub(crate) fn from_problem(problem: &Problem) -> Option<Self> {
        match problem.code.as_str() {
            "revoked" => Some(Self::revoked(&problem.by, &problem.reason, &problem.audit_id)),
            "expired" => Some(Self::Expired),
            "released" => Some(Self::Released),
            "not_found" => Some(Self::NotFound),
            _ => None,
        }
    }

    /// `None` if the event does not report a loss.
    pub(crate) fn from_event(event: &Event) -> Option<Self> {
        match event.kind.as_str() {
            "revoked" => Some(Self::revoked(&event.by, &event.reason, &event.audit_id)),
            "expired" => Some(Self::Expired),
            "released" => Some(Self::Released),
            _ => None,
        }
    }

    fn revoked(by: &Option<String>, reason: &Option<String>, audit_id: &Option<String>) -> Self {
        let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
        Self::Revoked {
            by: known(by),
            reason: known(reason),
            audit_id: known(audit_id),
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Revoked { by, reason, audit_id } => {
                write!(f, "the lease was revoked by {by}: {reason} (record {audit_id})")
            }
            Self::Expired => f.write_str("the lease expired"),
            Self::Released => f.write_str("the lease was released"),
            Self::NotFound => f.write_str("the server does not know this lease"),
            Self::DeadlinePassed { last_error: None } => {
                f.write_str("the lease could not be renewed in time: its deadline has passed")
            }
            Self::DeadlinePassed {
                last_error: Some(error),
            } => write!(f, "the lease could not be renewed in time: {error}"),
            Self::LifetimeReached => f.write_str("the lease has reached its maximum lifetime"),
        }
    }
}
