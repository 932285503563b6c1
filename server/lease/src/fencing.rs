//! Fencing: token checks, and the log of rejected writes.

use domain::lease::fencing::{self, FencingAnswer, FencingDecision};
use domain::lease::{ResourceState, StoreTime};
use domain::names::{OwnerId, Resource};
use domain::token::FencingToken;

use super::LeaseService;
use super::caller::LeaseCaller;
use super::error::LeaseError;
use super::operation::{Operation, Rejection};
use super::queries::ResourceNow;
use super::store::Lane;
use super::submit;
use runtime::change_signal::ChangeSignal;

/// A rejection reported by a resource that compares tokens itself.
#[derive(Debug, Clone)]
pub struct RejectionReport {
    pub resource: Resource,
    pub token: FencingToken,
    pub highest: Option<FencingToken>,
    pub owner: Option<OwnerId>,
    pub source: String,
    /// When the resource rejected the write; `None`: now.
    pub at: Option<StoreTime>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct FencingCheck {
    pub answer: FencingAnswer,
    pub now: ResourceNow,
}

impl LeaseService {
    /// Whether a write with this token should be accepted. A rejection is stored before it is
    /// answered.
    ///
    /// # Errors
    /// `OutOfScope`; `Unavailable`, in which case the write must not be accepted.
    pub async fn check(
        &self,
        caller: &LeaseCaller,
        resource: &Resource,
        presented: FencingToken,
        owner: Option<OwnerId>,
        source: Option<String>,
    ) -> Result<FencingCheck, LeaseError> {
        let now = self.resource(caller, resource).await?;
        let state = ResourceState {
            last_token: now.last_token,
            lease: now.last.clone(),
            ..ResourceState::default()
        };
        let answer = fencing::check(&state, presented, now.now);
        if let Some(reason) = answer.verdict.reason() {
            self.record_rejection(Rejection {
                resource: resource.clone(),
                token: presented,
                highest: Some(answer.highest),
                owner,
                source: source.unwrap_or_else(|| "check".to_owned()),
                reason,
                at: None,
            })
            .await?;
        }
        Ok(FencingCheck { answer, now })
    }

    /// Stores a rejection that a resource made itself.
    ///
    /// # Errors
    /// `OutOfScope`, `Unavailable`.
    pub async fn report(&self, caller: &LeaseCaller, report: RejectionReport) -> Result<(), LeaseError> {
        caller.may_name(&report.resource)?;
        self.record_rejection(Rejection {
            resource: report.resource,
            token: report.token,
            highest: report.highest,
            owner: report.owner,
            source: report.source,
            reason: "reported",
            at: report.at,
        })
        .await
    }

    /// Announces each rejection that this process recorded.
    pub fn rejection_signal(&self) -> &ChangeSignal {
        &self.rejected
    }

    async fn record_rejection(&self, rejection: Rejection) -> Result<(), LeaseError> {
        let reason = rejection.reason;
        let core = self.shards.of_resource(&rejection.resource)?;
        submit(core, Lane::Main, Operation::Reject(Box::new(rejection))).await?;
        self.common.metrics.rejections.increment();
        runtime::telemetry::instruments().rejected(reason);
        self.rejected.announce();
        Ok(())
    }
}

impl FencingCheck {
    pub fn accepted(&self) -> bool {
        self.answer.verdict == FencingDecision::Accepted
    }
}
