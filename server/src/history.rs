//! What happened to locks, kept for days: events out of the same diff that feeds the pages, in SQL.
//!
//! Owns writing them down, their age, the gaps in between, and reading them for one lock. What happened is found out in
//! the inventory; what it looked like is the pages' affair. With SQLite this is a file of its own, so that history slows
//! neither a lease nor a page.
//!
//! **Invariants:** of several servers on one Postgres one writes, and its turn is a lease of our own service whose fencing
//! token the store checks; a time that nobody watched is told as a gap, never passed over.

pub mod events;
mod grants;
pub mod limits;
mod metered;
pub mod past_events;
mod prune;
mod recorder;
mod rollups;
mod runs;
pub mod signals;
mod store;
pub(crate) mod turn;
mod values;

use std::collections::HashMap;
use std::sync::Arc;

use domain::detail::{EventKind, SeenEvent};
use domain::names::{BackendName, Resource, Source};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::config::HistoryConfig;
use crate::db::Db;
use crate::inventory::Inventory;
use crate::lease::LeaseService;
use crate::tasks;

use self::recorder::Recorder;
use self::turn::Turn;

/// Reads what was written. Cheap to share.
pub struct History {
    db: Db,
}

/// The writer, until it was stopped and what was seen is written.
pub struct Recording(JoinHandle<()>);

impl Recording {
    pub async fn ended(self) {
        // A panic of the task was logged where it happened.
        let _ended = self.0.await;
    }
}

impl History {
    /// Begins to write down what the inventory sees change.
    ///
    /// `keep` is for how long events and sums stay.
    pub fn start(
        db: Db,
        inventory: &Arc<Inventory>,
        leases: &Arc<LeaseService>,
        keep: HistoryConfig,
        clock: Clock,
        stop: CancellationToken,
    ) -> (Arc<Self>, Recording) {
        let (store, inventory, leases) = (db.clone(), inventory.clone(), leases.clone());
        // Opened now: from here on nothing is missed.
        inventory.journal().open();
        leases.tally().open();
        let ending = stop.clone();
        // Its own end: what was seen last is written after everything else has stopped. Made anew it begins as after a
        // restart of the server: with a gap where it missed something.
        let task = tasks::keep_to_end("history", stop, move || {
            let turn = turn_of(&store, &leases, &clock);
            let recorder = Recorder::new(
                store.clone(),
                inventory.clone(),
                leases.clone(),
                turn,
                keep.clone(),
                clock.clone(),
            );
            recorder.run(ending.clone())
        });
        (Arc::new(Self { db }), Recording(task))
    }

    /// What happened to one lock, newest first, with the gaps in between. `source` is needed only where two hold the name.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn of(
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

fn turn_of(db: &Db, leases: &Arc<LeaseService>, clock: &Clock) -> Turn {
    match db {
        // Its file belongs to one server alone.
        Db::Sqlite(_) => Turn::alone(),
        Db::Postgres(_) => Turn::shared("leasehold/history", leases.clone(), clock.clone()),
    }
}

/// What was written and what is still on its way there, together.
pub fn together(written: Vec<SeenEvent>, mut seen: Vec<SeenEvent>, most: usize) -> Vec<SeenEvent> {
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
        .map(|(place, event)| (key(event), place))
        .collect();
    for event in written {
        match known.get(&key(&event)) {
            // Only what was written knows its trace.
            Some(place) => seen[*place].trace_id = event.trace_id,
            None => seen.push(event),
        }
    }
    newest_first(&mut seen);
    seen.truncate(most);
    seen
}

/// Stable: of one moment, what was written later stays in front. A gap begins after what was seen before it, and ends
/// before what is seen then.
fn newest_first(events: &mut [SeenEvent]) {
    let place = |kind| match kind {
        EventKind::Unwatched => 0,
        EventKind::WatchedAgain => 2,
        _ => 1,
    };
    events.sort_by_key(|event| (std::cmp::Reverse(event.at.timestamp_millis()), place(event.kind)));
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
    fn what_is_both_written_and_remembered_is_told_once() {
        // One event in both, to the microsecond in memory; one in each alone.
        let written = vec![
            event(EventKind::Acquired, 2_000, 0),
            event(EventKind::Acquired, 1_000, 0),
        ];
        let seen = vec![
            event(EventKind::Released, 3_000, 5),
            event(EventKind::Acquired, 2_000, 700),
        ];
        let told = together(written, seen, 20);
        let told: Vec<_> = told
            .iter()
            .map(|event| (event.at.timestamp_millis(), event.kind))
            .collect();
        assert_eq!(
            told,
            [
                (3_000, EventKind::Released),
                (2_000, EventKind::Acquired),
                (1_000, EventKind::Acquired)
            ]
        );
    }
}
