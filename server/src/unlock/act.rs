//! The act, and writing down what came of it. Between the two the record says: begun, outcome unknown.

use std::sync::PoisonError;

use domain::access::Right;
use domain::audit::Phase;
use domain::names::BackendName;
use domain::release::{Act, Holding, Release};
use domain::unlock::{Ending, Unlock, UnlockState};

use super::limits::ACT_MAX;
use super::tending::is_over;
use super::{UnlockError, Unlocks, note, store};
use crate::audit::{Actor, Entry, Origin};
use crate::backends::BackendError;
use crate::identity::Who;
use crate::telemetry::meters;
use crate::telemetry::meters::Of;
use tracing::Instrument as _;

/// An outcome, to be written.
#[derive(Debug, Clone)]
pub(super) struct Told {
    pub(super) unlock: Unlock,
    pub(super) state: UnlockState,
    pub(super) ending: Ending,
    pub(super) by: (Actor, Origin),
}

impl Unlocks {
    /// Asks the backend to end the holding that was looked at. `unlock` is claimed: its act is in the record.
    pub(super) async fn act(&self, who: &Who, unlock: Unlock) -> Result<Unlock, UnlockError> {
        let span = tracing::debug_span!(
            "forced_unlock",
            unlock.id = unlock.id,
            audit.id = unlock.act_row,
            lock.backend = %unlock.backend,
            lock.resource = %note::short(&unlock.resource)
        );
        Box::pin(self.do_act(who, unlock)).instrument(span).await
    }

    async fn do_act(&self, who: &Who, unlock: Unlock) -> Result<Unlock, UnlockError> {
        if unlock.break_glass.is_some() {
            tracing::error!(
                lock.backend = %unlock.backend, lock.resource = %note::short(&unlock.resource), unlock.id = unlock.id,
                "{} breaks {} on {} alone, without a second person (break-glass)",
                who.name(), note::short(&unlock.resource), unlock.backend
            );
        }
        let answer = self.ask(who, &unlock).await;
        let before = unlock.observed.holding();
        let stale = answer.as_ref().err().map(|error| UnlockError::Stale {
            why: format!(
                "{} could not be asked, and nothing was done: {error}",
                unlock.backend
            ),
            mend: Some(error.mend()),
        });
        let (state, ending) = self.ending(&unlock, answer).await;
        let told = Told {
            by: note::by(who, Right::Unlock, &unlock),
            unlock,
            state,
            ending,
        };
        tracing::info!(
            lock.backend = %told.unlock.backend, lock.resource = %note::short(&told.unlock.resource),
            event = "forced_unlock", audit.id = told.unlock.act_row,
            unlock.id = told.unlock.id, unlock.state = state.wire(),
            "forced unlock by {}: {}", who.name(), state.wire()
        );
        self.count(&told);
        let written = self.write(&told).await;
        if let Err(error) = written {
            tracing::error!("the outcome of a forced unlock could not be recorded yet: {error}");
            return Ok(self.write_later(told));
        }
        match (stale, told.state) {
            (Some(stale), _) => Err(stale),
            (None, UnlockState::HolderChanged) => Err(UnlockError::HolderChanged {
                before: Some(Box::new(before)),
                now: told.ending.now.map(Box::new),
            }),
            (None, _) => self.standing(told).await,
        }
    }

    fn count(&self, told: &Told) {
        let Some(kind) = self.inventory.kind_of(&told.unlock.backend) else {
            return;
        };
        let of = Of {
            name: told.unlock.backend.as_str().into(),
            system: kind.wire(),
        };
        let tier = match told.unlock.break_glass {
            Some(_) => "break_glass",
            None => told.unlock.tier.wire(),
        };
        meters().unlocked(&of, told.state.wire(), tier);
    }

    async fn ask(&self, who: &Who, unlock: &Unlock) -> Result<Release, BackendError> {
        let Some(backend) = self.backends.get(&unlock.backend) else {
            return Err(not_configured(&unlock.backend));
        };
        let act = Act {
            by: who.name().into(),
            reason: unlock.reason.as_str().into(),
            audit_id: unlock.act_row.unwrap_or(unlock.intent_row).to_string().into(),
        };
        let generation = &unlock.observed.generation;
        let release = backend.release(&unlock.source, &unlock.resource, generation, &act);
        tokio::time::timeout(ACT_MAX, release).await.unwrap_or_else(|_| {
            Ok(Release::OutcomeUnknown {
                why: format!("no answer within {} s", ACT_MAX.as_secs()),
            })
        })
    }

    async fn ending(&self, unlock: &Unlock, answer: Result<Release, BackendError>) -> (UnlockState, Ending) {
        match answer {
            Ok(Release::Released) => (UnlockState::Released, self.ending_as_read(unlock).await),
            Ok(Release::AlreadyFree) => (
                UnlockState::AlreadyFree,
                Ending {
                    is_read: true,
                    ..Ending::default()
                },
            ),
            Ok(Release::HolderChanged { now }) => (
                UnlockState::HolderChanged,
                Ending {
                    now: Some(*now),
                    is_read: true,
                    ..Ending::default()
                },
            ),
            Ok(Release::Refused { why, mend }) => (
                UnlockState::Refused,
                Ending {
                    why: Some(why),
                    mend: Some(mend),
                    ..Ending::default()
                },
            ),
            Ok(Release::OutcomeUnknown { why }) => (
                UnlockState::OutcomeUnknown,
                Ending {
                    why: Some(why),
                    ..Ending::default()
                },
            ),
            Err(error) => (
                UnlockState::Refused,
                Ending {
                    why: Some(format!(
                        "the backend could not be asked, and nothing was done: {error}"
                    )),
                    mend: Some(error.mend()),
                    ..Ending::default()
                },
            ),
        }
    }

    /// Who holds it now, as far as one more look tells.
    async fn ending_as_read(&self, unlock: &Unlock) -> Ending {
        let Some(backend) = self.backends.get(&unlock.backend) else {
            return Ending::default();
        };
        match self.fresh(&*backend, &unlock.source, &unlock.resource).await {
            Ok(seen) => Ending {
                now: seen
                    .lock
                    .as_ref()
                    .filter(|lock| !is_over(lock))
                    .map(Holding::from),
                is_read: true,
                ..Ending::default()
            },
            Err(error) => Ending {
                why: Some(format!("who holds it now could not be read: {error}")),
                ..Ending::default()
            },
        }
    }

    /// The row of the outcome and the state, together. Nothing, when another one was quicker.
    ///
    /// # Errors
    /// It may not be written.
    pub(super) async fn write(&self, told: &Told) -> Result<(), sqlx::Error> {
        let Told {
            unlock,
            state,
            ending,
            by,
        } = told;
        let entry = Entry {
            before: note::before(unlock),
            after: note::after(*state, ending),
            ..note::entry(unlock, Phase::Outcome, state.wire(), by.clone())
        };
        let mut tx = self.db().begin().await?;
        let appended = self.audit.append_in(&mut tx, entry).await?;
        let change = (UnlockState::OutcomeUnknown, *state);
        let now = self.now_ms();
        if !store::end(&mut tx, &unlock.id, change, ending, appended.seq, now).await? {
            return Ok(());
        }
        tx.commit().await?;
        self.audit.export(&appended).await;
        Ok(())
    }

    fn write_later(&self, told: Told) -> Unlock {
        let unlock = Unlock {
            state: UnlockState::OutcomeUnknown,
            ending: Ending {
                why: Some("the answer came, and the record could not be written yet".to_owned()),
                ..Ending::default()
            },
            ..told.unlock.clone()
        };
        self.unwritten
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(told);
        unlock
    }

    async fn standing(&self, told: Told) -> Result<Unlock, UnlockError> {
        let read = store::get(self.db(), &told.unlock.id).await.ok().flatten();
        Ok(read.unwrap_or(Unlock {
            state: told.state,
            ending: told.ending,
            ..told.unlock
        }))
    }
}

fn not_configured(name: &BackendName) -> BackendError {
    BackendError::Misconfigured {
        detail: format!("{name} is not configured any more"),
        mend: "Put it back into the configuration.".to_owned(),
    }
}
