//! Writes down what the inventory saw change and what the lease service did, twice a second, in one transaction each time.
//!
//! What was seen is written by whoever has the turn. What a process did itself nobody else knows: it writes that in any case.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use domain::detail::EventKind;
use domain::names::{BackendName, Resource, Source};
use domain::observation::Tick;
use tokio_util::sync::CancellationToken;

use super::limits::{ALIVE_EVERY, GAP_MIN, OWN_MAX, PRUNE_EVERY, STANDBY, SUMS_EVERY, WRITE_EVERY};
use super::rollups::gather::Gatherer;
use super::runs::Runs;
use super::signals::Signals;
use super::turn::Turn;
use super::{prune, store};
use crate::clock::Clock;
use crate::config::HistoryConfig;
use crate::db::Db;
use crate::inventory::{Change, Inventory, OTHER, Taken};
use crate::lease::{LeaseService, TakenTally, Tallied, What};

pub(super) struct Recorder {
    db: Db,
    inventory: Arc<Inventory>,
    leases: Arc<LeaseService>,
    turn: Turn,
    keep: HistoryConfig,
    clock: Clock,
    runs: Runs,
    gathered: Gatherer,
    /// Of the lease service of this process.
    signals: Signals,
    /// Of the lease service, for events, and not written yet.
    own: Vec<Change>,
    /// Since when this process watches, in milliseconds by our wall clock.
    watching_since: i64,
    /// This process wrote last.
    is_writer: bool,
    wrote: Option<Tick>,
    summed: Option<Tick>,
    pruned: Option<Tick>,
    /// The store was told to be unreachable.
    is_failing: bool,
}

impl Recorder {
    pub(super) fn new(
        db: Db,
        inventory: Arc<Inventory>,
        leases: Arc<LeaseService>,
        turn: Turn,
        keep: HistoryConfig,
        clock: Clock,
    ) -> Self {
        let now_ms = clock.now().wall.timestamp_millis();
        let signals = Signals::new(leases.metrics());
        Self {
            watching_since: now_ms,
            db,
            inventory,
            leases,
            turn,
            keep,
            clock,
            runs: Runs::default(),
            gathered: Gatherer::new(now_ms),
            signals,
            own: Vec::new(),
            is_writer: false,
            wrote: None,
            summed: None,
            pruned: None,
            is_failing: false,
        }
    }

    pub(super) async fn run(mut self, stop: CancellationToken) {
        loop {
            let stopping = stop.cancelled();
            // Either it is time, or the end: then what was seen last is written.
            let is_end = tokio::time::timeout(WRITE_EVERY, stopping).await.is_ok();
            Box::pin(self.round()).await;
            if is_end {
                // What the round has just folded and added up.
                self.summed = None;
                Box::pin(self.round()).await;
                break;
            }
        }
        self.turn.give_up().await;
        self.db.close().await;
    }

    async fn round(&mut self) {
        let mut taken = self.inventory.journal().take();
        let token = self.turn.token().await;
        let now = self.clock.now();
        let now_ms = now.wall.timestamp_millis();
        self.gathered
            .look(now_ms, &self.inventory.watched(now), token.is_some());
        let tally = self.leases.tally().take();
        self.did(tally, now_ms);
        let sums_due = self.is_due(self.summed, SUMS_EVERY);
        let Some(token) = token else {
            self.is_writer = false;
            self.stand_by(&mut taken.changes);
            self.inventory.journal().give_back(taken);
            return self.write_own(sums_due).await;
        };
        let has_own = !self.own.is_empty() || self.signals.is_dirty();
        if !taken.is_empty() || has_own || sums_due || self.is_due(self.wrote, ALIVE_EVERY) {
            if let Err(error) = self.write(token, &taken, sums_due).await {
                return self.failed(&error, taken);
            }
            self.wrote = Some(self.clock.tick());
        }
        if self.is_due(self.pruned, PRUNE_EVERY) {
            match prune::step(&self.db, self.clock.now().wall.timestamp_millis(), &self.keep).await {
                // There may be more.
                Ok(true) => {}
                Ok(false) => self.pruned = Some(self.clock.tick()),
                Err(error) => tracing::warn!("old history cannot be removed: {error}"),
            }
        }
    }

    fn is_due(&self, last: Option<Tick>, every: Duration) -> bool {
        let every = i64::try_from(every.as_millis()).unwrap_or(i64::MAX);
        last.is_none_or(|last| self.clock.tick().since(last) >= every)
    }

    /// Whoever writes may fall silent: what it missed is still known here.
    fn stand_by(&self, changes: &mut VecDeque<Change>) {
        let oldest = self.clock.now().wall - STANDBY;
        while changes.front().is_some_and(|change| change.at < oldest) {
            changes.pop_front();
        }
    }

    /// What the lease service did: all of it into the sums, what no reading can show into the events.
    fn did(&mut self, tally: TakenTally, now_ms: i64) {
        let refused = self.gathered.tallied(&tally.all);
        self.signals.count(refused, self.leases.metrics(), now_ms);
        self.gathered.settle(now_ms);
        if tally.lost > 0 {
            tracing::warn!(
                operations.lost = tally.lost,
                "more was done than history could add up: {} operations are missing",
                tally.lost
            );
        }
        let room = OWN_MAX.saturating_sub(self.own.len());
        let at = chrono::DateTime::from_timestamp_millis(now_ms).unwrap_or_default();
        let events = tally.all.into_iter().filter_map(|one| event_of(one, at));
        self.own.extend(events.take(room));
    }

    fn failed(&mut self, error: &sqlx::Error, taken: Taken) {
        self.tell(error);
        self.is_writer = false;
        self.inventory.journal().give_back(taken);
    }

    fn tell(&mut self, error: &sqlx::Error) {
        if !self.is_failing {
            tracing::warn!("history cannot be written and is kept in memory: {error}");
        }
        self.is_failing = true;
    }

    /// A transaction was committed.
    fn written(&mut self, with_sums: bool) {
        self.is_failing = false;
        self.own.clear();
        self.signals.written(self.clock.now().wall.timestamp_millis());
        if with_sums {
            self.gathered.written();
            self.gathered.forget(self.clock.now().wall.timestamp_millis());
            self.summed = Some(self.clock.tick());
        }
    }

    /// It is not this server's turn: only what it did itself.
    async fn write_own(&mut self, sums_due: bool) {
        let sums_due = sums_due && self.gathered.is_dirty();
        if self.own.is_empty() && !sums_due && !self.signals.is_dirty() {
            return;
        }
        let write = async {
            let mut tx = self.db.begin().await?;
            store::insert(&mut tx, &self.own.iter().collect::<Vec<_>>(), &self.leases).await?;
            self.signals.write(&mut tx).await?;
            if sums_due {
                self.gathered.write(&mut tx).await?;
            }
            tx.commit().await
        };
        match write.await {
            Ok(()) => {
                self.inventory.journal().wrote();
                self.written(sums_due);
            }
            Err(error) => self.tell(&error),
        }
    }

    async fn write(&mut self, token: i64, taken: &Taken, sums_due: bool) -> Result<(), sqlx::Error> {
        let now = self.clock.now().wall.timestamp_millis();
        // A change is told by the clock as it was at the start: no gap begins before it.
        let newest = taken
            .changes
            .back()
            .map_or(now, |change| change.at.timestamp_millis());
        let now = now.max(newest);
        let mut tx = self.db.begin().await?;
        let Some(alive_at) = store::claim(&mut tx, token, now).await? else {
            // Another server has had a later turn already: ours is over, though we have not noticed yet.
            self.turn.give_up().await;
            return Ok(());
        };
        let mut written_before = None;
        if let Some(alive_at) = alive_at.filter(|_| !self.is_writer) {
            // Another process wrote before: up to then it is its history, from then on ours.
            written_before = Some(alive_at);
            let first = taken.changes.front().map(|change| change.at.timestamp_millis());
            let again = self.watching_since.min(first.unwrap_or(i64::MAX));
            if again - alive_at > i64::try_from(GAP_MIN.as_millis()).unwrap_or(i64::MAX) {
                store::add_gap(&mut tx, alive_at, again, 0).await?;
            }
        }
        let is_new =
            |change: &&Change| written_before.is_none_or(|before| change.at.timestamp_millis() > before);
        let news: Vec<&Change> = taken.changes.iter().filter(is_new).collect();
        let rows: Vec<&Change> = rows(&news).into_iter().chain(&self.own).collect();
        store::insert(&mut tx, &rows, &self.leases).await?;
        let runs_due = sums_due || self.runs.has_ended();
        let has_news = !rows.is_empty() || self.runs.has_any(sums_due) || self.signals.is_dirty();
        self.signals.write(&mut tx).await?;
        if runs_due {
            self.runs.write(&mut tx, sums_due).await?;
        }
        if sums_due {
            self.gathered.write(&mut tx).await?;
        }
        if taken.lost > 0 {
            lost(&mut tx, taken, now).await?;
        }
        tx.commit().await?;
        if has_news {
            self.inventory.journal().wrote();
        }
        self.is_writer = true;
        if runs_due {
            self.runs.written(sums_due);
        }
        self.written(sums_due);
        // Folded and added up now that what was taken cannot come back; written with the next sums.
        for change in news {
            super::metered::changed(self.inventory.kind_of(&change.backend), change);
            let beat = self.runs.take(change);
            self.gathered.change(change, beat);
        }
        self.gathered.settle(now);
        Ok(())
    }
}

async fn lost(tx: &mut crate::db::Tx, taken: &Taken, now: i64) -> Result<(), sqlx::Error> {
    let first_lost = taken
        .changes
        .back()
        .map_or(now, |change| change.at.timestamp_millis());
    let lost = i64::try_from(taken.lost).unwrap_or(i64::MAX);
    store::add_gap(tx, first_lost, now, lost).await?;
    tracing::warn!(
        changes.lost = lost,
        "more changed than history could keep: {lost} changes are missing"
    );
    Ok(())
}

/// What becomes a row at once: no renewals, and of a lock's line that changed several times the last alone.
fn rows<'a>(news: &[&'a Change]) -> Vec<&'a Change> {
    let is_line = |change: &Change| matches!(change.kind, EventKind::Waiting | EventKind::FewerWaiting);
    let mut rows: Vec<Option<&Change>> = Vec::with_capacity(news.len());
    let mut lines: HashMap<(&BackendName, &Source, &Resource), usize> = HashMap::new();
    for change in news.iter().filter(|change| change.kind != EventKind::Renewed) {
        let id = (&change.backend, &change.source, &change.resource);
        if is_line(change) {
            if let Some(before) = lines.insert(id, rows.len()) {
                rows[before] = None;
            }
        } else {
            lines.remove(&id);
        }
        rows.push(Some(change));
    }
    rows.into_iter().flatten().collect()
}

/// What no reading of the inventory shows.
fn event_of(tallied: Tallied, now: chrono::DateTime<chrono::Utc>) -> Option<Change> {
    let (kind, owner, token, after) = match tallied.what {
        What::Lost { owner, token, .. } => (EventKind::Lost, Some(owner), token, None),
        What::Rejected { owner, token } => (EventKind::Rejected, owner, token, None),
        What::Waited {
            ms,
            granted: Some(granted),
            ..
        } => {
            let after = Some((granted.at, ms));
            (
                EventKind::GrantedAfterWait,
                Some(granted.owner),
                granted.token,
                after,
            )
        }
        What::Granted { .. }
        | What::Refused
        | What::TimedOut
        | What::Waited { .. }
        | What::Released { .. }
        | What::Expired { .. }
        | What::Revoked { .. } => return None,
    };
    Some(Change {
        kind,
        at: after.map_or(now, |(at, _)| at),
        backend: BackendName::builtin(),
        source: Source::fixed("lease"),
        resource: tallied.resource,
        owner: owner.map(|owner| owner.as_str().into()),
        token: Some(token.number()),
        // Added up by its name before.
        template: OTHER.into(),
        ttl_ms: None,
        ttl_seen_ms: None,
        stale_after_ms: None,
        waiters: None,
        held_ms: None,
        is_held_uncertain: false,
        not_before: None,
        waited_ms: after.map(|(_, ms)| ms),
        is_sampled: false,
    })
}
