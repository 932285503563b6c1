//! Tending open unlocks: intents that run out, outcomes that could not be written, acts whose server went away, and
//! reading a lock again whose act nobody answered.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::known::Known;
use domain::observation::{Inspection, Lifetime, ObservedLock};
use domain::release::Holding;
use domain::unlock::{Ending, Unlock, UnlockState};

use super::act::Told;
use super::limits::{DEADLINE_SLACK, REREAD_EVERY, REREAD_FIRST, STILL_HELD_FOR, TEND_EVERY, TENDED_MAX};
use super::store::{self, Tended, Value};
use super::{Unlocks, note};
use crate::db::Db;

impl Unlocks {
    pub(super) async fn tend(&self) {
        // Up to which row of the record nothing was open; none: something was.
        let mut at_rest: Option<u64> = None;
        loop {
            tokio::time::sleep(TEND_EVERY).await;
            self.write_unwritten().await;
            let told = self.audit.told();
            if at_rest == Some(told) {
                continue;
            }
            match self.round().await {
                Ok(is_any_open) => at_rest = Some(told).filter(|_| !is_any_open),
                Err(error) => tracing::warn!("open forced unlocks cannot be tended: {error}"),
            }
        }
    }

    /// Whether something is open still.
    async fn round(&self) -> Result<bool, sqlx::Error> {
        self.rounds.fetch_add(1, Ordering::Relaxed);
        self.expire_old().await?;
        self.note_cut_off(false).await?;
        self.reread().await?;
        self.pass_on_releases().await?;
        match self.db() {
            // Each begins and ends with a row of the record, which this server alone writes.
            Db::Sqlite(pool) => {
                let open =
                    "SELECT EXISTS (SELECT 1 FROM unlocks WHERE state IN ('pending', 'outcome_unknown'))";
                sqlx::query_scalar(open).fetch_one(pool).await
            }
            Db::Postgres(_) => Ok(true),
        }
    }

    /// How often open unlocks were looked for: an idle server on SQLite does not.
    pub fn rounds(&self) -> u64 {
        self.rounds.load(Ordering::Relaxed)
    }

    async fn write_unwritten(&self) {
        let told = std::mem::take(&mut *self.unwritten.lock().unwrap_or_else(PoisonError::into_inner));
        for told in told {
            if self.write(&told).await.is_err() {
                let mut unwritten = self.unwritten.lock().unwrap_or_else(PoisonError::into_inner);
                unwritten.push(told);
            }
        }
    }

    async fn expire_old(&self) -> Result<(), sqlx::Error> {
        let wanted = "state = 'pending' AND expires_at <= $1 ORDER BY expires_at LIMIT $2";
        let values = [Value::Int(self.now_ms()), Value::Int(TENDED_MAX)];
        for old in store::select(self.db(), wanted, &values).await? {
            if let Err(error) = self.expire(&old.unlock).await {
                tracing::warn!("an intent that ran out could not be recorded: {error}");
            }
        }
        Ok(())
    }

    /// Acts without an outcome, after their deadline, or all of them: their server is gone. The record says so.
    ///
    /// # Errors
    /// The store does not answer.
    pub(super) async fn note_cut_off(&self, all: bool) -> Result<(), sqlx::Error> {
        let wanted = "state = 'outcome_unknown' AND ended_at IS NULL AND act_deadline <= $1
            ORDER BY acted_at LIMIT $2";
        let slack = i64::try_from(DEADLINE_SLACK.as_millis()).unwrap_or(i64::MAX);
        let until = if all { i64::MAX } else { self.now_ms() - slack };
        loop {
            let values = [Value::Int(until), Value::Int(TENDED_MAX)];
            let cut_off = store::select(self.db(), wanted, &values).await?;
            let is_last = i64::try_from(cut_off.len()).unwrap_or(0) < TENDED_MAX;
            for Tended { unlock, .. } in cut_off {
                tracing::warn!(
                    unlock.id = unlock.id,
                    "unlock {} was cut off in its act",
                    unlock.id
                );
                let ending = Ending {
                    why: Some("the server stopped in the middle of the act".to_owned()),
                    ..Ending::default()
                };
                self.write(&found(unlock, UnlockState::OutcomeUnknown, ending))
                    .await?;
            }
            if is_last {
                return Ok(());
            }
        }
    }

    async fn reread(&self) -> Result<(), sqlx::Error> {
        let wanted = "state = 'outcome_unknown' AND ended_at IS NOT NULL AND ended_at <= $1
            AND (reread_at IS NULL OR reread_at <= $2) ORDER BY ended_at LIMIT $3";
        let ago = |time: Duration| self.now_ms() - ms(time);
        let values = [
            Value::Int(ago(REREAD_FIRST)),
            Value::Int(ago(REREAD_EVERY)),
            Value::Int(TENDED_MAX),
        ];
        for open in store::select(self.db(), wanted, &values).await? {
            if self.takes_turn(&open).await? {
                self.reread_one(open).await?;
            }
        }
        Ok(())
    }

    /// Of several servers one reads.
    async fn takes_turn(&self, open: &Tended) -> Result<bool, sqlx::Error> {
        let statement = "UPDATE unlocks SET reread_at = $1, rereads = rereads + 1
            WHERE id = $2 AND state = 'outcome_unknown' AND coalesce(reread_at, 0) = $3";
        let values = [
            Value::Int(self.now_ms()),
            Value::Text(&open.unlock.id),
            Value::Int(open.reread_at.unwrap_or(0)),
        ];
        let mut tx = self.db().begin().await?;
        let taken = store::change(&mut tx, statement, &values).await? == 1;
        tx.commit().await?;
        Ok(taken)
    }

    async fn reread_one(&self, open: Tended) -> Result<(), sqlx::Error> {
        let Some(backend) = self.backends.get(&open.unlock.backend) else {
            return Ok(());
        };
        let (source, resource) = (&open.unlock.source, &open.unlock.resource);
        let Ok(seen) = self.fresh(&*backend, source, resource).await else {
            return Ok(());
        };
        match finding(&seen, &open.unlock) {
            Finding::Gone(now) => {
                let ending = Ending {
                    now,
                    is_read: true,
                    is_by_rereading: true,
                    why: Some(
                        "the answer to the act was lost; read again, the holding that was looked at has ended, by the act \
                         or by itself"
                            .to_owned(),
                    ),
                    mend: None,
                };
                self.write(&found(open.unlock, UnlockState::Released, ending))
                    .await
            }
            Finding::StillThere => self.still_there(open).await,
            Finding::CannotTell => Ok(()),
        }
    }

    async fn still_there(&self, open: Tended) -> Result<(), sqlx::Error> {
        let now = self.now_ms();
        let Some(since) = open.still_held_since else {
            let statement = "UPDATE unlocks SET still_held_since = $1 WHERE id = $2";
            let mut tx = self.db().begin().await?;
            store::change(
                &mut tx,
                statement,
                &[Value::Int(now), Value::Text(&open.unlock.id)],
            )
            .await?;
            return tx.commit().await;
        };
        if now - since < ms(STILL_HELD_FOR) {
            return Ok(());
        }
        let ending = Ending {
            now: Some(open.unlock.observed.holding()),
            is_read: true,
            is_by_rereading: true,
            why: Some(format!(
                "the answer to the act was lost; read again for {} s, the same holder still has it: the act had no effect",
                STILL_HELD_FOR.as_secs()
            )),
            mend: Some("Begin again, if it is still to be unlocked.".to_owned()),
        };
        self.write(&found(open.unlock, UnlockState::Refused, ending))
            .await
    }
}

pub(super) fn ms(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

fn found(unlock: Unlock, state: UnlockState, ending: Ending) -> Told {
    Told {
        unlock,
        state,
        ending,
        by: note::by_itself(),
    }
}

enum Finding {
    /// With who holds it now.
    Gone(Option<Holding>),
    StillThere,
    CannotTell,
}

/// A record that stays when its lease has ended holds nothing.
pub(super) fn is_over(lock: &ObservedLock) -> bool {
    matches!(
        lock.lifetime,
        Lifetime::Leased {
            remaining_ms: ..=0,
            ..
        }
    )
}

fn finding(seen: &Inspection, unlock: &Unlock) -> Finding {
    let Some(lock) = &seen.lock else {
        return Finding::Gone(None);
    };
    match &lock.generation {
        Known::Known(now) if *now == unlock.observed.generation && is_over(lock) => Finding::Gone(None),
        Known::Known(now) if *now == unlock.observed.generation => Finding::StillThere,
        Known::Known(_) => Finding::Gone(Some(Holding::from(lock))),
        Known::Unknown(_) | Known::Absent(_) => Finding::CannotTell,
    }
}
