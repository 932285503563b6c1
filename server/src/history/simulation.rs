//! Writes a simulated past, for the demo: through the same roll-ups, runs of renewals and rows as observed changes.
//!
//! **Invariant:** roll-ups and coverage of a simulated past carry the process id [`SIMULATED`], so that pages mark the
//! charts that contain it. Only `leasehold demo` writes one, before its server starts.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use chrono::DateTime;
use domain::history::simulated_past::{SimulatedHold, SimulatedPast};
use domain::history::template::template;
use domain::lock_detail::EventKind;
use domain::names::BackendName;

use super::History;
use super::limits::{SIMULATED_SAMPLE_MS, SIMULATED_WRITE_MS};
use super::renewal_runs::Runs;
use super::rollups::aggregate::Gatherer;
use super::store;
use inventory::{GroupReading, LockChange, WatchedBackend};
use runtime::db::{Db, Tx, on_either};

/// Process id of simulated rows; ids of processes are eight hexadecimal digits.
pub const SIMULATED: &str = "simulated";

/// A new waiter arrives this long after the first of the queue was granted.
const NEXT_WAITER_MS: i64 = 2_000;

/// Writes the past into the history of a store that no server has open.
///
/// # Errors
/// The store does not answer.
pub async fn write_history(db: &Db, past: &SimulatedPast) -> Result<(), sqlx::Error> {
    let mut simulation = Simulation::new(past);
    let mut now = past.from;
    while now < past.until {
        let end = (now + SIMULATED_WRITE_MS).min(past.until);
        let mut tx = db.begin().await?;
        while now < end {
            now = (now + SIMULATED_SAMPLE_MS).min(end);
            simulation.advance(&mut tx, now).await?;
        }
        simulation.runs.write(&mut tx, now == past.until).await?;
        simulation.gathered.write(&mut tx).await?;
        tx.commit().await?;
        simulation.mark_written(now);
    }
    Ok(())
}

struct Simulation<'a> {
    past: &'a SimulatedPast,
    gathered: Gatherer,
    runs: Runs,
    /// Holdings by their begin, and the first that has not begun.
    holds: Vec<&'a SimulatedHold>,
    next: usize,
    open: Vec<OpenHold<'a>>,
    /// Milliseconds held and waited so far, by template.
    sums: BTreeMap<(BackendName, Arc<str>), (u64, u64)>,
    sampled_at: i64,
}

struct OpenHold<'a> {
    hold: &'a SimulatedHold,
    /// Fields that all changes of the holding share; built once, because a holding has thousands of renewals.
    change: LockChange,
}

impl<'a> Simulation<'a> {
    fn new(past: &'a SimulatedPast) -> Self {
        let mut holds: Vec<&SimulatedHold> = past.holds.iter().collect();
        holds.sort_by_key(|hold| hold.began);
        Self {
            past,
            gathered: Gatherer::sampling(SIMULATED.to_owned(), past.from, SIMULATED_SAMPLE_MS),
            runs: Runs::default(),
            holds,
            next: 0,
            open: Vec::new(),
            sums: BTreeMap::new(),
            sampled_at: past.from,
        }
    }

    /// Writes the changes until `now`.
    async fn advance(&mut self, tx: &mut Tx, now: i64) -> Result<(), sqlx::Error> {
        while let Some(hold) = self.holds.get(self.next).filter(|hold| hold.began < now) {
            self.open.push(OpenHold {
                hold,
                change: change(hold),
            });
            self.next += 1;
        }
        let mut changes = Vec::new();
        for open in &self.open {
            changes_of(open, self.sampled_at..now, &mut changes);
        }
        // Stable: an end comes before the grant of the same moment.
        changes.sort_by_key(|change| (change.at, !is_end(change.kind)));
        self.sample(now);
        self.insert(tx, changes).await?;
        self.gathered.close_interval(now);
        Ok(())
    }

    /// The renewals of a holding become a row before its end does: rules read rows in their order.
    async fn insert(&mut self, tx: &mut Tx, changes: Vec<LockChange>) -> Result<(), sqlx::Error> {
        let mut rows: Vec<LockChange> = Vec::new();
        for change in changes {
            let beat = self.runs.take(&change);
            self.gathered.add_simulated(&change, beat);
            if self.runs.has_ended() {
                store::insert(tx, &rows.iter().collect::<Vec<_>>(), None).await?;
                rows.clear();
                self.runs.write(tx, false).await?;
                self.runs.mark_written(false);
            }
            if change.kind != EventKind::Renewed {
                rows.push(change);
            }
        }
        store::insert(tx, &rows.iter().collect::<Vec<_>>(), None).await
    }

    /// Call after a commit.
    fn mark_written(&mut self, now: i64) {
        self.runs.mark_written(true);
        self.gathered.mark_written();
        self.gathered.forget(now);
    }

    /// Samples all backends, as a server does between two scans.
    fn sample(&mut self, now: i64) {
        for OpenHold { hold, change } in &self.open {
            let span = hold.ended.min(now) - hold.began.max(self.sampled_at);
            let held = u64::try_from(span).unwrap_or(0);
            let key = (hold.backend.clone(), change.template.clone());
            let sums = self.sums.entry(key).or_default();
            sums.0 += held;
            sums.1 += held * u64::from(hold.waiters);
        }
        self.open.retain(|open| open.hold.ended >= now);
        self.sampled_at = now;
        let backends: Vec<WatchedBackend> = self
            .past
            .backends
            .iter()
            .map(|backend| WatchedBackend {
                name: backend.name.clone(),
                kind: backend.kind,
                is_watched: true,
                reports_waiters: backend.reports_waiters,
                groups: self.groups(&backend.name),
            })
            .collect();
        self.gathered.sample(now, &backends, true);
    }

    fn groups(&self, backend: &BackendName) -> Vec<GroupReading> {
        let of_backend = self.sums.iter().filter(|((name, _), _)| name == backend);
        of_backend
            .map(|((_, template), (held_ms, waiting_ms))| GroupReading {
                template: template.clone(),
                held: 0,
                waiting: 0,
                held_ms: *held_ms,
                waiting_ms: *waiting_ms,
                dual_owners: 0,
            })
            .collect()
    }
}

const fn is_end(kind: EventKind) -> bool {
    matches!(kind, EventKind::Released | EventKind::Expired)
}

/// Changes that an observer would have recorded for a holding in this time.
fn changes_of(open: &OpenHold<'_>, within: Range<i64>, changes: &mut Vec<LockChange>) {
    let OpenHold { hold, change } = open;
    let mut add = |kind, at, waiters, held_ms| {
        if within.contains(&at) {
            changes.push(LockChange {
                kind,
                at: DateTime::from_timestamp_millis(at).unwrap_or_default(),
                waiters,
                held_ms,
                ..change.clone()
            });
        }
    };
    let next = (hold.waiters > 0).then(|| hold.waiters - 1);
    add(EventKind::Acquired, hold.began, next, None);
    let second = hold.began + NEXT_WAITER_MS;
    if hold.waiters > 0 && second < hold.ended {
        add(EventKind::Waiting, second, Some(hold.waiters), None);
    }
    if let Some(every) = hold.renews_every_ms.filter(|every| *every > 0) {
        let until = within.end.min(hold.ended - hold.silent_ms);
        let passed = (within.start - hold.began).max(0) / every;
        let mut at = hold.began + passed.max(1) * every;
        while at < until {
            add(EventKind::Renewed, at, None, None);
            at += every;
        }
    }
    let end = if hold.is_expired {
        EventKind::Expired
    } else {
        EventKind::Released
    };
    add(end, hold.ended, None, Some(hold.ended - hold.began));
}

/// The grant of a holding.
fn change(hold: &SimulatedHold) -> LockChange {
    LockChange {
        kind: EventKind::Acquired,
        at: DateTime::from_timestamp_millis(hold.began).unwrap_or_default(),
        backend: hold.backend.clone(),
        source: hold.source.clone(),
        resource: hold.resource.clone(),
        owner: Some(hold.owner.as_str().into()),
        token: None,
        template: template(hold.resource.as_bytes()).into(),
        ttl_ms: hold.ttl_ms,
        ttl_seen_ms: None,
        stale_after_ms: None,
        waiters: None,
        held_ms: None,
        is_held_uncertain: false,
        not_before: None,
        waited_ms: None,
        is_sampled: false,
    }
}

impl History {
    /// End of the simulated past, in milliseconds since 1970; `None` in every installation but the demo.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn simulated_until(&self) -> Result<Option<i64>, sqlx::Error> {
        // Written before the server starts: read once.
        let until = self
            .simulated_until
            .get_or_try_init(|| self.read_simulated())
            .await?;
        Ok(*until)
    }

    async fn read_simulated(&self) -> Result<Option<i64>, sqlx::Error> {
        let select = "SELECT max(at) FROM history_coverage WHERE step_seconds = 60 AND process_id = $1";
        let at: Option<i64> = on_either!(&self.db, Db, |pool| {
            let query = sqlx::query_scalar(select).bind(SIMULATED);
            query.fetch_one(pool).await?
        });
        Ok(at.map(|at| at + SIMULATED_SAMPLE_MS))
    }
}
