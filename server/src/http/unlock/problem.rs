//! Refusals of forced unlocks as problems. One `match` without wildcard.

use axum::http::StatusCode;
use domain::release::Holding;

use crate::http::problem::Problem;
use crate::http::wire::unlock::HoldingWire;
use crate::unlock::UnlockError;

/// What each refusal is in HTTP.
pub(in crate::http) fn status(error: &UnlockError) -> StatusCode {
    match error {
        UnlockError::NotFound { .. } => StatusCode::NOT_FOUND,
        UnlockError::Reserved => StatusCode::BAD_REQUEST,
        UnlockError::Forbidden { .. }
        | UnlockError::NeedsReauthentication { .. }
        | UnlockError::NeedsApproval { .. } => StatusCode::FORBIDDEN,
        UnlockError::WeakReason { .. } | UnlockError::NameMismatch { .. } => StatusCode::UNPROCESSABLE_ENTITY,
        UnlockError::Expired => StatusCode::GONE,
        UnlockError::Ambiguous { .. }
        | UnlockError::AlreadyUsed { .. }
        | UnlockError::NoApprovalNeeded
        | UnlockError::NothingToReview
        | UnlockError::HolderChanged { .. }
        | UnlockError::Unavailable { .. } => StatusCode::CONFLICT,
        UnlockError::Stale { .. }
        | UnlockError::BlastRadiusUnknown { .. }
        | UnlockError::AuditUnavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        UnlockError::CutOff => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl From<UnlockError> for Problem {
    fn from(error: UnlockError) -> Self {
        let plain = Self::unlock(status(&error), error.code(), &error.to_string());
        let holding = |holding: &Option<Box<Holding>>| holding.as_deref().map(HoldingWire::from);
        match &error {
            UnlockError::Ambiguous { sources } => plain.with_sources(sources),
            UnlockError::WeakReason { field, .. } => plain.with_field(field),
            UnlockError::NameMismatch { .. } | UnlockError::Reserved => plain.with_field("resource"),
            UnlockError::HolderChanged { before, now } => plain.with_holders(holding(before), holding(now)),
            UnlockError::Unavailable { mend, .. } | UnlockError::Stale { mend, .. } => {
                plain.with_mend(mend.clone())
            }
            _ => plain,
        }
    }
}
