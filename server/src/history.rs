//! History of lock events, kept for days in SQL: the same events that feed the pages.
//!
//! Owns storage, retention, gaps, and reading by lock. Events come from the inventory; their display belongs to the
//! pages. With SQLite this is a separate file, so that history slows neither leases nor pages.
//!
//! **Invariants:** of several replicas on one Postgres only the leader writes changes of the inventory, and the store
//! checks the fencing token of its lease; a time without observation, or of dropped changes, is recorded as a gap.

mod bulk_insert;
mod dropped_changes;
pub mod events;
mod latest_grants;
pub mod limits;
mod metrics;
pub mod past_events;
mod prune;
mod recorder;
mod renewal_runs;
mod rollups;
pub mod signals;
pub mod simulation;
mod store;

use std::collections::HashMap;
use std::sync::Arc;

use domain::lock_detail::{EventKind, SeenEvent};
use domain::names::{BackendName, Resource, Source};
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use config::HistoryConfig;
use inventory::Inventory;
use lease::LeaseService;
use runtime::clock::Clock;
use runtime::db::Db;
use runtime::tasks;

use self::recorder::Recorder;
use crate::leader_election::LeaderElection;

/// Reads the history. Cheap to share.
pub struct History {
    db: Db,
    /// Read once: end of a simulated past.
    simulated_until: OnceCell<Option<i64>>,
}

/// The writer task; ends after stop, when all events are written.
pub struct Recording(JoinHandle<()>);

impl Recording {
    pub async fn ended(self) {
        // A panic of the task was logged by the supervisor.
        let _ended = self.0.await;
    }
}

impl History {
    /// Starts to write the changes of the inventory.
    ///
    /// `keep` is the retention of events and roll-ups.
    pub fn start(
        db: Db,
        inventory: &Arc<Inventory>,
        leases: &Arc<LeaseService>,
        keep: HistoryConfig,
        clock: Clock,
        stop: CancellationToken,
    ) -> (Arc<Self>, Recording) {
        let (store, inventory, leases) = (db.clone(), inventory.clone(), leases.clone());
        // Opened before the first scan, so that no change is missed.
        inventory.journal().open();
        leases.activity().open();
        let ending = stop.clone();
        // Ends last, so that the final changes are written. After a panic it restarts as after a restart of the
        // server, with a gap for what it missed.
        let task = tasks::spawn_until_finished("history", stop, move || {
            let leader = LeaderElection::new(&store, "leasehold/history", &leases, &clock);
            let recorder = Recorder::new(
                store.clone(),
                inventory.clone(),
                leases.clone(),
                leader,
                keep.clone(),
                clock.clone(),
            );
            recorder.run(ending.clone())
        });
        let history = Self {
            db,
            simulated_until: OnceCell::new(),
        };
        (Arc::new(history), Recording(task))
    }

    /// Events of one lock with gaps, newest first. `source` is needed only where two sources have the name.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn lock_events(
        &self,
        backend: &BackendName,
        source: Option<&Source>,
        resource: &Resource,
        most: usize,
    ) -> Result<Vec<SeenEvent>, sqlx::Error> {
        let mut events = store::events(&self.db, backend, source, resource, most).await?;
        let Some(oldest) = events.last().map(|event| event.at.timestamp_millis()) else {
            return Ok(events);
        };
        for gap in store::gaps_since(&self.db, oldest, most).await? {
            let edge = |kind, at| SeenEvent {
                kind,
                at,
                owner_id: None,
                fencing_token: None,
                waited_ms: None,
                not_before: None,
                trace_id: None,
            };
            events.push(edge(EventKind::WatchedAgain, gap.ended));
            events.push(edge(EventKind::Unwatched, gap.began));
        }
        newest_first(&mut events);
        events.truncate(most);
        Ok(events)
    }
}

/// Stored events merged with those in memory, which may not be stored yet.
pub fn merge_events(written: Vec<SeenEvent>, mut seen: Vec<SeenEvent>, most: usize) -> Vec<SeenEvent> {
    let key = |event: &SeenEvent| {
        (
            event.at.timestamp_millis(),
            event.kind,
            event.owner_id.clone(),
            event.fencing_token,
        )
    };
    let known: HashMap<_, _> = seen
        .iter()
        .enumerate()
        .map(|(index, event)| (key(event), index))
        .collect();
    for event in written {
        match known.get(&key(&event)) {
            // Only stored events have a trace id.
            Some(index) => seen[*index].trace_id = event.trace_id,
            None => seen.push(event),
        }
    }
    newest_first(&mut seen);
    seen.truncate(most);
    seen
}

/// Stable: of equal times, the later row stays first. A gap begins after the events of its start and ends before
/// those of its end.
fn newest_first(events: &mut [SeenEvent]) {
    let rank = |kind| match kind {
        EventKind::Unwatched => 0,
        EventKind::WatchedAgain => 2,
        _ => 1,
    };
    events.sort_by_key(|event| (std::cmp::Reverse(event.at.timestamp_millis()), rank(event.kind)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::DateTime;

    fn event(kind: EventKind, ms: i64, micros: i64) -> SeenEvent {
        SeenEvent {
            kind,
            at: DateTime::from_timestamp_micros(ms * 1_000 + micros).unwrap(),
            owner_id: None,
            fencing_token: None,
            waited_ms: None,
            trace_id: None,
            not_before: None,
        }
    }

    #[test]
    fn stored_and_buffered_events_are_listed_once() {
        // One event in both, with microseconds in memory; one in each alone.
        let written = vec![
            event(EventKind::Acquired, 2_000, 0),
            event(EventKind::Acquired, 1_000, 0),
        ];
        let seen = vec![
            event(EventKind::Released, 3_000, 5),
            event(EventKind::Acquired, 2_000, 700),
        ];
        let merged = merge_events(written, seen, 20);
        let merged: Vec<_> = merged
            .iter()
            .map(|event| (event.at.timestamp_millis(), event.kind))
            .collect();
        assert_eq!(
            merged,
            [
                (3_000, EventKind::Released),
                (2_000, EventKind::Acquired),
                (1_000, EventKind::Acquired)
            ]
        );
    }
}
