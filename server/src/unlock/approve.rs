//! Other steps of an intent: approval by a second approver, cancellation by its owner, expiry, review of a
//! break-glass unlock.

use domain::access::Permission;
use domain::audit::AuditPhase;
use domain::notification::Notice;
use domain::unlock::{EndedHolding, Unlock, UnlockState};

use super::second_approver::requester;
use super::store::{self, Value};
use super::{UnlockError, Unlocks, audit_entries, break_glass_alert};
use crate::audit::{Actor, Entry, Origin};
use crate::identity::Principal;
use crate::notify::enqueue;

impl Unlocks {
    /// Records the approval of a second approver. Idempotent.
    ///
    /// # Errors
    /// Each is recorded in the audit log.
    pub async fn approve(&self, who: &Principal, id: &str) -> Result<Unlock, UnlockError> {
        let unlock = self.step_on(who, "approve", id).await?;
        match self.record_approval(who, &unlock).await {
            Ok(()) => self.get(who, id).await,
            Err(error) => {
                self.record_rejected_step(who, Permission::Approve, &unlock, &error)
                    .await;
                Err(error)
            }
        }
    }

    async fn record_approval(&self, who: &Principal, unlock: &Unlock) -> Result<(), UnlockError> {
        let name = unlock.resource.text();
        if !who.may(Permission::Approve, &unlock.backend, &name) {
            return Err(UnlockError::forbidden(
                "this needs the permission `approve` on this resource",
            ));
        }
        self.check_second(who, unlock).await?;
        self.check_pending(unlock).await?;
        let protection = self.protection(unlock, &unlock.observed.blast_radius).await?;
        if !protection.is_protected() {
            return Err(UnlockError::NoApprovalNeeded);
        }
        protection.check_approver(who, unlock)?;
        let is_fresh = who
            .session
            .as_ref()
            .is_some_and(|session| self.identity.is_fresh(session));
        if !is_fresh {
            return Err(UnlockError::NeedsReauthentication {
                why: "an approval needs fresh authentication".to_owned(),
            });
        }
        let approval_check = self
            .check_approval(who, unlock, &protection, &[requester(unlock)])
            .await;
        if unlock.approval.is_some() && approval_check.is_ok() {
            return Ok(());
        }
        let statement = "UPDATE unlocks SET approver_id = $1, approver_name = $2, approved_at = $3
            WHERE id = $4 AND state = 'pending' AND expires_at > $3";
        let entry = Entry {
            approver_id: Some(who.id().to_owned()),
            ..audit_entries::entry(
                unlock,
                AuditPhase::Approval,
                "approved",
                audit_entries::actor_and_origin(who, Permission::Approve, unlock),
            )
        };
        let values = [
            Value::Text(who.id()),
            Value::Text(who.name()),
            Value::Int(self.now_ms()),
            Value::Text(&unlock.id),
        ];
        match self.change_with(statement, &values, entry, None).await? {
            true => Ok(()),
            false => Err(UnlockError::Expired),
        }
    }

    /// Cancels an intent. Only its owner may.
    ///
    /// # Errors
    /// Each is recorded in the audit log.
    pub async fn cancel(&self, who: &Principal, id: &str) -> Result<Unlock, UnlockError> {
        let unlock = self.step_on(who, "cancel", id).await?;
        let cancelled = async {
            if unlock.by_id != who.id() {
                return Err(UnlockError::forbidden("this intent belongs to another user"));
            }
            self.check_pending(&unlock).await?;
            let by = audit_entries::actor_and_origin(who, Permission::Unlock, &unlock);
            self.end_pending(&unlock, UnlockState::Cancelled, EndedHolding::default(), by)
                .await
        };
        if let Err(error) = cancelled.await {
            self.record_rejected_step(who, Permission::Unlock, &unlock, &error)
                .await;
            return Err(error);
        }
        self.get(who, id).await
    }

    /// Records the review of a break-glass unlock by another user, which clears its flag.
    ///
    /// # Errors
    /// Each is recorded in the audit log.
    pub async fn review(&self, who: &Principal, id: &str) -> Result<Unlock, UnlockError> {
        let unlock = self.step_on(who, "review", id).await?;
        let reviewed = async {
            if unlock.by_id == who.id() {
                return Err(UnlockError::forbidden(
                    "a break-glass unlock must be reviewed by another user",
                ));
            }
            let protection = self.protection(&unlock, &unlock.observed.blast_radius).await?;
            protection.check_approver(who, &unlock)?;
            self.check_second(who, &unlock).await?;
            match &unlock.break_glass {
                None => return Err(UnlockError::NothingToReview),
                Some(break_glass) if break_glass.review.is_some() => return Ok(()),
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
            let by = audit_entries::actor_and_origin(who, Permission::Approve, &unlock);
            let entry = audit_entries::entry(&unlock, AuditPhase::Approval, "reviewed", by);
            let over = self.review_notice(who, &unlock);
            // Of two reviews at the same time the first counts.
            let _is_first = self.change_with(statement, &values, entry, over.as_ref()).await?;
            Ok(())
        };
        if let Err(error) = reviewed.await {
            self.record_rejected_step(who, Permission::Approve, &unlock, &error)
                .await;
            return Err(error);
        }
        self.get(who, id).await
    }

    /// The notification that a break-glass unlock was reviewed.
    fn review_notice(&self, who: &Principal, unlock: &Unlock) -> Option<Notice> {
        let break_glass = unlock.break_glass.as_ref()?;
        let acted_at = unlock.acted_at?.timestamp_millis();
        let reviewed = (who.name(), self.now_ms());
        Some(break_glass_alert::notice(
            unlock,
            &break_glass.reason,
            acted_at,
            Some(reviewed),
        ))
    }

    /// Applies a change with its audit entry and notification in one transaction; none of them, and `false`, if the
    /// change no longer applies.
    async fn change_with(
        &self,
        statement: &'static str,
        values: &[Value<'_>],
        entry: Entry,
        break_glass: Option<&Notice>,
    ) -> Result<bool, UnlockError> {
        let mut tx = self.db().begin().await?;
        let appended = self.audit.append_in(&mut tx, entry).await?;
        if store::change(&mut tx, statement, values).await? == 0 {
            return Ok(false);
        }
        if let Some(notice) = break_glass {
            enqueue(&mut tx, notice, self.now_ms()).await?;
        }
        tx.commit().await?;
        self.notifier.wake();
        self.audit.export(&appended).await;
        Ok(true)
    }

    /// Ends an intent that was not executed. No effect when it is no longer pending.
    ///
    /// # Errors
    /// The store does not answer; the intent is unchanged.
    pub(super) async fn end_pending(
        &self,
        unlock: &Unlock,
        state: UnlockState,
        ending: EndedHolding,
        by: (Actor, Origin),
    ) -> Result<(), UnlockError> {
        self.end_if_pending(unlock, state, ending, by).await.map(drop)
    }

    /// As [`end_pending`](Self::end_pending); returns whether it was pending.
    ///
    /// # Errors
    /// The store does not answer; the intent is unchanged.
    pub(super) async fn end_if_pending(
        &self,
        unlock: &Unlock,
        state: UnlockState,
        ending: EndedHolding,
        by: (Actor, Origin),
    ) -> Result<bool, UnlockError> {
        let entry = Entry {
            // With the holding that was read instead of it.
            before: ending.is_read.then(|| audit_entries::before(unlock)).flatten(),
            after: audit_entries::after(state, &ending),
            ..audit_entries::entry(unlock, AuditPhase::Outcome, state.as_str(), by)
        };
        let mut tx = self.db().begin().await?;
        let appended = self.audit.append_in(&mut tx, entry).await?;
        let change = (UnlockState::Pending, state);
        let now = self.now_ms();
        if !store::end(&mut tx, &unlock.id, change, &ending, appended.seq, now).await? {
            return Ok(false);
        }
        tx.commit().await?;
        self.audit.export(&appended).await;
        Ok(true)
    }

    pub(super) async fn expire(&self, unlock: &Unlock) -> Result<(), UnlockError> {
        self.end_pending(
            unlock,
            UnlockState::Expired,
            EndedHolding::default(),
            audit_entries::system_actor(),
        )
        .await
    }
}
