//! The second step: the owner types the name, the lock is checked again, then the unlock is executed.

use std::sync::Arc;

use domain::access::Permission;
use domain::audit::AuditPhase;
use domain::force_release::{BlastRadius, Casualty, CasualtyKind, Holding};
use domain::format;
use domain::unlock::{EndedHolding, Unlock, UnlockReason, UnlockState, is_the_name};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::fresh_read::{match_holding, no_answer};
use super::intent::{may_unlock, parse_reason, stays_in_scope};
use super::limits::MISMATCHES_MAX;
use super::protection::Protection;
use super::second_approver::requester;
use super::store::{self, Value};
use super::weak_identity::check_weak_identity;
use super::{UnlockError, Unlocks, audit_entries};
use crate::audit::Entry;
use crate::identity::Principal;
use runtime::tasks;
use tracing::Instrument as _;

/// The confirmation form.
#[derive(Debug, Clone)]
pub struct Confirmation {
    pub resource: String,
    /// The second reason, for a break-glass unlock without a second approver.
    pub break_glass: Option<String>,
}

impl Unlocks {
    /// Executes the intent once, or returns why not. Continues when the client disconnects.
    ///
    /// # Errors
    /// Each is recorded in the audit log.
    pub async fn confirm(
        self: &Arc<Self>,
        who: &Principal,
        id: &str,
        confirmation: Confirmation,
    ) -> Result<Unlock, UnlockError> {
        let (sender, answer) = tokio::sync::oneshot::channel();
        let (unlocks, who, id) = (self.clone(), who.clone(), id.to_owned());
        // Not the server's token: an execution that has begun is not cancelled by a shutdown within its deadline.
        tasks::spawn(
            "forced unlock",
            CancellationToken::new(),
            async move {
                // The client has disconnected; the result is in the audit log.
                let _ = sender.send(Box::pin(unlocks.check_and_act(&who, &id, confirmation)).await);
            }
            .in_current_span(),
        );
        answer.await.unwrap_or(Err(UnlockError::CutOff))
    }

    async fn check_and_act(
        &self,
        who: &Principal,
        id: &str,
        confirmation: Confirmation,
    ) -> Result<Unlock, UnlockError> {
        let unlock = self.step_on(who, "confirm", id).await?;
        let checked = self.check(who, &unlock, &confirmation).await;
        if let Err(error) = &checked
            && !error.is_recorded()
        {
            self.record_rejected_step(who, Permission::Unlock, &unlock, error)
                .await;
        }
        let done = match checked.map_err(|error| error.limited(who, &unlock.backend))? {
            Checked::Ready(ready) => {
                let (claimed, begun) = match self.claim(who, &unlock, &ready).await {
                    Ok(claimed) => claimed,
                    Err(error) => {
                        self.record_rejected_step(who, Permission::Unlock, &unlock, &error)
                            .await;
                        return Err(error);
                    }
                };
                Box::pin(self.act(who, claimed, begun)).await
            }
            Checked::Wider(why) => self.refuse(who, &unlock, why).await,
            Checked::Gone(now) => Box::pin(self.end_as_gone(who, &unlock, now)).await,
        };
        done.map_err(|error| error.limited(who, &unlock.backend))
    }

    /// Checks before the execution. The lock is not touched, and the intent stays open after most refusals.
    async fn check(
        &self,
        who: &Principal,
        unlock: &Unlock,
        confirmation: &Confirmation,
    ) -> Result<Checked, UnlockError> {
        if unlock.by_id != who.id() {
            return Err(UnlockError::forbidden("this intent belongs to another user"));
        }
        self.check_pending(unlock).await?;
        may_unlock(who, &unlock.backend, &unlock.resource.text())?;
        let break_glass_reason = confirmation.break_glass.as_deref();
        let break_glass_reason = break_glass_reason
            .map(|text| second_reason(text, &unlock.reason))
            .transpose()?;
        let shown_radius = &unlock.observed.blast_radius;
        let protection = self.protection(unlock, shown_radius).await?;
        self.check_protection(who, unlock, &protection, break_glass_reason.as_ref())
            .await?;
        if !is_the_name(&confirmation.resource, &unlock.resource) {
            return Err(self.count_mismatch(who, unlock).await?);
        }
        let backend = self.unlockable_backend(&unlock.backend)?;
        let inspection = self
            .fresh(&*backend, &unlock.source, &unlock.resource)
            .await
            .map_err(|error| no_answer(&unlock.backend, &error))?;
        let (lock, now, _) = match match_holding(inspection, &unlock.observed.generation, None) {
            Ok(held) => held,
            // Not left to the adapter: the same session could hold this lock again by then, with others that were
            // neither reviewed nor approved.
            Err(UnlockError::HolderChanged { now, .. }) => return Ok(Checked::Gone(now)),
            Err(other) => return Err(other),
        };
        check_weak_identity(&unlock.observed, &lock, self.clock.now().wall)?;
        // First: a resource outside the scope must not be named in later errors.
        stays_in_scope(&who.grants, &unlock.backend, &now)?;
        if let Some(why) = widening_reason(shown_radius, &now) {
            return Ok(Checked::Wider(why));
        }
        let protection = self.protection(unlock, &now).await?;
        self.check_protection(who, unlock, &protection, break_glass_reason.as_ref())
            .await?;
        // Without a second approver rule there is no break-glass.
        let break_glass_reason = break_glass_reason.filter(|_| protection.is_protected());
        Ok(Checked::Ready(Box::new(Ready {
            break_glass_reason,
            protection,
            radius: now,
        })))
    }

    /// Checks that the intent is pending and has not expired.
    pub(super) async fn check_pending(&self, unlock: &Unlock) -> Result<(), UnlockError> {
        match unlock.state {
            // The last allowed mismatch was counted; the cancellation is about to be written.
            UnlockState::Pending if unlock.mismatches >= MISMATCHES_MAX => Err(UnlockError::AlreadyUsed {
                state: UnlockState::Cancelled,
            }),
            UnlockState::Pending if self.now_ms() < unlock.expires_at.timestamp_millis() => Ok(()),
            UnlockState::Pending => {
                self.expire(unlock).await?;
                Err(UnlockError::Expired)
            }
            UnlockState::Expired => Err(UnlockError::Expired),
            state => Err(UnlockError::AlreadyUsed { state }),
        }
    }

    /// Requirements of a protected lock: fresh authentication, and an approver who still may approve or a
    /// break-glass reason.
    async fn check_protection(
        &self,
        who: &Principal,
        unlock: &Unlock,
        protection: &Protection,
        break_glass_reason: Option<&UnlockReason>,
    ) -> Result<(), UnlockError> {
        if !protection.is_protected() {
            return Ok(());
        }
        let is_fresh = who
            .session
            .as_ref()
            .is_some_and(|session| self.identity.is_fresh(session));
        if !is_fresh {
            return Err(UnlockError::NeedsReauthentication {
                why: protection.why(who, &unlock.backend),
            });
        }
        if break_glass_reason.is_none() {
            let firsts = [requester(unlock), self.identity.lineage(who)];
            self.check_approval(who, unlock, protection, &firsts).await?;
        }
        Ok(())
    }

    /// Counts a wrong name; the third one cancels the intent.
    async fn count_mismatch(&self, who: &Principal, unlock: &Unlock) -> Result<UnlockError, UnlockError> {
        let statement = "UPDATE unlocks SET mismatches = mismatches + 1
            WHERE id = $1 AND state = 'pending' AND mismatches < $2";
        let mut tx = self.db().begin().await?;
        let left = MISMATCHES_MAX.saturating_sub(unlock.mismatches + 1);
        let error = UnlockError::NameMismatch { left };
        let (actor, origin) = audit_entries::actor_and_origin(who, Permission::Unlock, unlock);
        let entry = Entry {
            after: Some(json!({"why": error.to_string()})),
            ..audit_entries::entry(unlock, AuditPhase::Intent, error.code(), (actor, origin))
        };
        let appended = self.audit.append_in(&mut tx, entry).await?;
        let values = [
            Value::Text(&unlock.id),
            Value::Int(i64::from(unlock.mismatches) + 1),
        ];
        let counted = store::change(&mut tx, statement, &values).await?;
        if counted == 0 {
            // A concurrent confirmation of the same intent was first.
            drop(tx);
            let now = store::get(self.db(), &unlock.id).await?;
            let now = now.ok_or(UnlockError::CutOff)?;
            self.check_pending(&now).await?;
            return Box::pin(self.count_mismatch(who, &now)).await;
        }
        tx.commit().await?;
        self.audit.export(&appended).await;
        if left == 0 {
            let by = audit_entries::actor_and_origin(who, Permission::Unlock, unlock);
            let ending = EndedHolding {
                why: Some("three wrong names were typed".to_owned()),
                ..EndedHolding::default()
            };
            self.end_pending(unlock, UnlockState::Cancelled, ending, by)
                .await?;
        }
        Ok(error)
    }

    async fn refuse(&self, who: &Principal, unlock: &Unlock, why: String) -> Result<Unlock, UnlockError> {
        let ending = EndedHolding {
            why: Some(why),
            remedy: Some(WIDER_REMEDY.to_owned()),
            ..EndedHolding::default()
        };
        let by = audit_entries::actor_and_origin(who, Permission::Unlock, unlock);
        self.end_pending(unlock, UnlockState::Refused, ending, by).await?;
        self.get(who, &unlock.id).await
    }

    /// Ends an intent whose holding has ended before the release: without a claim, and without a request to release.
    /// `now` is the current holding.
    async fn end_as_gone(
        &self,
        who: &Principal,
        unlock: &Unlock,
        now: Option<Box<Holding>>,
    ) -> Result<Unlock, UnlockError> {
        let state = match &now {
            Some(_) => UnlockState::HolderChanged,
            None => UnlockState::AlreadyFree,
        };
        let ending = EndedHolding {
            now: now.as_deref().cloned(),
            is_read: true,
            ..EndedHolding::default()
        };
        let by = audit_entries::actor_and_origin(who, Permission::Unlock, unlock);
        if !self.end_if_pending(unlock, state, ending, by).await? {
            // A concurrent step of the same intent was first.
            let stored = store::get(self.db(), &unlock.id).await?;
            let stored = stored.ok_or(UnlockError::CutOff)?;
            let error = match self.check_pending(&stored).await {
                Err(error) => error,
                Ok(()) => UnlockError::CutOff,
            };
            self.record_rejected_step(who, Permission::Unlock, unlock, &error)
                .await;
            return Err(error);
        }
        self.report(who, unlock, state);
        if now.is_some() {
            return Err(UnlockError::HolderChanged {
                before: Some(Box::new(unlock.observed.holding())),
                now,
            });
        }
        self.get(who, &unlock.id).await
    }
}

/// Result of the checks, for the claim.
pub(super) struct Ready {
    /// Break-glass: the second reason.
    pub(super) break_glass_reason: Option<UnlockReason>,
    pub(super) protection: Protection,
    /// As of the latest read.
    pub(super) radius: BlastRadius,
}

enum Checked {
    Ready(Box<Ready>),
    /// More would be released than was shown.
    Wider(String),
    /// The reviewed holding has ended; with the current one.
    Gone(Option<Box<Holding>>),
}

fn second_reason(text: &str, first: &str) -> Result<UnlockReason, UnlockError> {
    let reason = parse_reason("breakGlassReason", text)?;
    if reason.as_str() == first {
        let weakness = domain::unlock::WeakReason::Same;
        return Err(UnlockError::WeakReason {
            field: "breakGlassReason",
            weakness,
        });
    }
    Ok(reason)
}

pub(super) const WIDER_REMEDY: &str = "Request a new intent: it lists the locks that are released now.";

/// Locks and keys added to the blast radius since it was shown; those that are not listed are compared by their number. A
/// changed session description does not count.
pub(super) fn widening_reason(shown: &BlastRadius, now: &BlastRadius) -> Option<String> {
    let is_more = |casualty: &&Casualty| {
        let is_shown = |other: &Casualty| (other.kind, &other.what) == (casualty.kind, &casualty.what);
        matches!(casualty.kind, CasualtyKind::Lock | CasualtyKind::Key) && !shown.dies.iter().any(is_shown)
    };
    let more: Vec<&Casualty> = now.dies.iter().filter(is_more).collect();
    let Some(first) = more.first() else {
        let unlisted = format::counted(now.unlisted, "lock", "locks");
        let why = format!(
            "{}: {unlisted} that are not listed, instead of {}",
            BlastRadius::WIDER,
            shown.unlisted
        );
        return (now.unlisted > shown.unlisted).then_some(why);
    };
    let suffix = match more.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!("{}: {}{suffix}", BlastRadius::WIDER, first.what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_another_lock_or_key_widens_the_blast_radius() {
        // Same, fewer, or another session text: not wider. One more lock: wider, and named.
        let radius = |dies: &[(CasualtyKind, &str)]| {
            let mut radius = BlastRadius::default();
            for (kind, what) in dies {
                radius.add(*kind, *what);
            }
            radius
        };
        let shown = radius(&[
            (CasualtyKind::Session, "app, idle for 1 s"),
            (CasualtyKind::Lock, "advisory key 1"),
        ]);
        assert_eq!(widening_reason(&shown, &shown), None);
        assert_eq!(
            widening_reason(&shown, &radius(&[(CasualtyKind::Session, "app, idle for 9 s")])),
            None
        );
        let more = radius(&[
            (CasualtyKind::Lock, "advisory key 1"),
            (CasualtyKind::Lock, "advisory key 2"),
            (CasualtyKind::Key, "k"),
        ]);
        assert!(
            widening_reason(&shown, &more)
                .unwrap()
                .ends_with("advisory key 2 and 1 more")
        );
        // Beyond the list only the number is known.
        let unlisted = |unlisted| BlastRadius {
            unlisted,
            ..shown.clone()
        };
        assert_eq!(widening_reason(&unlisted(7), &unlisted(7)), None);
        assert_eq!(widening_reason(&unlisted(7), &unlisted(6)), None);
        let why = widening_reason(&unlisted(7), &unlisted(8)).unwrap();
        assert!(
            why.ends_with("8 locks that are not listed, instead of 7"),
            "{why}"
        );
    }
}
