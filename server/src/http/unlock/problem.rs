//! Refusals of forced unlocks as problems. One `match` without wildcard.

use axum::http::StatusCode;
use domain::release::Holding;

use crate::http::problem::Problem;
use crate::http::wire::unlock::HoldingWire;
use crate::unlock::UnlockError;

impl From<UnlockError> for Problem {
    fn from(error: UnlockError) -> Self {
        let plain = |status| Self::unlock(status, error.code(), &error.to_string());
        let holding = |holding: &Option<Box<Holding>>| holding.as_deref().map(HoldingWire::from);
        match &error {
            UnlockError::NotFound { .. } => plain(StatusCode::NOT_FOUND),
            UnlockError::Ambiguous { sources } => plain(StatusCode::CONFLICT).with_sources(sources),
            UnlockError::Forbidden { .. }
            | UnlockError::NeedsReauthentication
            | UnlockError::NeedsApproval { .. } => plain(StatusCode::FORBIDDEN),
            UnlockError::WeakReason { field, .. } => {
                plain(StatusCode::UNPROCESSABLE_ENTITY).with_field(field)
            }
            UnlockError::NameMismatch { .. } => {
                plain(StatusCode::UNPROCESSABLE_ENTITY).with_field("resource")
            }
            UnlockError::Expired => plain(StatusCode::GONE),
            UnlockError::AlreadyUsed { .. }
            | UnlockError::NoApprovalNeeded
            | UnlockError::NothingToReview => plain(StatusCode::CONFLICT),
            UnlockError::HolderChanged { before, now } => {
                plain(StatusCode::CONFLICT).with_holders(holding(before), holding(now))
            }
            UnlockError::Unavailable { mend, .. } => plain(StatusCode::CONFLICT).with_mend(mend.clone()),
            UnlockError::Stale { mend, .. } => plain(StatusCode::SERVICE_UNAVAILABLE).with_mend(mend.clone()),
            UnlockError::BlastRadiusUnknown { .. } | UnlockError::AuditUnavailable(_) => {
                plain(StatusCode::SERVICE_UNAVAILABLE)
            }
            UnlockError::CutOff => plain(StatusCode::INTERNAL_SERVER_ERROR),
        }
    }
}
