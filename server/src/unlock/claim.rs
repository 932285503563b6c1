//! The claim: one transaction that records the execution, checks permissions for the last time and takes the intent.
//!
//! Every change of users, tokens, roles, protected prefixes and the read-only switch appends to the audit log, and appends are
//! serialized: values read here after this append cannot change before the commit.

use domain::access::Permission;
use domain::audit::AuditPhase;
use domain::duration::millis;
use domain::unlock::{Unlock, UnlockReason, UnlockState};
use serde_json::json;

use super::confirm::Ready;
use super::intent::stays_in_scope;
use super::limits::{ACT_MAX, MISMATCHES_MAX};
use super::protection::protection_of_unlock;
use super::store::{self, Value};
use super::{UnlockError, Unlocks, audit_entries, break_glass_alert, protected_prefixes};
use crate::audit::Entry;
use crate::identity::{Principal, current_principal};
use crate::notify::enqueue;
use runtime::clock::ClockReading;
use runtime::db::Tx;

impl Unlocks {
    /// Takes the intent for execution, with its audit entry and a break-glass notification; all of them or none. The
    /// returned moment is when it began: its deadline counts from there.
    pub(super) async fn claim(
        &self,
        who: &Principal,
        unlock: &Unlock,
        ready: &Ready,
    ) -> Result<(Unlock, ClockReading), UnlockError> {
        let statement =
            "UPDATE unlocks SET state = 'outcome_unknown', acted_at = $1, act_deadline = $2, act_entry = $3,
            break_glass_reason = $4, protection = $7, protection_reason = $8
            WHERE id = $5 AND state = 'pending' AND expires_at > $1 AND mismatches < $6
            AND coalesce(approver_id, '') = $9";
        let break_glass_reason = ready.break_glass_reason.as_ref();
        let approver = unlock.approval.as_ref().map_or("", |approval| &approval.by_id);
        let reason = serde_json::to_string(&ready.protection.reason);
        let reason = reason.map_err(|error| sqlx::Error::Encode(Box::new(error)))?;
        let act_max = millis(ACT_MAX);
        let after = break_glass_reason.map(|reason| json!({"breakGlass": reason.as_str()}));
        let entry = Entry {
            before: audit_entries::before(unlock),
            after,
            ..audit_entries::entry(
                unlock,
                AuditPhase::Act,
                "begun",
                audit_entries::actor_and_origin(who, Permission::Unlock, unlock),
            )
        };
        let mut tx = self.db().begin().await?;
        let appended = self.audit.append_in(&mut tx, entry).await?;
        // After the wait for other appends.
        let begun = self.clock.now();
        let now = begun.wall.timestamp_millis();
        self.recheck(&mut tx, who, unlock, ready).await?;
        let values = [
            Value::Int(now),
            Value::Int(now.saturating_add(act_max)),
            Value::Int(appended.seq),
            Value::MaybeText(break_glass_reason.map(UnlockReason::as_str)),
            Value::Text(&unlock.id),
            Value::Int(i64::from(MISMATCHES_MAX)),
            Value::Text(ready.protection.level.as_str()),
            Value::MaybeText(ready.protection.reason.is_some().then_some(&*reason)),
            Value::Text(approver),
        ];
        if store::change(&mut tx, statement, &values).await? == 0 {
            drop(tx);
            if let Some(stored) = store::get(self.db(), &unlock.id).await? {
                self.check_pending(&stored).await?;
            }
            return Err(UnlockError::Expired);
        }
        if let Some(reason) = break_glass_reason {
            // Without the notification the execution does not start.
            let notice = break_glass_alert::notice(unlock, reason.as_str(), now, None);
            enqueue(&mut tx, &notice, now).await?;
        }
        tx.commit().await?;
        self.notifier.wake();
        self.audit.export(&appended).await;
        let claimed = store::get(self.db(), &unlock.id).await;
        // Already claimed: a failed read must not stop an execution that the audit log has as started.
        let claimed = claimed.ok().flatten().unwrap_or_else(|| Unlock {
            state: UnlockState::OutcomeUnknown,
            act_entry: Some(appended.seq),
            ..unlock.clone()
        });
        Ok((claimed, begun))
    }

    /// Checks that the confirming user and the approver still have their permissions, in the store and not in the
    /// cached directory, and that the lock has not become protected.
    ///
    /// # Errors
    /// A permission was removed, a protection was added, or the store does not answer: the transaction must be rolled back.
    async fn recheck(
        &self,
        tx: &mut Tx,
        who: &Principal,
        unlock: &Unlock,
        ready: &Ready,
    ) -> Result<(), UnlockError> {
        if current_principal::is_read_only(tx).await? {
            return Err(UnlockError::forbidden("the console is read-only for now"));
        }
        if let Some(session) = &who.session
            && !current_principal::is_session_open(tx, &session.id).await?
        {
            return Err(UnlockError::forbidden("your session has ended; sign in again"));
        }
        let (backend, name) = (&unlock.backend, unlock.resource.text());
        let grants = current_principal::grants(tx, who.id(), self.now_ms()).await?;
        let grants = grants
            .filter(|grants| grants.may(Permission::Unlock, backend, &name))
            .ok_or_else(|| UnlockError::forbidden("this needs the permission `unlock` on this resource"))?;
        stays_in_scope(&grants, backend, &ready.radius)?;
        let rules = protected_prefixes::all_in(tx).await?;
        let protection = protection_of_unlock(&rules, unlock, &ready.radius);
        if protection.is_protected() && !ready.protection.is_protected() {
            return Err(UnlockError::NeedsApproval {
                why: "this lock has just become protected; confirm again".to_owned(),
            });
        }
        if !protection.is_protected() || ready.break_glass_reason.is_some() {
            return Ok(());
        }
        let approver = unlock.approval.as_ref().map_or("", |approval| &approval.by_id);
        let grants = current_principal::grants(tx, approver, self.now_ms()).await?;
        match grants {
            Some(grants) if protection.may_be_approved_with(&grants, unlock) => Ok(()),
            _ => Err(UnlockError::approval_lapsed()),
        }
    }
}
