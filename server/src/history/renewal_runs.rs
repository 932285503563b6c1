//! Runs of renewals: combined in memory, written when a run ends and every few seconds while it continues.
//!
//! **Invariant:** a stored run never contains a renewal that was not observed. A killed process loses the renewals
//! of the last few seconds, and its successor starts a new row.

use std::collections::HashMap;
use std::sync::Arc;

use domain::history::renewal_runs::{Beat, OpenRun};
use domain::lock_detail::EventKind;
use domain::names::{BackendName, Resource, Source};
use sqlx::AssertSqlSafe;

use super::bulk_insert::{chunks, values};
use super::limits::RUNS_MAX;
use inventory::LockChange;
use runtime::db::{Tx, on_either};

type Key = (BackendName, Source, Resource);

#[derive(Debug, Default)]
pub(super) struct Runs {
    open: HashMap<Key, Open>,
    /// Ended and not yet written.
    ended: Vec<Row>,
}

#[derive(Debug, Clone)]
struct Open {
    owner: Option<Arc<str>>,
    token: Option<u64>,
    ttl_ms: Option<u32>,
    /// The longest remaining time of any renewal of the run, if the TTL is unknown.
    ttl_seen_ms: Option<u32>,
    run: OpenRun,
    is_dirty: bool,
}

#[derive(Debug)]
struct Row {
    key: Key,
    of: Open,
}

impl Runs {
    /// Applies a change to the run of its lock; returns how a renewal relates to the previous ones.
    pub(super) fn take(&mut self, change: &LockChange) -> Option<Beat> {
        if !super::store::is_name_stored(change) {
            return None;
        }
        let key = (
            change.backend.clone(),
            change.source.clone(),
            change.resource.clone(),
        );
        if change.kind != EventKind::Renewed {
            let goes_on = matches!(
                change.kind,
                EventKind::Waiting
                    | EventKind::FewerWaiting
                    | EventKind::GrantedAfterWait
                    | EventKind::ShareAcquired
                    | EventKind::ShareReleased
                    | EventKind::Rejected
            );
            if !goes_on && let Some(of) = self.open.remove(&key) {
                self.end(key, of);
            }
            return None;
        }
        let at = change.at.timestamp_millis();
        let mut fresh = Open {
            owner: change.owner.clone(),
            token: change.token,
            ttl_ms: change.ttl_ms,
            ttl_seen_ms: change.ttl_seen_ms,
            run: OpenRun::begin(at),
            is_dirty: true,
        };
        let Some(open) = self.open.get_mut(&key) else {
            if self.open.len() < RUNS_MAX {
                self.open.insert(key, fresh);
            }
            return None;
        };
        let beat = open.run.beat(at);
        // Another TTL or owner starts another row.
        if beat.fits && open.ttl_ms == fresh.ttl_ms && open.owner == fresh.owner {
            open.ttl_seen_ms = open.ttl_seen_ms.max(fresh.ttl_seen_ms);
            open.is_dirty = true;
        } else {
            // A clock that was set back must not start a row in the range of an existing one.
            fresh.run = OpenRun::begin(at.max(open.run.run.until + 1));
            let old = std::mem::replace(open, fresh);
            self.end(key, old);
        }
        Some(beat)
    }

    fn end(&mut self, key: Key, of: Open) {
        if of.is_dirty {
            self.ended.push(Row { key, of });
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// Whether [`write`](Self::write) has rows.
    pub(super) fn has_any(&self, all: bool) -> bool {
        self.has_ended() || (all && self.open.values().any(|of| of.is_dirty))
    }

    /// Writes ended runs, and with `all` the open ones.
    pub(super) async fn write(&self, tx: &mut Tx, all: bool) -> Result<(), sqlx::Error> {
        let open = self.open.iter().filter(|(_, of)| all && of.is_dirty);
        let mut rows: Vec<(&Key, &Open)> = self.ended.iter().map(|row| (&row.key, &row.of)).collect();
        rows.extend(open);
        for chunk in chunks(&rows) {
            upsert(tx, chunk).await?;
        }
        Ok(())
    }

    /// Call after the commit of [`write`](Self::write).
    pub(super) fn mark_written(&mut self, all: bool) {
        self.ended.clear();
        if all {
            self.open.values_mut().for_each(|of| of.is_dirty = false);
        }
    }
}

const COLUMNS: usize = 11;

async fn upsert(tx: &mut Tx, rows: &[(&Key, &Open)]) -> Result<(), sqlx::Error> {
    let statement = format!(
        "INSERT INTO lock_events (at, kind, backend, source, resource, owner_id, fencing_token, ttl_ms, run_count, run_until, ttl_seen_ms)
         VALUES {}
         ON CONFLICT (backend, source, resource, at) WHERE kind = 'renewed'
         DO UPDATE SET run_count = excluded.run_count, run_until = excluded.run_until,
             ttl_seen_ms = excluded.ttl_seen_ms",
        values(tx, rows.len(), COLUMNS)
    );
    on_either!(tx, Tx, |tx| {
        let mut query = sqlx::query(AssertSqlSafe(statement));
        for ((backend, source, resource), of) in rows {
            query = query
                .bind(of.run.began)
                .bind(EventKind::Renewed.as_str())
                .bind(backend.as_str())
                .bind(source.as_str())
                .bind(resource.as_bytes())
                .bind(of.owner.as_deref().map(super::store::without_nul))
                .bind(of.token.map(|token| token.to_string()))
                .bind(of.ttl_ms.map(i64::from))
                .bind(i64::from(of.run.run.count))
                .bind(of.run.run.until)
                .bind(of.ttl_seen_ms.map(i64::from));
        }
        query.execute(&mut **tx).await?.rows_affected()
    });
    Ok(())
}
