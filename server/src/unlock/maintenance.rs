//! Maintenance of open unlocks: intents that expire, outcomes that could not be written, executions interrupted by a
//! crash, and re-reads of locks whose release was not answered.

use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::duration::millis;
use domain::unlock::{EndedHolding, Unlock, UnlockState};

use super::execute::PendingOutcome;
use super::finding::{Finding, finding};
use super::limits::{
    DEADLINE_SLACK, MAINTENANCE_INTERVAL, REREAD_EVERY, REREAD_FIRST, STILL_HELD_FOR, UNLOCKS_PER_ROUND_MAX,
};
use super::store::{self, StoredUnlock, Value};
use super::{Unlocks, audit_entries};
use runtime::db::Db;

impl Unlocks {
    pub(super) async fn run_maintenance(&self) {
        // Publish count of the audit log when nothing was open; `None` while an unlock is open.
        let mut idle_publish_count: Option<u64> = None;
        loop {
            tokio::time::sleep(MAINTENANCE_INTERVAL).await;
            self.write_unwritten().await;
            let publish_count = self.audit.publish_count();
            if idle_publish_count == Some(publish_count) {
                continue;
            }
            match self.round().await {
                Ok(is_any_open) => idle_publish_count = Some(publish_count).filter(|_| !is_any_open),
                Err(error) => tracing::warn!("open forced unlocks cannot be read or completed: {error}"),
            }
        }
    }

    /// Returns whether something is still open.
    async fn round(&self) -> Result<bool, sqlx::Error> {
        self.rounds.fetch_add(1, Ordering::Relaxed);
        self.expire_old().await?;
        self.resolve_interrupted(false).await?;
        self.reread().await?;
        self.pass_on_releases().await?;
        match self.db() {
            // Each unlock begins and ends with an audit entry, and only this process writes them.
            Db::Sqlite(pool) => {
                let open =
                    "SELECT EXISTS (SELECT 1 FROM unlocks WHERE state IN ('pending', 'outcome_unknown'))";
                sqlx::query_scalar(open).fetch_one(pool).await
            }
            Db::Postgres(_) => Ok(true),
        }
    }

    /// Number of queries for open unlocks. With SQLite an idle server makes none.
    pub fn rounds(&self) -> u64 {
        self.rounds.load(Ordering::Relaxed)
    }

    async fn write_unwritten(&self) {
        let pending = std::mem::take(&mut *self.unwritten.lock());
        for pending in pending {
            if self.write(&pending).await.is_err() {
                let mut unwritten = self.unwritten.lock();
                unwritten.push(pending);
            }
        }
    }

    async fn expire_old(&self) -> Result<(), sqlx::Error> {
        let filter = "state = 'pending' AND expires_at <= $1 ORDER BY expires_at LIMIT $2";
        let values = [Value::Int(self.now_ms()), Value::Int(UNLOCKS_PER_ROUND_MAX)];
        for expired in store::select(self.db(), filter, &values).await? {
            if let Err(error) = self.expire(&expired.unlock).await {
                tracing::warn!("the expiry of an intent could not be written to the audit log: {error}");
            }
        }
        Ok(())
    }

    /// Records executions without an outcome as interrupted, after their deadline, or `all` of them if no other
    /// process can be running.
    ///
    /// # Errors
    /// The store does not answer.
    pub(super) async fn resolve_interrupted(&self, all: bool) -> Result<(), sqlx::Error> {
        let filter = "state = 'outcome_unknown' AND ended_at IS NULL AND act_deadline <= $1
            ORDER BY acted_at LIMIT $2";
        let slack = millis(DEADLINE_SLACK);
        let until = if all { i64::MAX } else { self.now_ms() - slack };
        loop {
            let values = [Value::Int(until), Value::Int(UNLOCKS_PER_ROUND_MAX)];
            let cut_off = store::select(self.db(), filter, &values).await?;
            let is_last = i64::try_from(cut_off.len()).unwrap_or(0) < UNLOCKS_PER_ROUND_MAX;
            for StoredUnlock { unlock, .. } in cut_off {
                tracing::warn!(
                    unlock.id = unlock.id,
                    "unlock {} was aborted while it released the lock",
                    unlock.id
                );
                let ending = EndedHolding {
                    why: Some("the server stopped during the release".to_owned()),
                    ..EndedHolding::default()
                };
                self.write(&pending_outcome(unlock, UnlockState::OutcomeUnknown, ending))
                    .await?;
            }
            if is_last {
                return Ok(());
            }
        }
    }

    async fn reread(&self) -> Result<(), sqlx::Error> {
        let filter = "state = 'outcome_unknown' AND ended_at IS NOT NULL AND ended_at <= $1
            AND (reread_at IS NULL OR reread_at + (reread_at - ended_at) / 10 <= $2) ORDER BY coalesce(reread_at, 0), ended_at LIMIT $3";
        let ago = |time: Duration| self.now_ms() - millis(time);
        let values = [
            Value::Int(ago(REREAD_FIRST)),
            Value::Int(ago(REREAD_EVERY)),
            Value::Int(UNLOCKS_PER_ROUND_MAX),
        ];
        for stored in store::select(self.db(), filter, &values).await? {
            if self.claim_reread(&stored).await? {
                self.reread_one(stored).await?;
            }
        }
        Ok(())
    }

    /// One of several replicas does the re-read.
    async fn claim_reread(&self, stored: &StoredUnlock) -> Result<bool, sqlx::Error> {
        let statement = "UPDATE unlocks SET reread_at = $1, rereads = rereads + 1
            WHERE id = $2 AND state = 'outcome_unknown' AND coalesce(reread_at, 0) = $3";
        let values = [
            Value::Int(self.now_ms()),
            Value::Text(&stored.unlock.id),
            Value::Int(stored.reread_at.unwrap_or(0)),
        ];
        let mut tx = self.db().begin().await?;
        let claimed = store::change(&mut tx, statement, &values).await? == 1;
        tx.commit().await?;
        Ok(claimed)
    }

    async fn reread_one(&self, stored: StoredUnlock) -> Result<(), sqlx::Error> {
        let Some(backend) = self.backends.get(&stored.unlock.backend) else {
            return Ok(());
        };
        let (source, resource) = (&stored.unlock.source, &stored.unlock.resource);
        let Ok(inspection) = self.fresh(&*backend, source, resource).await else {
            return Ok(());
        };
        match finding(&inspection, &stored.unlock.observed) {
            Finding::Gone(now) => {
                let ending = EndedHolding {
                    now,
                    nodes: stored.unlock.ending.nodes.clone(),
                    is_read: true,
                    is_by_rereading: true,
                    why: Some(
                        "the backend did not report the result; a later read shows that the reviewed lease has ended, by this \
                         unlock or otherwise"
                            .to_owned(),
                    ),
                    remedy: None,
                };
                self.write(&pending_outcome(stored.unlock, UnlockState::Released, ending))
                    .await
            }
            Finding::StillThere => self.record_still_held(stored).await,
            Finding::Unknown => Ok(()),
        }
    }

    /// Not a refusal: a release that was sent can take effect late. A session, for example, ends at its next interrupt
    /// check. The outcome stays unknown, and the finding is recorded once.
    async fn record_still_held(&self, stored: StoredUnlock) -> Result<(), sqlx::Error> {
        let now = self.now_ms();
        let Some(since) = stored.still_held_since else {
            let statement = "UPDATE unlocks SET still_held_since = $1 WHERE id = $2";
            let mut tx = self.db().begin().await?;
            store::change(
                &mut tx,
                statement,
                &[Value::Int(now), Value::Text(&stored.unlock.id)],
            )
            .await?;
            return tx.commit().await;
        };
        let unlock = stored.unlock;
        let is_recorded = unlock.ending.is_by_rereading;
        if now - since < millis(STILL_HELD_FOR) || is_recorded {
            return Ok(());
        }
        let why = unlock.ending.why.as_deref();
        let ending = EndedHolding {
            nodes: unlock.ending.nodes.clone(),
            is_by_rereading: true,
            why: Some(format!(
                "{}; after {} s of reads the same holder still holds the lock: it is not released so far, and a release that was \
                 sent may still take effect",
                why.unwrap_or("the backend did not report the result"),
                STILL_HELD_FOR.as_secs()
            )),
            remedy: Some("If the lock must be released now, request a new unlock.".to_owned()),
            ..EndedHolding::default()
        };
        self.write_still_unknown(&pending_outcome(unlock, UnlockState::OutcomeUnknown, ending))
            .await
    }

    /// No effect if another replica was first.
    async fn write_still_unknown(&self, pending: &PendingOutcome) -> Result<(), sqlx::Error> {
        let mut tx = self.db().begin().await?;
        let appended = self.audit.append_in(&mut tx, pending.entry()).await?;
        if !store::explain_unknown(&mut tx, &pending.unlock, &pending.ending, appended.seq).await? {
            return Ok(());
        }
        tx.commit().await?;
        self.audit.export(&appended).await;
        Ok(())
    }
}

fn pending_outcome(unlock: Unlock, state: UnlockState, ending: EndedHolding) -> PendingOutcome {
    PendingOutcome {
        unlock,
        state,
        ending,
        by: audit_entries::system_actor(),
    }
}
