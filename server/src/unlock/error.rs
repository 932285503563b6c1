//! Errors of the steps of a forced unlock. In each case except `CutOff` the lock was not touched.

use domain::force_release::Holding;
use domain::names::Source;
use domain::unlock::{UnlockState, WeakReason};
use thiserror::Error;

#[derive(Debug, Error)]
pub enum UnlockError {
    #[error("{what}")]
    NotFound { what: String },
    #[error("several sources of this backend hold the name; set `source`")]
    Ambiguous { sources: Vec<Source> },
    #[error("{why}")]
    Forbidden { why: String },
    #[error(
        "resource is reserved: leases below {} belong to the server, which renews them; they expire when it stops; \
         choose another lock",
        domain::lease::names::RESERVED_PREFIX
    )]
    Reserved,
    #[error(
        "{why}: sign in again or give your password; authentication counts for 15 minutes, and an API token cannot do this"
    )]
    NeedsReauthentication { why: String },
    #[error("{why}")]
    NeedsApproval { why: String },
    #[error("{weakness}")]
    WeakReason {
        field: &'static str,
        weakness: WeakReason,
    },
    #[error("{}", mismatch(*.left))]
    NameMismatch { left: u32 },
    #[error("this intent expired after two minutes; request a new one")]
    Expired,
    #[error("this intent is {} and cannot be used again; request a new one", .state.as_str())]
    AlreadyUsed { state: UnlockState },
    #[error("{}", changed(.now.is_some()))]
    HolderChanged {
        before: Option<Box<Holding>>,
        now: Option<Box<Holding>>,
    },
    #[error("{why}")]
    Unavailable { why: String, remedy: Option<String> },
    #[error("{why}")]
    Stale { why: String, remedy: Option<String> },
    #[error("nothing was released, because the locks released with it are unknown: {why}")]
    BlastRadiusUnknown { why: String },
    #[error("nothing was changed, because the audit log cannot be written")]
    AuditUnavailable(#[source] sqlx::Error),
    #[error("this unlock needs no second approver")]
    NoApprovalNeeded,
    #[error("this unlock needs no review: it did not use break-glass")]
    NothingToReview,
    #[error("the server aborted this step; read the state of the unlock before you try again")]
    CutOff,
}

impl UnlockError {
    /// Stable code in responses and audit entries.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "not_found",
            Self::Ambiguous { .. } => "ambiguous_source",
            Self::Forbidden { .. } => "forbidden",
            Self::Reserved => "reserved",
            Self::NeedsReauthentication { .. } => "needs_reauthentication",
            Self::NeedsApproval { .. } => "needs_approval",
            Self::WeakReason { .. } => "reason_too_weak",
            Self::NameMismatch { .. } => "name_mismatch",
            Self::Expired => "intent_expired",
            Self::AlreadyUsed { .. } => "already_used",
            Self::HolderChanged { .. } => "holder_changed",
            Self::Unavailable { .. } => "unlock_unavailable",
            Self::Stale { .. } => "backend_stale",
            Self::BlastRadiusUnknown { .. } => "blast_radius_unknown",
            Self::AuditUnavailable(_) => "audit_unavailable",
            Self::NoApprovalNeeded => "no_approval_needed",
            Self::NothingToReview => "nothing_to_review",
            Self::CutOff => "internal",
        }
    }

    /// Whether its audit entry was already written together with a change.
    pub(super) const fn is_recorded(&self) -> bool {
        matches!(self, Self::NameMismatch { .. })
    }

    pub(super) fn no_unlock(id: &str) -> Self {
        let short_id: String = id.chars().take(64).collect();
        Self::NotFound {
            what: format!("no unlock has the id {short_id:?}"),
        }
    }

    pub(super) fn approval_lapsed() -> Self {
        Self::NeedsApproval {
            why: "the approver no longer has the permission `approve` here; ask another approver".to_owned(),
        }
    }

    pub(super) fn forbidden(why: impl Into<String>) -> Self {
        Self::Forbidden { why: why.into() }
    }
}

impl From<sqlx::Error> for UnlockError {
    fn from(error: sqlx::Error) -> Self {
        Self::AuditUnavailable(error)
    }
}

fn mismatch(left: u32) -> String {
    let consequence = match left {
        0 => "this intent is cancelled",
        1 => "one more wrong name cancels this intent",
        _ => "two more wrong names cancel this intent",
    };
    format!("`name` does not equal the resource byte for byte; {consequence}")
}

fn changed(is_held: bool) -> &'static str {
    if is_held {
        "another holder has this lock now; it was not released"
    } else {
        "it is no longer held; nothing was changed"
    }
}
