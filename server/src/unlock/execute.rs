//! Execution, and recording of its outcome. In between, the stored state is "outcome unknown".

use std::time::Duration;

use domain::access::Permission;
use domain::audit::AuditPhase;
use domain::force_release::{Act, CasualtyKind, Release};
use domain::names::BackendName;
use domain::unlock::{EndedHolding, ProtectionLevel, Unlock, UnlockState};
use serde_json::json;

use super::confirm::{WIDER_REMEDY, widening_reason};
use super::fresh_read::match_holding;
use super::limits::ACT_MAX;
use super::{UnlockError, Unlocks, audit_entries, finding, store};
use crate::audit::{Actor, Entry, Origin};
use crate::identity::Principal;
use backends::{Backend, BackendError};
use runtime::clock::ClockReading;
use runtime::telemetry::instruments;
use runtime::telemetry::instruments::{BackendAttributes, Protected};
use tracing::Instrument as _;

/// An outcome that is not yet written.
#[derive(Debug, Clone)]
pub(super) struct PendingOutcome {
    pub(super) unlock: Unlock,
    pub(super) state: UnlockState,
    pub(super) ending: EndedHolding,
    pub(super) by: (Actor, Origin),
}

impl PendingOutcome {
    pub(super) fn entry(&self) -> Entry {
        let Self {
            unlock,
            state,
            ending,
            by,
        } = self;
        Entry {
            before: audit_entries::before(unlock),
            after: audit_entries::after(*state, ending),
            ..audit_entries::entry(unlock, AuditPhase::Outcome, state.as_str(), by.clone())
        }
    }
}

impl Unlocks {
    /// Asks the backend to end the holding of the intent. `unlock` is claimed: its execution is in the audit log, and its
    /// deadline counts from `begun`.
    pub(super) async fn act(
        &self,
        who: &Principal,
        unlock: Unlock,
        begun: ClockReading,
    ) -> Result<Unlock, UnlockError> {
        let span = tracing::debug_span!(
            "forced_unlock",
            unlock.id = unlock.id,
            audit.id = unlock.act_entry,
            lock.backend = %unlock.backend,
            lock.resource = %audit_entries::short(&unlock.resource)
        );
        Box::pin(self.do_act(who, unlock, begun)).instrument(span).await
    }

    async fn do_act(
        &self,
        who: &Principal,
        unlock: Unlock,
        begun: ClockReading,
    ) -> Result<Unlock, UnlockError> {
        if unlock.break_glass.is_some() {
            tracing::error!(
                lock.backend = %unlock.backend, lock.resource = %audit_entries::short(&unlock.resource), unlock.id = unlock.id,
                "{} unlocks {} on {} without a second approver (break-glass)",
                who.name(), audit_entries::short(&unlock.resource), unlock.backend
            );
        }
        let answer = self.release_holder(who, &unlock, begun).await;
        let before = unlock.observed.holding();
        let stale = answer.as_ref().err().map(|error| UnlockError::Stale {
            why: format!(
                "The request to {} failed, and nothing was released: {error}",
                unlock.backend
            ),
            remedy: Some(error.remedy()),
        });
        let (state, ending) = self.ending(&unlock, answer).await;
        let pending = PendingOutcome {
            by: audit_entries::actor_and_origin(who, Permission::Unlock, &unlock),
            unlock,
            state,
            ending,
        };
        self.report(who, &pending.unlock, state);
        let written = self.write(&pending).await;
        if let Err(error) = written {
            tracing::error!(
                "the result of a forced unlock could not be written to the audit log yet: {error}"
            );
            return Ok(self.write_later(pending));
        }
        match (stale, pending.state) {
            (Some(stale), _) => Err(stale),
            (None, UnlockState::HolderChanged) => Err(UnlockError::HolderChanged {
                before: Some(Box::new(before)),
                now: pending.ending.now.map(Box::new),
            }),
            (None, _) => self.stored_state(pending).await,
        }
    }

    /// The outcome, in the log and in the metrics.
    pub(super) fn report(&self, who: &Principal, unlock: &Unlock, state: UnlockState) {
        tracing::info!(
            lock.backend = %unlock.backend, lock.resource = %audit_entries::short(&unlock.resource),
            event = "forced_unlock", audit.id = unlock.act_entry.unwrap_or(unlock.intent_entry),
            unlock.id = unlock.id, unlock.state = state.as_str(),
            "forced unlock by {}: {}", who.name(), state.as_str()
        );
        let Some(kind) = self.inventory.kind_of(&unlock.backend) else {
            return;
        };
        let of = BackendAttributes {
            name: unlock.backend.as_str().into(),
            system: kind.as_str(),
        };
        let protected = match (&unlock.break_glass, unlock.protection) {
            (Some(_), _) => Protected::BreakGlass,
            (None, ProtectionLevel::Protected) => Protected::Yes,
            (None, ProtectionLevel::Standard) => Protected::No,
        };
        instruments().unlocked(&of, state.as_str(), protected);
    }

    async fn release_holder(
        &self,
        who: &Principal,
        unlock: &Unlock,
        begun: ClockReading,
    ) -> Result<Release, BackendError> {
        let Some(backend) = self.backends.get(&unlock.backend) else {
            return Err(not_configured(&unlock.backend));
        };
        let act = Act {
            by: who.name().into(),
            reason: unlock.reason.as_str().into(),
            audit_id: unlock.act_entry.unwrap_or(unlock.intent_entry).to_string().into(),
        };
        let generation = &unlock.observed.generation;
        if let Some(result) = Box::pin(self.compare_again(&*backend, unlock)).await? {
            return Ok(result);
        }
        // Directly before the request: after the deadline other processes may have read the lock and recorded a result.
        let Some(left) = time_left(begun, self.clock.now()) else {
            return Ok(Release::refused(
                format!(
                    "the release was not sent within {} s of its beginning; nothing was released",
                    ACT_MAX.as_secs()
                ),
                "Check whether the server is overloaded or was suspended, then review the lock again.",
            ));
        };
        let release = backend.release(&unlock.source, &unlock.resource, generation, &act);
        tokio::time::timeout(left, release).await.unwrap_or_else(|_| {
            Ok(Release::OutcomeUnknown {
                why: format!("no answer within {} s", ACT_MAX.as_secs()),
            })
        })
    }

    /// The claim may have waited for other transactions. If the release ends a session, the locks of that session are compared
    /// once more with those that were reviewed. `None` if it may be ended.
    async fn compare_again(
        &self,
        backend: &dyn Backend,
        unlock: &Unlock,
    ) -> Result<Option<Release>, BackendError> {
        let reviewed = &unlock.observed.blast_radius;
        let mut casualties = reviewed.dies.iter();
        if !casualties.any(|casualty| casualty.kind == CasualtyKind::Session) {
            return Ok(None);
        }
        let inspection = self.fresh(backend, &unlock.source, &unlock.resource).await?;
        Ok(
            match match_holding(inspection, &unlock.observed.generation, None) {
                Ok((_, now, _)) => {
                    widening_reason(reviewed, &now).map(|why| Release::refused(why, WIDER_REMEDY))
                }
                Err(UnlockError::HolderChanged { now: Some(now), .. }) => {
                    Some(Release::HolderChanged { now })
                }
                Err(UnlockError::HolderChanged { now: None, .. }) => Some(Release::AlreadyFree),
                Err(error) => Some(Release::refused(error.to_string(), WIDER_REMEDY)),
            },
        )
    }

    async fn ending(
        &self,
        unlock: &Unlock,
        answer: Result<Release, BackendError>,
    ) -> (UnlockState, EndedHolding) {
        match answer {
            Ok(Release::Released) => (UnlockState::Released, self.ending_as_read(unlock).await),
            Ok(Release::AlreadyFree) => (
                UnlockState::AlreadyFree,
                EndedHolding {
                    is_read: true,
                    ..EndedHolding::default()
                },
            ),
            Ok(Release::HolderChanged { now }) => (
                UnlockState::HolderChanged,
                EndedHolding {
                    now: Some(*now),
                    is_read: true,
                    ..EndedHolding::default()
                },
            ),
            Ok(Release::Refused { why, remedy }) => (
                UnlockState::Refused,
                EndedHolding {
                    why: Some(why),
                    remedy: Some(remedy),
                    ..EndedHolding::default()
                },
            ),
            Ok(Release::OutcomeUnknown { why }) => (
                UnlockState::OutcomeUnknown,
                EndedHolding {
                    why: Some(why),
                    ..EndedHolding::default()
                },
            ),
            Ok(Release::OnNodes { result, nodes }) => {
                let (state, ending) = Box::pin(self.ending(unlock, Ok(*result))).await;
                (state, EndedHolding { nodes, ..ending })
            }
            Err(error) => (
                UnlockState::Refused,
                EndedHolding {
                    why: Some(format!(
                        "the request to the backend failed, and nothing was released: {error}"
                    )),
                    remedy: Some(error.remedy()),
                    ..EndedHolding::default()
                },
            ),
        }
    }

    /// The current holder, from one more read if possible.
    async fn ending_as_read(&self, unlock: &Unlock) -> EndedHolding {
        let Some(backend) = self.backends.get(&unlock.backend) else {
            return EndedHolding::default();
        };
        match self.fresh(&*backend, &unlock.source, &unlock.resource).await {
            Ok(seen) => EndedHolding {
                now: finding::holder(&seen),
                is_read: true,
                ..EndedHolding::default()
            },
            Err(error) => EndedHolding {
                why: Some(format!("the present holder could not be read: {error}")),
                ..EndedHolding::default()
            },
        }
    }

    /// Writes the audit entry of the outcome and the state in one transaction. If another process was first with
    /// another outcome, an answer of the backend corrects it.
    ///
    /// # Errors
    /// The store refuses or does not answer.
    pub(super) async fn write(&self, pending: &PendingOutcome) -> Result<(), sqlx::Error> {
        let expected = UnlockState::OutcomeUnknown;
        if self.write_over(pending, expected, pending.entry()).await? {
            return Ok(());
        }
        self.correct(pending).await
    }

    /// Whether the stored state was the expected one; otherwise nothing is written.
    async fn write_over(
        &self,
        pending: &PendingOutcome,
        expected: UnlockState,
        entry: Entry,
    ) -> Result<bool, sqlx::Error> {
        let mut tx = self.db().begin().await?;
        let appended = self.audit.append_in(&mut tx, entry).await?;
        let change = (expected, pending.state);
        let now = self.now_ms();
        let (id, ending) = (&pending.unlock.id, &pending.ending);
        if !store::end(&mut tx, id, change, ending, appended.seq, now).await? {
            return Ok(false);
        }
        tx.commit().await?;
        self.audit.export(&appended).await;
        Ok(true)
    }

    /// The backend answered after another process had recorded an outcome from reads, because this one was suspended or
    /// could not write. The answer counts; its entry names the corrected one.
    async fn correct(&self, pending: &PendingOutcome) -> Result<(), sqlx::Error> {
        let is_answer = !pending.ending.is_by_rereading && pending.state != UnlockState::OutcomeUnknown;
        let stored = store::get(self.db(), &pending.unlock.id).await?;
        let is_final =
            |state: UnlockState| !matches!(state, UnlockState::Pending | UnlockState::OutcomeUnknown);
        let is_wrong = |stored: &Unlock| is_final(stored.state) && stored.state != pending.state;
        let Some(stored) = stored.filter(|stored| is_answer && is_wrong(stored)) else {
            return Ok(());
        };
        tracing::error!(
            unlock.id = stored.id,
            "unlock {} is recorded as {}; the backend has answered: {}. The record is corrected",
            stored.id,
            stored.state.as_str(),
            pending.state.as_str()
        );
        let mut entry = pending.entry();
        if let Some(after) = &mut entry.after {
            after["corrects"] = json!({"state": stored.state.as_str(), "entry": stored.outcome_entry});
        }
        self.write_over(pending, stored.state, entry).await?;
        Ok(())
    }

    fn write_later(&self, pending: PendingOutcome) -> Unlock {
        let unlock = Unlock {
            state: UnlockState::OutcomeUnknown,
            ending: EndedHolding {
                why: Some("the backend answered; the audit entry could not be written yet".to_owned()),
                ..EndedHolding::default()
            },
            ..pending.unlock.clone()
        };
        self.unwritten.lock().push(pending);
        unlock
    }

    async fn stored_state(&self, pending: PendingOutcome) -> Result<Unlock, UnlockError> {
        let read = store::get(self.db(), &pending.unlock.id).await.ok().flatten();
        Ok(read.unwrap_or(Unlock {
            state: pending.state,
            ending: pending.ending,
            ..pending.unlock
        }))
    }
}

fn not_configured(name: &BackendName) -> BackendError {
    BackendError::Misconfigured {
        detail: format!("{name} is not configured any more"),
        remedy: "Put it back into the configuration.".to_owned(),
    }
}

/// Time until the deadline of an execution; `None` if it has passed. The monotonic clock stops while the machine is
/// suspended, and the wall clock can be set back: the one that has advanced more counts.
fn time_left(begun: ClockReading, now: ClockReading) -> Option<Duration> {
    let by_wall = (now.wall - begun.wall).num_milliseconds();
    let elapsed = by_wall.max(now.tick.since(begun.tick));
    let elapsed = Duration::from_millis(u64::try_from(elapsed).unwrap_or(0));
    ACT_MAX.checked_sub(elapsed).filter(|left| !left.is_zero())
}

#[cfg(test)]
mod tests {
    use runtime::clock::Clock;

    use super::*;

    #[test]
    fn the_deadline_counts_on_the_faster_of_two_clocks() {
        // Half of the time, all of it, a suspended machine, a wall clock that was set back.
        let begun = Clock::start().now();
        let later = |wall_s: i64, tick_s: i64| {
            let now = ClockReading {
                wall: begun.wall + chrono::TimeDelta::seconds(wall_s),
                tick: begun.tick.plus(tick_s * 1_000),
            };
            time_left(begun, now)
        };
        assert_eq!(later(0, 0), Some(ACT_MAX));
        assert_eq!(later(30, 30), Some(Duration::from_secs(30)));
        assert_eq!(later(60, 60), None);
        assert_eq!(later(3_600, 1), None);
        assert_eq!(later(-3_600, 60), None);
        assert_eq!(later(-3_600, 59), Some(Duration::from_secs(1)));
    }
}
