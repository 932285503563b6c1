//! How a lease was lost.

use std::fmt;

use crate::wire::{Event, Problem};

/// Why a lease is not held any more, as far as this client knows.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loss {
    /// An operator took it away.
    Revoked {
        by: String,
        reason: String,
        /// Of the record that was written before.
        audit_id: String,
    },
    /// The server says that it ran out.
    Expired,
    /// It was given back, by us or under our lease id.
    Released,
    /// The server has never heard of it, or it is another token's.
    NotFound,
    /// No renewal succeeded in time. The server may see it otherwise, and nothing may rely on that.
    DeadlinePassed {
        /// What the last try said, where there was one since the last success.
        last_error: Option<String>,
    },
    /// It has lived as long as the server lets any lease live.
    LifetimeReached,
}

impl Loss {
    /// Stable: branch on this. The server's codes, and `deadline_passed`.
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

    /// None where the problem does not say that the lease is gone.
    pub(crate) fn from_problem(problem: &Problem) -> Option<Self> {
        match problem.code.as_str() {
            "revoked" => Some(Self::revoked(&problem.by, &problem.reason, &problem.audit_id)),
            "expired" => Some(Self::Expired),
            "released" => Some(Self::Released),
            "not_found" => Some(Self::NotFound),
            _ => None,
        }
    }

    /// None where the event does not say that the lease is gone.
    pub(crate) fn from_event(event: &Event) -> Option<Self> {
        match event.kind.as_str() {
            "revoked" => Some(Self::revoked(&event.by, &event.reason, &event.audit_id)),
            "expired" => Some(Self::Expired),
            "released" => Some(Self::Released),
            _ => None,
        }
    }

    fn revoked(by: &Option<String>, reason: &Option<String>, audit_id: &Option<String>) -> Self {
        let said = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
        Self::Revoked {
            by: said(by),
            reason: said(reason),
            audit_id: said(audit_id),
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Revoked { by, reason, audit_id } => {
                write!(f, "the lease was revoked by {by}: {reason} (record {audit_id})")
            }
            Self::Expired => f.write_str("the lease ran out"),
            Self::Released => f.write_str("the lease was released"),
            Self::NotFound => f.write_str("the server does not know this lease"),
            Self::DeadlinePassed { last_error: None } => {
                f.write_str("the lease could not be renewed in time: its deadline has passed")
            }
            Self::DeadlinePassed {
                last_error: Some(error),
            } => write!(f, "the lease could not be renewed in time: {error}"),
            Self::LifetimeReached => f.write_str("the lease has lived as long as the server allows"),
        }
    }
}
