//! Deletes what is past its retention, in small steps. While there are batches, each takes a step along in its
//! transaction, so that pruning follows the pace of the leases and costs no sync of its own; otherwise the maintenance
//! task does it.

use std::collections::VecDeque;

use domain::lease::StoreTime;
use rusqlite::{Connection, params};
use sqlx::SqlitePool;

use super::sql;
use crate::store::retention::{LeaseRetention, PruneCursor, PruneCursors, PruneRange};
use crate::store::rows::from_json;
use crate::store::{PruneProgress, StoreError};

/// Leases visited by one step: more than one batch usually ends.
const STEP_ROWS: usize = 64;
/// Ids read ahead of the steps.
const READ_ROWS: usize = 4_096;
/// Steps of the maintenance task per transaction, so that a batch never waits long for it.
const IDLE_STEPS: usize = 8;
/// Idempotency keys, and fencing rejections, that the maintenance task deletes per transaction.
pub(super) const IDLE_ROWS: usize = STEP_ROWS * IDLE_STEPS;

/// Ranges that were read and not yet deleted.
#[derive(Default)]
pub(super) struct PruneQueue {
    cursors: PruneCursors,
    ranges: VecDeque<PruneRange>,
    /// Whether a batch has deleted a range since the last run of the maintenance task.
    is_served_by_batches: bool,
}

impl PruneQueue {
    /// The next range, for a batch, which [`finish`](Self::finish)es it.
    pub(super) fn take(&mut self) -> Option<PruneRange> {
        self.ranges.pop_front()
    }

    /// `is_deleted`: the batch has committed with the range.
    pub(super) fn finish(&mut self, range: Option<PruneRange>, is_deleted: bool) {
        match range {
            Some(_) if is_deleted => self.is_served_by_batches = true,
            Some(range) => self.ranges.push_front(range),
            None => {}
        }
    }

    /// The ranges that the maintenance task deletes itself: none while batches do.
    pub(super) fn take_idle(&mut self) -> Vec<PruneRange> {
        if std::mem::take(&mut self.is_served_by_batches) {
            return Vec::new();
        }
        let steps = self.ranges.len().min(IDLE_STEPS);
        self.ranges.drain(..steps).collect()
    }

    /// Ranges of [`take_idle`](Self::take_idle) that were not deleted.
    pub(super) fn put_back(&mut self, ranges: Vec<PruneRange>) {
        for range in ranges.into_iter().rev() {
            self.ranges.push_front(range);
        }
    }

    pub(super) fn progress(&self) -> PruneProgress {
        if self.ranges.is_empty() {
            PruneProgress::Done
        } else {
            PruneProgress::More
        }
    }

    fn is_full(&self) -> bool {
        self.ranges.len() * STEP_ROWS >= READ_ROWS
    }

    /// Splits visited ids, in order, into ranges.
    fn push(&mut self, cursor: PruneCursor, ids: &[String], retention: &LeaseRetention, now: StoreTime) {
        for ids in ids.chunks(STEP_ROWS) {
            let Some(through) = ids.last() else { return };
            self.ranges.push_back(PruneRange {
                after: self.cursors.position(cursor).to_owned(),
                through: through.clone(),
                due: retention.due(now),
            });
            self.cursors.advance(cursor, through.clone());
        }
    }
}

/// Reads the ids that the cursors have to visit next.
pub(super) async fn read_ahead(
    readers: &SqlitePool,
    queue: &parking_lot::Mutex<PruneQueue>,
    retention: &LeaseRetention,
    now: StoreTime,
) -> Result<(), StoreError> {
    for cursor in PruneCursor::ALL {
        let after = {
            let queue = queue.lock();
            if queue.is_full() {
                return Ok(());
            }
            queue.cursors.position(cursor).to_owned()
        };
        let query = sqlx::query_scalar(sql::VISITED_LEASES)
            .bind(after)
            .bind(retention.visited_below(cursor, now))
            .bind(i64::try_from(READ_ROWS).unwrap_or(i64::MAX));
        let ids: String = query.fetch_one(readers).await?;
        let ids: Vec<String> = from_json(&ids)?;
        queue.lock().push(cursor, &ids, retention, now);
    }
    Ok(())
}

pub(super) fn delete_leases(connection: &Connection, range: &PruneRange) -> Result<(), StoreError> {
    connection.prepare_cached(sql::PRUNE_LEASES)?.execute(params![
        range.after,
        range.through,
        range.due.released_before.ms(),
        range.due.ended_before.ms(),
    ])?;
    Ok(())
}

/// Deletes up to this number of the oldest keys, if they are due. Returns the number of deleted ones.
pub(super) fn delete_keys(
    connection: &Connection,
    created_before: StoreTime,
    count_max: usize,
) -> Result<usize, StoreError> {
    let count_max = i64::try_from(count_max).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(sql::PRUNE_KEYS)?;
    Ok(statement.execute([created_before.ms(), count_max])?)
}

/// Deletes up to [`IDLE_ROWS`] of the oldest fencing rejections, if they are due. Returns the number of deleted ones.
pub(super) fn delete_rejections(
    connection: &Connection,
    recorded_before: StoreTime,
) -> Result<usize, StoreError> {
    let count_max = i64::try_from(IDLE_ROWS).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(sql::PRUNE_REJECTIONS)?;
    Ok(statement.execute([recorded_before.ms(), count_max])?)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::store::retention::PruneDue;

    #[test]
    fn a_lease_with_an_unwritten_counter_is_kept() {
        let connection = Connection::open_in_memory().unwrap();
        let schema = include_str!("../../../../../migrations/sqlite/0001_leases.sql");
        connection.execute_batch(schema).unwrap();
        connection
            .execute_batch(
                "INSERT INTO store_meta (only_row, store_id, epoch, token_floor, clock_ms, grant_count, unwritten_from)
                     VALUES (1, 's', 1, 0, 0, 0, 'b');
                 INSERT INTO leases (lease_id, resource, owner_id, issuer, fencing_token, ttl_seconds, metadata,
                     acquired_at, expires_at, renewed_at, renewals, ended_at, ended_how)
                     SELECT value, value, 'o', '', 1, 60, '{}', 1, 2, 1, 0, 2, 'released' FROM json_each('[\"a\",\"b\"]')",
            )
            .unwrap();
        let due = PruneDue {
            released_before: StoreTime::from_ms(10),
            ended_before: StoreTime::from_ms(10),
        };
        let range = PruneRange {
            after: String::new(),
            through: "c".to_owned(),
            due,
        };
        let kept = |unwritten_from: &str| -> Vec<String> {
            let from = "UPDATE store_meta SET unwritten_from = ?1";
            connection.execute(from, [unwritten_from]).unwrap();
            delete_leases(&connection, &range).unwrap();
            let mut names = connection.prepare("SELECT lease_id FROM leases").unwrap();
            let names = names.query_map([], |row| row.get(0)).unwrap();
            names.map(Result::unwrap).collect()
        };
        assert_eq!(kept("b"), ["b"]);
        assert!(kept("c").is_empty());
    }

    #[test]
    fn ranges_that_were_not_deleted_come_again_in_order() {
        let retention = LeaseRetention {
            released: Duration::ZERO,
            ended: Duration::ZERO,
            lifetime_max: Duration::ZERO,
        };
        let now = StoreTime::from_ms(0);
        let ids: Vec<String> = (0..STEP_ROWS * 3).map(|id| format!("{id:05}")).collect();
        let mut queue = PruneQueue::default();
        queue.push(PruneCursor::ALL[0], &ids, &retention, now);
        let taken = queue.take_idle();
        assert_eq!((taken.len(), queue.progress()), (3, PruneProgress::Done));
        queue.put_back(taken.clone());
        assert_eq!(queue.take_idle(), taken);
        // A batch that does not commit returns its range likewise.
        queue.put_back(taken.clone());
        let first = queue.take();
        queue.finish(first, false);
        assert_eq!(queue.take_idle(), taken);
    }
}
