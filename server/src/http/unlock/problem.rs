//! Refusals of forced unlocks as problems. One `match` without wildcard.

use axum::http::StatusCode;
use domain::force_release::Holding;

use crate::http::dto::unlock::HoldingDto;
use crate::http::problem::Problem;
use crate::unlock::UnlockError;

/// HTTP problem of each error.
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
        let holding = |holding: &Option<Box<Holding>>| holding.as_deref().map(HoldingDto::from);
        match &error {
            UnlockError::Ambiguous { sources } => plain.with_sources(sources),
            UnlockError::WeakReason { field, .. } => plain.with_field(field),
            UnlockError::NameMismatch { .. } | UnlockError::Reserved => plain.with_field("resource"),
            UnlockError::HolderChanged { before, now } => plain.with_holders(holding(before), holding(now)),
            UnlockError::Unavailable { remedy, .. } | UnlockError::Stale { remedy, .. } => {
                plain.with_remedy(remedy.clone())
            }
            _ => plain,
        }
    }
}
