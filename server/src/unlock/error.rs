//! Why a step of a forced unlock was not done. In each of these cases the lock was not touched.

use domain::names::Source;
use domain::release::Holding;
use domain::unlock::{UnlockState, WeakReason};
use thiserror::Error;

#[derive(Debug, Error)]
pub enum UnlockError {
    #[error("{what}")]
    NotFound { what: String },
    #[error("several sources of this backend hold the name; say which with source")]
    Ambiguous { sources: Vec<Source> },
    #[error("{why}")]
    Forbidden { why: String },
    #[error(
        "resource is reserved: leases below {} are the server's own, are renewed by it and end by themselves when it is gone; \
         choose another lock",
        domain::lease::names::RESERVED_PREFIX
    )]
    Reserved,
    #[error("{why}: prove again who you are, which counts for 15 minutes; a token cannot")]
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
    #[error("this intent was good for two minutes, which are over; look again")]
    Expired,
    #[error("this intent is {} and works no more", .state.wire())]
    AlreadyUsed { state: UnlockState },
    #[error("{}", changed(.now.is_some()))]
    HolderChanged {
        before: Option<Box<Holding>>,
        now: Option<Box<Holding>>,
    },
    #[error("{why}")]
    Unavailable { why: String, mend: Option<String> },
    #[error("{why}")]
    Stale { why: String, mend: Option<String> },
    #[error("what dies with it cannot be told, so it is not done: {why}")]
    BlastRadiusUnknown { why: String },
    #[error("the audit record cannot be written, so nothing is done")]
    AuditUnavailable(#[source] sqlx::Error),
    #[error("this unlock needs no second person")]
    NoApprovalNeeded,
    #[error("there is nothing to review: nobody acted alone here")]
    NothingToReview,
    #[error("the step was cut off inside the server; look at the unlock again")]
    CutOff,
}

impl UnlockError {
    /// The stable word, on the wire and in the record.
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

    /// Its row was written together with what it changed.
    pub(super) const fn is_recorded(&self) -> bool {
        matches!(self, Self::NameMismatch { .. })
    }

    pub(super) fn no_unlock(id: &str) -> Self {
        let shown: String = id.chars().take(64).collect();
        Self::NotFound {
            what: format!("there is no unlock {shown:?}"),
        }
    }

    pub(super) fn approval_lapsed() -> Self {
        Self::NeedsApproval {
            why: "the approver may not approve this any more; another one must".to_owned(),
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
    let rest = match left {
        0 => "this intent is cancelled",
        1 => "one more wrong name cancels this intent",
        _ => "two more wrong names cancel this intent",
    };
    format!("that is not the name of the resource, byte for byte; {rest}")
}

fn changed(is_held: bool) -> &'static str {
    if is_held {
        "another holding stands there now; it was not touched"
    } else {
        "nobody holds it any more; nothing was touched"
    }
}
