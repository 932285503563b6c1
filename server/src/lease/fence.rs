//! Fencing: whether a resource should accept a write, and the ledger of those that were refused.

use domain::lease::fencing::{self, FencingAnswer, Verdict};
use domain::lease::{ResourceState, StoreTime};
use domain::names::{OwnerId, Resource};
use domain::token::FencingToken;

use super::LeaseService;
use super::caller::Caller;
use super::error::LeaseError;
use super::operation::{Operation, Rejection};
use super::reading::ResourceNow;
use super::store::{Lane, RejectionCount, RejectionRange, RejectionRow, RejectionsAsked, StaleWrite};

/// What a resource says that compares tokens itself.
#[derive(Debug, Clone)]
pub struct Report {
    pub resource: Resource,
    pub token: FencingToken,
    pub highest: Option<FencingToken>,
    pub owner: Option<OwnerId>,
    pub source: String,
    /// When it refused; none: now.
    pub at: Option<StoreTime>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    pub answer: FencingAnswer,
    pub now: ResourceNow,
}

impl LeaseService {
    /// Whether a write under this token should be accepted. A refusal enters the ledger before it is answered.
    ///
    /// # Errors
    /// `OutOfScope`; `Unavailable`, and then the write must not be accepted.
    pub async fn check(
        &self,
        caller: &Caller,
        resource: &Resource,
        presented: FencingToken,
        owner: Option<OwnerId>,
        source: Option<String>,
    ) -> Result<Checked, LeaseError> {
        let now = self.resource(caller, resource).await?;
        let state = ResourceState {
            last_token: now.last_token,
            lease: now.last.clone(),
            ..ResourceState::default()
        };
        let answer = fencing::check(&state, presented, now.now);
        if let Some(reason) = answer.verdict.reason() {
            self.note(Rejection {
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
        Ok(Checked { answer, now })
    }

    /// Enters what a resource refused by itself into the ledger.
    ///
    /// # Errors
    /// `OutOfScope`, `Unavailable`.
    pub async fn report(&self, caller: &Caller, report: Report) -> Result<(), LeaseError> {
        caller.may_name(&report.resource)?;
        self.note(Rejection {
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

    /// The ledger, newest first, at most 1000.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn rejections(&self, resource: Option<&Resource>) -> Result<Vec<RejectionRow>, LeaseError> {
        self.ledger(&RejectionsAsked {
            resource: resource.cloned(),
            names: None,
            from: StoreTime::from_ms(i64::MIN),
            until: StoreTime::from_ms(i64::MAX),
            most: 1000,
        })
        .await
    }

    /// A part of the ledger, newest first.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn ledger(&self, asked: &RejectionsAsked) -> Result<Vec<RejectionRow>, LeaseError> {
        self.core
            .store
            .rejections(asked)
            .await
            .map_err(|error| self.unread(&error))
    }

    /// Rejections added up by resource, owner and second, oldest first.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn rejection_counts(&self, range: &RejectionRange) -> Result<Vec<RejectionCount>, LeaseError> {
        self.core
            .store
            .rejection_counts(range)
            .await
            .map_err(|error| self.unread(&error))
    }

    /// The id of the last rejection that was recorded before a moment of the store's clock; 0: none.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn last_rejection_before(&self, recorded: StoreTime) -> Result<i64, LeaseError> {
        self.core
            .store
            .last_rejection_before(recorded)
            .await
            .map_err(|error| self.unread(&error))
    }

    /// Of each resource the newest rejected write with an older token, since a moment of the store's clock.
    pub(crate) async fn stale_writes(&self, since: StoreTime) -> Result<Vec<StaleWrite>, LeaseError> {
        let read = self.core.store.stale_writes(since).await;
        read.map_err(|error| self.unread(&error))
    }

    async fn note(&self, rejection: Rejection) -> Result<(), LeaseError> {
        let reason = rejection.reason;
        self.ask(Lane::Main, Operation::Reject(Box::new(rejection)))
            .await?;
        self.core.metrics.rejections.one();
        crate::telemetry::meters().rejected(reason);
        Ok(())
    }
}

impl Checked {
    pub fn accepted(&self) -> bool {
        self.answer.verdict == Verdict::Accepted
    }
}
