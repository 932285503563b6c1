//! Writes changes of the inventory and activity of the lease service, twice a second, in one transaction each time.
//!
//! The leader writes the changes. The activity of a process is known only to itself, so every process writes its
//! own.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use domain::duration::millis;
use domain::lock_detail::EventKind;
use domain::names::{BackendName, Resource, Source};
use domain::tick::Tick;
use tokio_util::sync::CancellationToken;

use super::dropped_changes::{DroppedChanges, LastWrite};
use super::limits::{ALIVE_EVERY, ENTRIES_AT_ONCE, OWN_MAX, PRUNE_EVERY, STANDBY, SUMS_EVERY, WRITE_EVERY};
use super::renewal_runs::Runs;
use super::rollups::aggregate::Gatherer;
use super::signals::Signals;
use super::{prune, store};
use crate::janitor::Janitor;
use crate::leader_election::LeaderElection;
use config::HistoryConfig;
use inventory::{ChangeBatch, Inventory, LockChange, OTHER};
use lease::{Activity, ActivityEntry, DrainedActivity, LeaseService};
use runtime::clock::Clock;
use runtime::db::Db;

pub(super) struct Recorder {
    db: Db,
    inventory: Arc<Inventory>,
    leases: Arc<LeaseService>,
    leader: LeaderElection,
    retention: HistoryConfig,
    clock: Clock,
    runs: Runs,
    gathered: Gatherer,
    /// Counts of the local lease service.
    signals: Signals,
    /// Events of the local lease service that are not yet written.
    own_events: Vec<LockChange>,
    /// Start of observation by this process, in milliseconds of the wall clock.
    watching_since: i64,
    /// Time of the last write of this process, as stored: it tells whether another process has written since.
    written_at: Option<i64>,
    dropped: DroppedChanges,
    wrote: Option<Tick>,
    summed: Option<Tick>,
    janitor: Janitor,
    /// The last write failed, which was logged.
    is_failing: bool,
}

impl Recorder {
    pub(super) fn new(
        db: Db,
        inventory: Arc<Inventory>,
        leases: Arc<LeaseService>,
        leader: LeaderElection,
        retention: HistoryConfig,
        clock: Clock,
    ) -> Self {
        let now_ms = clock.now().wall.timestamp_millis();
        let signals = Signals::new(leases.metrics());
        Self {
            watching_since: now_ms,
            db,
            inventory,
            leases,
            leader,
            retention,
            clock,
            runs: Runs::default(),
            gathered: Gatherer::new(now_ms),
            signals,
            own_events: Vec::new(),
            written_at: None,
            dropped: DroppedChanges::default(),
            wrote: None,
            summed: None,
            janitor: Janitor::new("history", PRUNE_EVERY),
            is_failing: false,
        }
    }

    pub(super) async fn run(mut self, stop: CancellationToken) {
        loop {
            let stopping = stop.cancelled();
            // Either the interval has passed, or the server stops and the final changes are written.
            let is_end = tokio::time::timeout(WRITE_EVERY, stopping).await.is_ok();
            Box::pin(self.round()).await;
            if is_end {
                // Forces the roll-ups of this round to be written.
                self.summed = None;
                Box::pin(self.round()).await;
                break;
            }
        }
        self.leader.resign().await;
        self.db.close().await;
    }

    async fn round(&mut self) {
        let batch = self.inventory.journal().take();
        let token = self.leader.token().await;
        let now = self.clock.now();
        let now_ms = now.wall.timestamp_millis();
        self.gathered
            .sample(now_ms, &self.inventory.watched(now), token.is_some());
        let tally = self.leases.activity().drain();
        self.add_activity(tally, now_ms).await;
        let sums_due = self.is_due(self.summed, SUMS_EVERY);
        let Some(token) = token else {
            return self.stand_by(batch, sums_due).await;
        };
        let has_own_activity = !self.own_events.is_empty() || self.signals.is_dirty();
        if !batch.is_empty() || has_own_activity || sums_due || self.is_due(self.wrote, ALIVE_EVERY) {
            match self.write(token, &batch, sums_due).await {
                Ok(true) => self.wrote = Some(self.clock.tick()),
                // Another replica became leader, which was not noticed yet.
                Ok(false) => {
                    self.leader.resign().await;
                    return self.stand_by(batch, sums_due).await;
                }
                Err(error) => return self.requeue_failed(&error, batch),
            }
        }
        let now = self.clock.now();
        let delete = prune::step(&self.db, now.wall.timestamp_millis(), &self.retention);
        self.janitor.run(now.tick, delete).await;
    }

    fn is_due(&self, last: Option<Tick>, every: Duration) -> bool {
        let every = millis(every);
        last.is_none_or(|last| self.clock.tick().since(last) >= every)
    }

    /// Keeps recent changes, in case the leader fails and this process takes over; writes its own activity.
    async fn stand_by(&mut self, mut batch: ChangeBatch, sums_due: bool) {
        let oldest = self.clock.now().wall - STANDBY;
        self.dropped.drop_before(oldest, &mut batch.changes);
        batch.outages.clear();
        self.inventory.journal().requeue(batch);
        self.write_own(sums_due).await;
    }

    /// Adds the activity of the lease service to the roll-ups, and activity that a scan cannot show to the events.
    async fn add_activity(&mut self, tally: DrainedActivity, now_ms: i64) {
        let mut refused: HashMap<Arc<str>, u64> = HashMap::new();
        for chunk in tally.all.chunks(ENTRIES_AT_ONCE) {
            for (template, times) in self.gathered.add_activity(chunk) {
                *refused.entry(template).or_default() += times;
            }
            // A request on this thread does not wait for all of them.
            tokio::task::yield_now().await;
        }
        self.signals.count(refused, self.leases.metrics(), now_ms);
        self.gathered.close_interval(now_ms);
        if tally.dropped > 0 {
            tracing::warn!(
                operations.dropped = tally.dropped,
                "the activity log was full: {} operations are missing in history",
                tally.dropped
            );
        }
        let capacity = OWN_MAX.saturating_sub(self.own_events.len());
        let at = chrono::DateTime::from_timestamp_millis(now_ms).unwrap_or_default();
        let events = tally.all.into_iter().filter_map(|entry| event_of(entry, at));
        self.own_events.extend(events.take(capacity));
    }

    fn requeue_failed(&mut self, error: &sqlx::Error, batch: ChangeBatch) {
        self.log_error(error);
        self.inventory.journal().requeue(batch);
    }

    fn log_error(&mut self, error: &sqlx::Error) {
        if !self.is_failing {
            tracing::warn!("history cannot be written and is buffered in memory: {error}");
        }
        self.is_failing = true;
    }

    /// Call after a commit.
    fn mark_written(&mut self, with_sums: bool) {
        self.is_failing = false;
        self.own_events.clear();
        self.signals
            .mark_written(self.clock.now().wall.timestamp_millis());
        if with_sums {
            self.gathered.mark_written();
            self.gathered.forget(self.clock.now().wall.timestamp_millis());
            self.summed = Some(self.clock.tick());
        }
    }

    /// Not the leader: writes only its own activity.
    async fn write_own(&mut self, sums_due: bool) {
        let sums_due = sums_due && self.gathered.is_dirty();
        if self.own_events.is_empty() && !sums_due && !self.signals.is_dirty() {
            return;
        }
        let write = async {
            let mut tx = self.db.begin().await?;
            if !self.own_events.is_empty() {
                store::wait_for_writers(&mut tx).await?;
                let events: Vec<&LockChange> = self.own_events.iter().collect();
                store::insert(&mut tx, &events, Some(&self.leases)).await?;
            }
            self.signals.write(&mut tx).await?;
            if sums_due {
                self.gathered.write(&mut tx).await?;
            }
            tx.commit().await
        };
        match write.await {
            Ok(()) => {
                self.inventory.journal().wrote();
                self.mark_written(sums_due);
            }
            Err(error) => self.log_error(&error),
        }
    }

    /// Writes as the leader with this fencing token; `false`, and nothing is written, if there is a newer leader.
    async fn write(&mut self, token: i64, batch: &ChangeBatch, sums_due: bool) -> Result<bool, sqlx::Error> {
        let now = self.clock.now().wall.timestamp_millis();
        // A change has the time of its scan's start: no gap begins before it.
        let newest = batch
            .changes
            .back()
            .map_or(now, |change| change.at.timestamp_millis());
        let now = now.max(newest);
        let mut tx = self.db.begin().await?;
        let Some(last_write_at) = store::claim(&mut tx, token, now).await? else {
            return Ok(false);
        };
        let last_write = last_write_at.map(|at| LastWrite {
            at,
            is_own: self.written_at == Some(at),
        });
        let first = batch.changes.front().map(|change| change.at.timestamp_millis());
        let resumed_at = self.watching_since.min(first.unwrap_or(i64::MAX));
        if let Some(gap) = last_write.and_then(|last| self.dropped.gap(last, resumed_at)) {
            store::add_gap(&mut tx, None, gap, 0).await?;
        }
        // Another process wrote before: earlier changes belong to it.
        let written_before = last_write.filter(|last| !last.is_own).map(|last| last.at);
        let is_new =
            |change: &&LockChange| written_before.is_none_or(|before| change.at.timestamp_millis() > before);
        let new_changes: Vec<&LockChange> = batch.changes.iter().filter(is_new).collect();
        let rows: Vec<&LockChange> = rows(&new_changes).into_iter().chain(&self.own_events).collect();
        store::insert(&mut tx, &rows, Some(&self.leases)).await?;
        let runs_due = sums_due || self.runs.has_ended();
        let has_runs = self.runs.has_any(sums_due) || self.signals.is_dirty();
        let has_new_rows = !rows.is_empty() || !batch.outages.is_empty() || has_runs;
        for outage in &batch.outages {
            let span = (outage.began.timestamp_millis(), outage.ended.timestamp_millis());
            store::add_gap(&mut tx, Some(&outage.backend), span, 0).await?;
        }
        self.signals.write(&mut tx).await?;
        if runs_due {
            self.runs.write(&mut tx, sums_due).await?;
        }
        if sums_due {
            self.gathered.write(&mut tx).await?;
        }
        if batch.lost > 0 {
            record_lost_changes(&mut tx, batch, now).await?;
        }
        tx.commit().await?;
        if has_new_rows {
            self.inventory.journal().wrote();
        }
        self.written_at = Some(now);
        self.dropped = DroppedChanges::default();
        if runs_due {
            self.runs.mark_written(sums_due);
        }
        self.mark_written(sums_due);
        // Folded only now that the changes cannot be returned to the queue; written with the next roll-ups.
        for change in new_changes {
            super::metrics::changed(self.inventory.kind_of(&change.backend), change);
            let beat = self.runs.take(change);
            self.gathered.change(change, beat);
        }
        self.gathered.close_interval(now);
        Ok(true)
    }
}

async fn record_lost_changes(
    tx: &mut runtime::db::Tx,
    batch: &ChangeBatch,
    now: i64,
) -> Result<(), sqlx::Error> {
    let first_lost = batch
        .changes
        .back()
        .map_or(now, |change| change.at.timestamp_millis());
    let lost = i64::try_from(batch.lost).unwrap_or(i64::MAX);
    store::add_gap(tx, None, (first_lost, now), lost).await?;
    tracing::warn!(
        changes.lost = lost,
        "the history buffer was full: {lost} changes are missing"
    );
    Ok(())
}

/// Changes that become a row: no renewals, none of a lock whose name is too long, and only the last of several queue
/// lengths of a lock.
fn rows<'a>(changes: &[&'a LockChange]) -> Vec<&'a LockChange> {
    let is_queue_length =
        |change: &LockChange| matches!(change.kind, EventKind::Waiting | EventKind::FewerWaiting);
    let mut rows: Vec<Option<&LockChange>> = Vec::with_capacity(changes.len());
    let mut last_rows: HashMap<(&BackendName, &Source, &Resource), usize> = HashMap::new();
    let is_row = |change: &&&LockChange| change.kind != EventKind::Renewed && store::is_name_stored(change);
    for change in changes.iter().filter(is_row) {
        let id = (&change.backend, &change.source, &change.resource);
        if is_queue_length(change) {
            if let Some(before) = last_rows.insert(id, rows.len()) {
                rows[before] = None;
            }
        } else {
            last_rows.remove(&id);
        }
        rows.push(Some(change));
    }
    rows.into_iter().flatten().collect()
}

/// Activity that a scan does not show.
fn event_of(entry: ActivityEntry, now: chrono::DateTime<chrono::Utc>) -> Option<LockChange> {
    let (kind, owner, token, after) = match entry.what {
        Activity::Lost { owner, token, .. } => (EventKind::Lost, Some(owner), token, None),
        Activity::Rejected { owner, token } => (EventKind::Rejected, owner, token, None),
        Activity::Waited {
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
        Activity::Granted { .. }
        | Activity::Refused
        | Activity::TimedOut
        | Activity::Waited { .. }
        | Activity::Released { .. }
        | Activity::Expired { .. }
        | Activity::Revoked { .. } => return None,
    };
    Some(LockChange {
        kind,
        at: after.map_or(now, |(at, _)| at),
        backend: BackendName::builtin(),
        source: Source::fixed("lease"),
        resource: entry.resource,
        owner: owner.map(|owner| owner.as_str().into()),
        token: Some(token.number()),
        // Already counted by its template.
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
