//! Cached rules, silences and open alerts, by revision: every write raises the revision in its own transaction, so
//! that a second without changes costs one small query and a page none. With SQLite, which has a single server, it
//! costs no query.
//!
//! **Invariant:** a process reads its own writes: each write invalidates the cache after its commit.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::access::Visible;
use domain::alerts::Silence;
use domain::tick::Tick;
use parking_lot::Mutex;

use super::rules::KeptRule;
use super::store::{self, StoredAlert};
use super::unreadable_rows::UnreadableRows;
use super::{AlertSummary, Alerts, silences};
use runtime::change_signal::ChangeSignal;
use runtime::db::{Db, Tx, on_either};

/// Age limit in milliseconds of a copy that pages use without a check; writes of other replicas appear this late.
const FRESH_MS: i64 = 1_500;

/// Scopes with a stored summary; the oldest is dropped.
const SUMMARIES_MAX: usize = 256;

/// Cached state of one revision.
#[derive(Debug, Default)]
pub(super) struct AlertState {
    pub(super) revision: i64,
    /// Including removed rules.
    pub(super) rules: Vec<KeptRule>,
    /// Including silences that ended since the read.
    pub(super) silences: Vec<Silence>,
    pub(super) open: Vec<StoredAlert>,
    /// Number of receivers added so far; each raises the revision.
    pub(super) receivers_added: i64,
    /// By scope and number of active silences, which end without a new revision.
    summaries: Mutex<VecDeque<(Visible, usize, AlertSummary)>>,
}

impl AlertState {
    /// The summary for readers with this scope: each of their event streams requests it twice a second.
    pub(super) fn summary_for(
        &self,
        visible: &Visible,
        now: i64,
        compute: impl FnOnce() -> AlertSummary,
    ) -> AlertSummary {
        let active = self.silences.iter().filter(|silence| silence.ends_at > now);
        let active = active.count();
        {
            let summaries = self.summaries.lock();
            let mut known = summaries.iter();
            let known = known.find(|(scope, silences, _)| scope == visible && *silences == active);
            if let Some((_, _, summary)) = known {
                return *summary;
            }
        }
        let summary = compute();
        let mut summaries = self.summaries.lock();
        if summaries.len() >= SUMMARIES_MAX {
            summaries.pop_front();
        }
        summaries.push_back((visible.clone(), active, summary));
        summary
    }
}

/// The cache, and when its revision was last checked.
#[derive(Debug, Default)]
pub(super) struct AlertCache {
    copy: Mutex<Option<(Arc<AlertState>, Tick)>>,
    /// Own writes.
    writes: ChangeSignal,
    /// Number of store queries.
    queries: AtomicU64,
    unreadable: UnreadableRows,
}

impl AlertCache {
    /// Call after the commit of an own write.
    pub(super) fn mark_written(&self) {
        {
            let mut copy = self.copy.lock();
            *copy = None;
            self.writes.announce();
        }
    }

    pub(super) fn writes(&self) -> &ChangeSignal {
        &self.writes
    }

    pub(super) fn query_count(&self) -> u64 {
        self.queries.load(Ordering::Relaxed)
    }

    fn get(&self) -> Option<(Arc<AlertState>, Tick)> {
        self.copy.lock().clone()
    }

    /// Stores a copy, unless this process wrote since `writes` was read.
    fn put(&self, state: &Arc<AlertState>, at: Tick, writes: u64) {
        let mut copy = self.copy.lock();
        if self.writes.count() == writes {
            *copy = Some((state.clone(), at));
        }
    }
}

impl Alerts {
    /// The current state.
    pub(super) async fn current_state(&self) -> Result<Arc<AlertState>, sqlx::Error> {
        self.load_state(None).await
    }

    /// The current state. `revision`: that of the store, if the caller has just read it; `None` reads it.
    pub(super) async fn load_state(&self, revision: Option<i64>) -> Result<Arc<AlertState>, sqlx::Error> {
        // With SQLite an own write is the only way to change it, and invalidates the cache; after a new receiver, the next
        // round does.
        if let (Db::Sqlite(_), Some((state, _))) = (&self.db, self.cache.get()) {
            return Ok(state);
        }
        let writes = self.cache.writes.count();
        let at = self.clock.tick();
        self.cache.queries.fetch_add(1, Ordering::Relaxed);
        // The revision first: a write in between causes another read.
        let revision = match revision {
            Some(revision) => revision,
            None => store::revision(&self.db).await?,
        };
        let known = self
            .cache
            .get()
            .map(|(state, _)| state)
            .filter(|state| state.revision == revision);
        let state = match known {
            Some(state) => state,
            None => {
                let receivers_added = store::receivers_added(&self.db).await?;
                Arc::new(AlertState {
                    revision,
                    rules: self.read_rules().await?,
                    silences: silences::read(&self.db, self.now(), &self.cache.unreadable).await?,
                    open: store::open(&self.db, receivers_added, &self.cache.unreadable).await?,
                    receivers_added,
                    summaries: Mutex::default(),
                })
            }
        };
        self.cache.put(&state, at, writes);
        Ok(state)
    }

    /// The state, at most [`FRESH_MS`] old; used by every page.
    pub(super) async fn recent_state(&self) -> Result<Arc<AlertState>, sqlx::Error> {
        let fresh = self
            .cache
            .get()
            .filter(|(_, at)| self.clock.tick().since(*at) <= FRESH_MS);
        match fresh {
            Some((state, _)) => Ok(state),
            None => self.current_state().await,
        }
    }
}

/// Raises the revision. First statement after the audit entry in the transaction of every change of rules, silences and
/// alerts, which orders their locks. A new receiver raises it too.
pub(super) async fn raise_revision(tx: &mut Tx) -> Result<(), sqlx::Error> {
    let raise = "UPDATE alert_evaluator SET revision = revision + 1";
    on_either!(tx, Tx, |tx| sqlx::query(raise)
        .execute(&mut **tx)
        .await?
        .rows_affected());
    Ok(())
}

#[cfg(test)]
mod tests {
    use domain::access::{Grant, Grants, Role};

    use super::*;

    fn summary(revision: u64) -> AlertSummary {
        AlertSummary {
            revision,
            firing_groups: 0,
        }
    }

    #[test]
    fn a_summary_is_computed_once_per_scope() {
        // Two scopes, and again after the end of a silence.
        let silence = Silence {
            id: String::new(),
            matchers: Vec::new(),
            starts_at: 0,
            ends_at: 5,
            comment: String::new(),
            by: String::new(),
            suppressed: 0,
        };
        let state = AlertState {
            silences: vec![silence],
            ..AlertState::default()
        };
        let tenant = Visible::to(&Grants::new(vec![Grant {
            prefix: Some("tenant_1:".to_owned()),
            ..Grant::everywhere(Role::Viewer)
        }]));
        let all = Visible::default();
        for (scope, now, computed, expected) in [
            (&tenant, 1, 1, 1),
            (&tenant, 2, 2, 1),
            (&all, 2, 3, 3),
            (&tenant, 4, 4, 1),
            (&tenant, 5, 5, 5),
        ] {
            let found = state.summary_for(scope, now, || summary(computed));
            assert_eq!(found, summary(expected), "at {now}");
        }
    }
}
