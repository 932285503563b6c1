//! SQL statements of history.

mod columns;

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use domain::lock_detail::{EventKind, SeenEvent};
use domain::names::{BackendName, OwnerId, Resource, Source};
use domain::token::FencingToken;
use sqlx::{AssertSqlSafe, Row as _, Sqlite, Transaction};

use super::bulk_insert::{chunks, placeholders};
use super::limits::NAME_BYTES_MAX;
use inventory::LockChange;
use lease::LeaseService;
use runtime::db::{Db, Tx, on_either};

/// A time without observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) began: DateTime<Utc>,
    pub(super) ended: DateTime<Utc>,
}

/// Records the leader's fencing token. `None` if a newer leader exists; otherwise the time of the last write, if
/// any.
pub(super) async fn claim(tx: &mut Tx, token: i64, now_ms: i64) -> Result<Option<Option<i64>>, sqlx::Error> {
    // Locks the row; its values are read afterwards.
    let lock = "UPDATE history_writer SET fencing_token = $1 WHERE fencing_token <= $1";
    let read = "SELECT last_write_at FROM history_writer";
    let write = "UPDATE history_writer SET last_write_at = $1";
    Ok(on_either!(tx, Tx, |tx| {
        let locked = sqlx::query(lock).bind(token).execute(&mut **tx).await?;
        match locked.rows_affected() {
            0 => None,
            _ => {
                let before: Option<i64> = sqlx::query_scalar(read).fetch_one(&mut **tx).await?;
                sqlx::query(write).bind(now_ms).execute(&mut **tx).await?;
                Some(before)
            }
        }
    }))
}

/// Waits for other processes that insert events, as [`claim`] does: readers continue after the highest id, so no lower id
/// may be committed later.
pub(super) async fn wait_for_writers(tx: &mut Tx) -> Result<(), sqlx::Error> {
    if let Tx::Postgres(tx) = tx {
        let lock = "SELECT 1 FROM history_writer FOR UPDATE";
        sqlx::query(lock).execute(&mut **tx).await?;
    }
    Ok(())
}

/// Whether events of this lock are stored. One that an index refuses would fail every write.
pub(super) fn is_name_stored(change: &LockChange) -> bool {
    change.resource.as_bytes().len() <= NAME_BYTES_MAX
}

const COLUMNS: usize = 15;

/// Inserts all changes except renewals, which are folded into runs.
pub(super) async fn insert(
    tx: &mut Tx,
    changes: &[&LockChange],
    leases: Option<&LeaseService>,
) -> Result<(), sqlx::Error> {
    match tx {
        Tx::Postgres(tx) => columns::insert(tx, changes, leases).await,
        Tx::Sqlite(tx) => {
            for chunk in chunks(changes) {
                insert_rows(tx, chunk, leases).await?;
            }
            Ok(())
        }
    }
}

async fn insert_rows(
    tx: &mut Transaction<'static, Sqlite>,
    changes: &[&LockChange],
    leases: Option<&LeaseService>,
) -> Result<(), sqlx::Error> {
    let statement = format!(
        "INSERT INTO lock_events (at, kind, backend, source, resource, owner_id, fencing_token, ttl_ms, waiters,
            is_sampled, trace_id, waited_ms, ttl_seen_ms, not_before, stale_after_ms)
         VALUES {}",
        placeholders(changes.len(), COLUMNS)
    );
    let mut query = sqlx::query(AssertSqlSafe(statement));
    for change in changes {
        query = query
            .bind(change.at.timestamp_millis())
            .bind(change.kind.as_str())
            .bind(change.backend.as_str())
            .bind(change.source.as_str())
            .bind(change.resource.as_bytes())
            .bind(change.owner.as_deref().map(without_nul))
            .bind(change.token.map(|token| token.to_string()))
            .bind(change.ttl_ms.map(i64::from))
            .bind(change.waiters.map(i64::from))
            .bind(i64::from(change.is_sampled))
            .bind(trace_of(leases, change))
            .bind(change.waited_ms)
            .bind(change.ttl_seen_ms.map(i64::from))
            .bind(change.not_before.map(|after| after.timestamp_millis()))
            .bind(change.stale_after_ms.map(i64::from));
    }
    query.execute(&mut **tx).await?;
    Ok(())
}

/// The trace id of the change, if this process made it.
fn trace_of(leases: Option<&LeaseService>, change: &LockChange) -> Option<String> {
    let token = change
        .token
        .filter(|_| change.backend == BackendName::builtin())?;
    let is_end = match change.kind {
        EventKind::Acquired | EventKind::Reclaimed => false,
        EventKind::Released | EventKind::Revoked => true,
        _ => return None,
    };
    leases?.traced().find(&change.resource, token, is_end)
}

/// Postgres rejects text with NUL.
pub(super) fn without_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') {
        text.replace('\0', "\u{fffd}").into()
    } else {
        text.into()
    }
}

/// Records a gap of one backend, or with `None` of all at once, and the number of lost events.
pub(super) async fn add_gap(
    tx: &mut Tx,
    backend: Option<&BackendName>,
    (began, ended): (i64, i64),
    lost: i64,
) -> Result<(), sqlx::Error> {
    let insert =
        "INSERT INTO history_gaps (started_at, ended_at, events_lost, backend) VALUES ($1, $2, $3, $4)";
    on_either!(tx, Tx, |tx| {
        let query = sqlx::query(insert).bind(began).bind(ended).bind(lost);
        let query = query.bind(backend.map(BackendName::as_str));
        query.execute(&mut **tx).await?.rows_affected()
    });
    Ok(())
}

/// Newest first.
pub(super) async fn events(
    db: &Db,
    backend: &BackendName,
    source: Option<&Source>,
    resource: &Resource,
    most: usize,
) -> Result<Vec<SeenEvent>, sqlx::Error> {
    // Renewals are shown as cadence, and a shorter queue is not shown.
    let select = "SELECT at, kind, owner_id, fencing_token, trace_id, waited_ms, not_before FROM lock_events
        WHERE backend = $1 AND resource = $2 AND (CAST($3 AS TEXT) IS NULL OR source = $3)
          AND kind NOT IN ('renewed', 'fewer_waiting')
        ORDER BY at DESC, id DESC LIMIT $4";
    let mut events = Vec::new();
    on_either!(db, Db, |pool| {
        let query = sqlx::query(select)
            .bind(backend.to_string())
            .bind(resource.as_bytes())
            .bind(source.map(Source::as_str))
            .bind(i64::try_from(most).unwrap_or(i64::MAX));
        for row in query.fetch_all(pool).await? {
            let (kind, token): (String, Option<String>) = (row.try_get(1)?, row.try_get(3)?);
            // A newer version may know more kinds: skipped.
            let Some((kind, at)) = EventKind::parse(&kind).zip(moment(row.try_get(0)?)) else {
                continue;
            };
            events.push(SeenEvent {
                kind,
                at,
                owner_id: row.try_get::<Option<String>, _>(2)?.map(OwnerId::new),
                fencing_token: token.and_then(|token| token.parse().ok()).map(FencingToken::new),
                trace_id: row.try_get(4)?,
                waited_ms: row.try_get(5)?,
                not_before: row.try_get::<Option<i64>, _>(6)?.and_then(moment),
            });
        }
    });
    Ok(events)
}

/// Gaps of all backends at once that ended after `since` (milliseconds), newest first; without gaps of one backend.
pub(super) async fn gaps_since(db: &Db, since: i64, most: usize) -> Result<Vec<Gap>, sqlx::Error> {
    let select = "SELECT started_at, ended_at FROM history_gaps WHERE ended_at >= $1 AND backend IS NULL ORDER BY ended_at DESC LIMIT $2";
    let mut gaps = Vec::new();
    on_either!(db, Db, |pool| {
        let query = sqlx::query(select)
            .bind(since)
            .bind(i64::try_from(most).unwrap_or(i64::MAX));
        for row in query.fetch_all(pool).await? {
            if let Some((began, ended)) = moment(row.try_get(0)?).zip(moment(row.try_get(1)?)) {
                gaps.push(Gap { began, ended });
            }
        }
    });
    Ok(gaps)
}

fn moment(ms: i64) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_millis(ms)
}
