//! Deletes what is past its retention, in steps, on a connection of its own whose commits do not wait for the disk: a deletion
//! that a crash takes back is repeated. A replica skips rows that another replica is deleting.

use domain::lease::StoreTime;
use sqlx::postgres::PgConnection;

use super::{PostgresStore, sql};
use crate::store::retention::{
    LeaseRetention, PruneCursor, PruneRange, keys_expired_before, rejections_recorded_before,
};
use crate::store::{PruneProgress, StoreError};

/// Rows visited by one step.
const STEP_ROWS: i64 = 2_000;
/// Steps of one run end after this many milliseconds: a run is limited by the reply timeout of the store.
const RUN_MS_MAX: i64 = 500;

impl PostgresStore {
    /// # Errors
    /// The server does not answer, or refuses; the connection is then closed.
    pub(super) async fn prune(
        &self,
        retention: &LeaseRetention,
        now: StoreTime,
    ) -> Result<PruneProgress, StoreError> {
        let mut slot = self.janitor.lock().await;
        let mut connection = match slot.take() {
            Some(connection) => connection,
            None => self.connect_not_durable().await?,
        };
        let started = self.clock.tick();
        let mut progress = PruneProgress::More;
        while progress == PruneProgress::More && self.clock.tick().since(started) < RUN_MS_MAX {
            progress = self.prune_step(&mut connection, retention, now).await?;
        }
        *slot = Some(connection);
        Ok(progress)
    }

    async fn prune_step(
        &self,
        connection: &mut PgConnection,
        retention: &LeaseRetention,
        now: StoreTime,
    ) -> Result<PruneProgress, StoreError> {
        let mut progress = PruneProgress::Done;
        for cursor in PruneCursor::ALL {
            let after = self.prune_cursors.lock().position(cursor).to_owned();
            let query = sqlx::query_as(sql::VISITED_LEASES)
                .bind(&after)
                .bind(retention.visited_below(cursor, now))
                .bind(STEP_ROWS);
            let (through, visited): (Option<String>, i64) = query.fetch_one(&mut *connection).await?;
            let Some(through) = through else { continue };
            let due = retention.due(now);
            let range = PruneRange { after, through, due };
            delete_leases(connection, &range).await?;
            self.prune_cursors.lock().advance(cursor, range.through);
            if visited >= STEP_ROWS {
                progress = PruneProgress::More;
            }
        }
        let keys = sqlx::query(sql::PRUNE_KEYS)
            .bind(keys_expired_before(now).ms())
            .bind(STEP_ROWS);
        let rejections = sqlx::query(sql::PRUNE_REJECTIONS)
            .bind(rejections_recorded_before(now).ms())
            .bind(STEP_ROWS);
        for deletion in [keys, rejections] {
            let deleted = deletion.execute(&mut *connection).await?.rows_affected();
            if deleted >= STEP_ROWS.unsigned_abs() {
                progress = PruneProgress::More;
            }
        }
        Ok(progress)
    }
}

async fn delete_leases(connection: &mut PgConnection, range: &PruneRange) -> Result<(), StoreError> {
    let delete = sqlx::query(sql::PRUNE_LEASES)
        .bind(&range.after)
        .bind(&range.through)
        .bind(range.due.released_before.ms())
        .bind(range.due.ended_before.ms());
    delete.execute(connection).await?;
    Ok(())
}
