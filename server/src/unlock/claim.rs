//! The claim: one transaction that records the act, checks permissions for the last time, and takes the intent.
//!
//! Every change of users, tokens, roles and the read-only switch appends to the audit log, and appends are serialized: what
//! is read here after our own append cannot change before the commit.

use domain::access::Right;
use domain::audit::Phase;
use domain::unlock::{Reason, Unlock, UnlockState};
use serde_json::json;

use super::confirm::Ready;
use super::intent::stays_in_scope;
use super::limits::{ACT_MAX, MISMATCHES_MAX};
use super::store::{self, Value};
use super::{UnlockError, Unlocks, alarm, note};
use crate::audit::Entry;
use crate::db::Tx;
use crate::identity::{Who, current};
use crate::notify::enqueue;

impl Unlocks {
    /// Takes the intent for the act: the row of the act is committed with it, and what tells everyone of acting alone, or
    /// nothing of it.
    pub(super) async fn claim(
        &self,
        who: &Who,
        unlock: &Unlock,
        ready: &Ready,
    ) -> Result<Unlock, UnlockError> {
        let statement =
            "UPDATE unlocks SET state = 'outcome_unknown', acted_at = $1, act_deadline = $2, act_row = $3,
            break_glass_reason = $4, tier = $7, tier_reason = $8
            WHERE id = $5 AND state = 'pending' AND expires_at > $1 AND mismatches < $6
            AND coalesce(approver_id, '') = $9";
        let alone = ready.alone.as_ref();
        let approver = unlock.approval.as_ref().map_or("", |approval| &approval.by_id);
        let reason = serde_json::to_string(&ready.protection.reason);
        let reason = reason.map_err(|error| sqlx::Error::Encode(Box::new(error)))?;
        let now = self.now_ms();
        let act_max = i64::try_from(ACT_MAX.as_millis()).unwrap_or(i64::MAX);
        let after = alone.map(|reason| json!({"breakGlass": reason.as_str()}));
        let entry = Entry {
            before: note::before(unlock),
            after,
            ..note::entry(unlock, Phase::Act, "begun", note::by(who, Right::Unlock, unlock))
        };
        let mut tx = self.db().begin().await?;
        let appended = self.audit.append_in(&mut tx, entry).await?;
        self.recheck(&mut tx, who, unlock, ready).await?;
        let values = [
            Value::Int(now),
            Value::Int(now.saturating_add(act_max)),
            Value::Int(appended.seq),
            Value::MaybeText(alone.map(Reason::as_str)),
            Value::Text(&unlock.id),
            Value::Int(i64::from(MISMATCHES_MAX)),
            Value::Text(ready.protection.tier.wire()),
            Value::MaybeText(ready.protection.reason.is_some().then_some(&*reason)),
            Value::Text(approver),
        ];
        if store::change(&mut tx, statement, &values).await? == 0 {
            drop(tx);
            if let Some(standing) = store::get(self.db(), &unlock.id).await? {
                self.is_pending(&standing).await?;
            }
            return Err(UnlockError::Expired);
        }
        if let Some(reason) = alone {
            // Without the notification the act does not begin.
            let notice = alarm::notice(unlock, reason.as_str(), now, None);
            enqueue(&mut tx, &notice, now).await?;
        }
        tx.commit().await?;
        self.notifier.wake();
        self.audit.export(&appended).await;
        let claimed = store::get(self.db(), &unlock.id).await;
        // It is claimed: not being able to read it back must not stop what the record says has begun.
        Ok(claimed.ok().flatten().unwrap_or_else(|| Unlock {
            state: UnlockState::OutcomeUnknown,
            act_row: Some(appended.seq),
            ..unlock.clone()
        }))
    }

    /// Whether the person who confirms, and the approver, still may; by the store, not by the directory in memory.
    ///
    /// # Errors
    /// They may not, or the store does not answer: the transaction must be given up.
    async fn recheck(
        &self,
        tx: &mut Tx,
        who: &Who,
        unlock: &Unlock,
        ready: &Ready,
    ) -> Result<(), UnlockError> {
        if current::is_read_only(tx).await? {
            return Err(UnlockError::forbidden("the console is read-only for now"));
        }
        if let Some(session) = &who.session
            && !current::is_session_open(tx, &session.id).await?
        {
            return Err(UnlockError::forbidden("your session has ended; sign in again"));
        }
        let (backend, name) = (&unlock.backend, unlock.resource.text());
        let grants = current::grants(tx, who.id(), self.now_ms()).await?;
        let grants = grants
            .filter(|grants| grants.may(Right::Unlock, backend, &name))
            .ok_or_else(|| UnlockError::forbidden("this needs the right unlock on this resource"))?;
        stays_in_scope(&grants, backend, &ready.radius)?;
        if !ready.protection.is_protected() || ready.alone.is_some() {
            return Ok(());
        }
        let approver = unlock.approval.as_ref().map_or("", |approval| &approval.by_id);
        let grants = current::grants(tx, approver, self.now_ms()).await?;
        match grants {
            Some(grants) if ready.protection.may_be_approved_with(&grants, unlock) => Ok(()),
            _ => Err(UnlockError::approval_lapsed()),
        }
    }
}
