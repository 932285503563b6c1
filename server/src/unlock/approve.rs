//! What else is done to an intent: a second person approves it, its owner gives it up, time runs out, acting alone is
//! reviewed.

use domain::access::Right;
use domain::audit::Phase;
use domain::notice::Notice;
use domain::unlock::{Ending, Unlock, UnlockState};

use super::second::first;
use super::store::{self, Value};
use super::{UnlockError, Unlocks, alarm, note};
use crate::audit::{Actor, Entry, Origin};
use crate::identity::Who;
use crate::notify::enqueue;

impl Unlocks {
    /// A second person agrees. Asked again, it changes nothing.
    ///
    /// # Errors
    /// Each is in the record, too.
    pub async fn approve(&self, who: &Who, id: &str) -> Result<Unlock, UnlockError> {
        let unlock = self.step_on(who, "approve", id).await?;
        match self.note_approval(who, &unlock).await {
            Ok(()) => self.get(who, id).await,
            Err(error) => {
                self.note_refusal(who, Right::Approve, &unlock, &error).await;
                Err(error)
            }
        }
    }

    async fn note_approval(&self, who: &Who, unlock: &Unlock) -> Result<(), UnlockError> {
        let name = unlock.resource.text();
        if !who.may(Right::Approve, &unlock.backend, &name) {
            return Err(UnlockError::forbidden(
                "this needs the right approve on this resource",
            ));
        }
        self.check_second(who, unlock).await?;
        self.is_pending(unlock).await?;
        let protection = self.protection(unlock, &unlock.observed.blast_radius).await?;
        if !protection.is_protected() {
            return Err(UnlockError::NoApprovalNeeded);
        }
        if !protection.may_be_approved_with(&who.grants, unlock) {
            let why = protection.why(who, &unlock.backend);
            let missing = format!("this needs the right approve on everything protected here: {why}");
            return Err(UnlockError::forbidden(missing));
        }
        let is_fresh = who
            .session
            .as_ref()
            .is_some_and(|session| self.identity.is_fresh(session));
        if !is_fresh {
            return Err(UnlockError::NeedsReauthentication {
                why: "an approval needs fresh authentication".to_owned(),
            });
        }
        let is_approved = self.is_approved(who, unlock, &protection, &[first(unlock)]).await;
        if unlock.approval.is_some() && is_approved.is_ok() {
            return Ok(());
        }
        let statement = "UPDATE unlocks SET approver_id = $1, approver_name = $2, approved_at = $3
            WHERE id = $4 AND state = 'pending' AND expires_at > $3";
        let entry = Entry {
            approver_id: Some(who.id().to_owned()),
            ..note::entry(
                unlock,
                Phase::Approval,
                "approved",
                note::by(who, Right::Approve, unlock),
            )
        };
        let values = [
            Value::Text(who.id()),
            Value::Text(who.name()),
            Value::Int(self.now_ms()),
            Value::Text(&unlock.id),
        ];
        self.change_with(statement, &values, entry, None).await
    }

    /// Gives an intent up. Its owner alone may.
    ///
    /// # Errors
    /// Each is in the record, too.
    pub async fn cancel(&self, who: &Who, id: &str) -> Result<Unlock, UnlockError> {
        let unlock = self.step_on(who, "cancel", id).await?;
        let given_up = async {
            if unlock.by_id != who.id() {
                return Err(UnlockError::forbidden("this intent is bound to somebody else"));
            }
            self.is_pending(&unlock).await?;
            let by = note::by(who, Right::Unlock, &unlock);
            self.end_pending(&unlock, UnlockState::Cancelled, Ending::default(), by)
                .await
        };
        if let Err(error) = given_up.await {
            self.note_refusal(who, Right::Unlock, &unlock, &error).await;
            return Err(error);
        }
        self.get(who, id).await
    }

    /// Somebody else has looked at what was done alone: it is not flagged any more.
    ///
    /// # Errors
    /// Each is in the record, too.
    pub async fn review(&self, who: &Who, id: &str) -> Result<Unlock, UnlockError> {
        let unlock = self.step_on(who, "review", id).await?;
        let reviewed = async {
            if !who.may(Right::Approve, &unlock.backend, &unlock.resource.text()) {
                return Err(UnlockError::forbidden(
                    "this needs the right approve on this resource",
                ));
            }
            if unlock.by_id == who.id() {
                return Err(UnlockError::forbidden("nobody reviews what they did themselves"));
            }
            self.check_second(who, &unlock).await?;
            match &unlock.break_glass {
                None => return Err(UnlockError::NothingToReview),
                Some(alone) if alone.review.is_some() => return Ok(()),
                Some(_) => {}
            }
            let statement = "UPDATE unlocks SET reviewer_id = $1, reviewer_name = $2, reviewed_at = $3
                WHERE id = $4 AND break_glass_reason IS NOT NULL AND reviewed_at IS NULL";
            let values = [
                Value::Text(who.id()),
                Value::Text(who.name()),
                Value::Int(self.now_ms()),
                Value::Text(&unlock.id),
            ];
            let by = note::by(who, Right::Approve, &unlock);
            let entry = note::entry(&unlock, Phase::Approval, "reviewed", by);
            let over = self.over(who, &unlock);
            self.change_with(statement, &values, entry, over.as_ref()).await
        };
        if let Err(error) = reviewed.await {
            self.note_refusal(who, Right::Approve, &unlock, &error).await;
            return Err(error);
        }
        self.get(who, id).await
    }

    /// What tells everyone that acting alone was reviewed.
    fn over(&self, who: &Who, unlock: &Unlock) -> Option<Notice> {
        let alone = unlock.break_glass.as_ref()?;
        let acted_at = unlock.acted_at?.timestamp_millis();
        let reviewed = (who.name(), self.now_ms());
        Some(alarm::notice(unlock, &alone.reason, acted_at, Some(reviewed)))
    }

    /// One change with its row and what is told of it; neither, when the change finds nothing to change any more.
    async fn change_with(
        &self,
        statement: &'static str,
        values: &[Value<'_>],
        entry: Entry,
        told: Option<&Notice>,
    ) -> Result<(), UnlockError> {
        let mut tx = self.db().begin().await?;
        let appended = self.audit.append_in(&mut tx, entry).await?;
        if store::change(&mut tx, statement, values).await? == 0 {
            return Err(UnlockError::Expired);
        }
        if let Some(notice) = told {
            enqueue(&mut tx, notice, self.now_ms()).await?;
        }
        tx.commit().await?;
        self.notifier.wake();
        self.audit.export(&appended).await;
        Ok(())
    }

    /// Ends an intent that was not acted on. Without effect when it is not pending any more.
    ///
    /// # Errors
    /// The store does not answer: it stays as it is.
    pub(super) async fn end_pending(
        &self,
        unlock: &Unlock,
        state: UnlockState,
        ending: Ending,
        by: (Actor, Origin),
    ) -> Result<(), UnlockError> {
        let entry = Entry {
            after: note::after(state, &ending),
            ..note::entry(unlock, Phase::Outcome, state.wire(), by)
        };
        let mut tx = self.db().begin().await?;
        let appended = self.audit.append_in(&mut tx, entry).await?;
        let change = (UnlockState::Pending, state);
        let now = self.now_ms();
        if store::end(&mut tx, &unlock.id, change, &ending, appended.seq, now).await? {
            tx.commit().await?;
            self.audit.export(&appended).await;
        }
        Ok(())
    }

    pub(super) async fn expire(&self, unlock: &Unlock) -> Result<(), UnlockError> {
        self.end_pending(unlock, UnlockState::Expired, Ending::default(), note::by_itself())
            .await
    }
}
