//! Deletes rows past their retention or above the limit, in small steps.

use std::time::Duration;

use super::limits::{EVENTS_MAX, PRUNED_AT_ONCE, PRUNED_CELLS};
use super::rollups::STEPS_S;
use crate::janitor::delete_batch;
use config::HistoryConfig;
use domain::duration::millis;
use runtime::db::{Db, on_either};

const TOO_OLD: &str = "DELETE FROM lock_events WHERE id IN
    (SELECT id FROM lock_events WHERE at < $1 ORDER BY at LIMIT $2)";
/// Number of events, estimated from 1,000 evenly spread ids: a run of renewals that continues uses up an id of Postgres at
/// each write, so that ids may have large gaps. Exact without gaps.
const COUNT: &str = "WITH RECURSIVE sample (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM sample WHERE n < 999),
    ids (lowest, highest) AS (SELECT (SELECT min(id) FROM lock_events), (SELECT max(id) FROM lock_events))
    SELECT (SELECT count(*) FROM sample
            WHERE EXISTS (SELECT 1 FROM lock_events WHERE id = lowest + (highest - lowest) * (2 * n + 1) / 2000))
        * (highest - lowest + 1) / 1000 FROM ids";
const OLDEST: &str = "DELETE FROM lock_events WHERE id IN (SELECT id FROM lock_events ORDER BY id LIMIT $1)";
/// One hour at a time.
const OLD_SIGNALS: &str = "DELETE FROM lease_signals WHERE at < $1
    AND at < (SELECT min(at) FROM lease_signals) + 3600000";
const OLD_GAPS: &str = "DELETE FROM history_gaps WHERE ended_at < $1";

/// One step; returns whether there may be more to delete.
pub(super) async fn step(db: &Db, now_ms: i64, retention: &HistoryConfig) -> Result<bool, sqlx::Error> {
    let more_sums = sums(db, before(now_ms, retention.rollup_retention)).await?;
    let oldest = before(now_ms, retention.retention);
    let more_old = delete_batch(db, TOO_OLD, &[oldest, PRUNED_AT_ONCE]).await?;
    let count: Option<i64> = on_either!(db, Db, |pool| {
        sqlx::query_scalar(COUNT).fetch_one(pool).await?
    });
    let has_surplus = count.is_some_and(|count| count > EVENTS_MAX);
    let more_surplus = has_surplus && delete_batch(db, OLDEST, &[PRUNED_AT_ONCE]).await?;
    let more_signals = on_either!(db, Db, |pool| {
        sqlx::query(OLD_GAPS).bind(oldest).execute(pool).await?;
        let query = sqlx::query(OLD_SIGNALS).bind(oldest);
        query.execute(pool).await?.rows_affected()
    });
    Ok(more_sums || more_signals > 0 || more_old || more_surplus)
}

fn before(now_ms: i64, keep: Duration) -> i64 {
    now_ms.saturating_sub(millis(keep))
}

/// Deletes the oldest cells of each step of roll-ups that are past their retention; returns whether there were any.
async fn sums(db: &Db, oldest: i64) -> Result<bool, sqlx::Error> {
    let mut removed = false;
    for step in STEPS_S {
        for (first, delete) in [
            (
                "SELECT min(at) FROM history_rollups WHERE step_seconds = $1",
                "DELETE FROM history_rollups WHERE step_seconds = $1 AND at >= $2 AND at < $3",
            ),
            (
                "SELECT min(at) FROM history_coverage WHERE step_seconds = $1",
                "DELETE FROM history_coverage WHERE step_seconds = $1 AND at >= $2 AND at < $3",
            ),
        ] {
            let first: Option<i64> = on_either!(db, Db, |pool| {
                sqlx::query_scalar(first).bind(step).fetch_one(pool).await?
            });
            let Some(first) = first.filter(|first| *first < oldest) else {
                continue;
            };
            let until = oldest.min(first.saturating_add(PRUNED_CELLS * step * 1_000));
            on_either!(db, Db, |pool| {
                let query = sqlx::query(delete).bind(step).bind(first).bind(until);
                query.execute(pool).await?.rows_affected()
            });
            removed = true;
        }
    }
    Ok(removed)
}
