//! Reads stored events, for timelines, previews and recommendations.

use chrono::DateTime;
use domain::history::renewal_runs::RUN_MS_MAX;
use domain::history::{HistoryEvent, Run};
use domain::lock_detail::EventKind;
use domain::names::{BackendName, OwnerId, Resource, Source};
use domain::token::FencingToken;
use sqlx::Row as _;

use super::{History, limits};
use runtime::db::on_either;

/// Position of the next page of [`History::events`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct After {
    at: i64,
    id: i64,
}

/// One page, oldest first.
#[derive(Debug, Clone, Default)]
pub struct EventPage {
    pub events: Vec<HistoryEvent>,
    /// `None`: no further page.
    pub next: Option<After>,
}

/// Without the name of the lock, which may have 64 KiB.
const COLUMNS: &str = "at, id, kind, backend, source, owner_id, fencing_token, ttl_ms, waiters, run_count, run_until, is_sampled, waited_ms, not_before, stale_after_ms";
const RESOURCE: usize = 15;

/// Time, id and event of this lock; `None` for an event of a newer version.
macro_rules! read {
    ($row:expr, $resource:expr) => {{
        let (row, resource): (_, Resource) = ($row, $resource);
        let raw = Raw {
            at: row.try_get(0)?,
            kind: row.try_get(2)?,
            backend: row.try_get(3)?,
            source: row.try_get(4)?,
            owner: row.try_get(5)?,
            token: row.try_get(6)?,
            ttl_ms: row.try_get(7)?,
            waiters: row.try_get(8)?,
            run: row
                .try_get::<Option<i64>, _>(9)?
                .zip(row.try_get::<Option<i64>, _>(10)?),
            is_sampled: row.try_get::<i64, _>(11)? != 0,
            waited_ms: row.try_get(12)?,
            not_before: row.try_get(13)?,
            stale_after_ms: row.try_get(14)?,
        };
        (raw.at, row.try_get::<i64, _>(1)?, raw.event(resource))
    }};
}

impl History {
    /// The newest `most` events of one lock from `from` until before `to`, oldest first, including runs of renewals
    /// that began earlier.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn events_of(
        &self,
        backend: &BackendName,
        source: Option<&Source>,
        resource: &Resource,
        (from, to): (i64, i64),
        most: usize,
    ) -> Result<Vec<HistoryEvent>, sqlx::Error> {
        let select = format!(
            "SELECT {COLUMNS} FROM lock_events
             WHERE backend = $1 AND resource = $2 AND (CAST($3 AS TEXT) IS NULL OR source = $3)
               AND at >= $4 AND at < $5 AND (at >= $6 OR run_until >= $6)
             ORDER BY at DESC, id DESC LIMIT $7"
        );
        let mut events = Vec::new();
        on_either!(&self.db, Db, |pool| {
            let query = sqlx::query(sqlx::AssertSqlSafe(select))
                .bind(backend.as_str())
                .bind(resource.as_bytes())
                .bind(source.map(Source::as_str))
                .bind(from.saturating_sub(RUN_MS_MAX))
                .bind(to)
                .bind(from)
                .bind(i64::try_from(most).unwrap_or(i64::MAX));
            for row in query.fetch_all(pool).await? {
                events.extend(read!(row, resource.clone()).2);
            }
        });
        events.reverse();
        Ok(events)
    }

    /// Events of all locks by page, oldest first, including runs of renewals that began up to an hour before `from`.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn events(
        &self,
        (from, to): (i64, i64),
        after: Option<After>,
        most: usize,
    ) -> Result<EventPage, sqlx::Error> {
        let select = format!(
            "SELECT {COLUMNS}, resource FROM lock_events
             WHERE at >= $1 AND at < $2 AND (at >= $3 OR run_until >= $3) AND (at > $4 OR at = $4 AND id > $5)
             ORDER BY at, id LIMIT $6"
        );
        let most = most.min(limits::PAGE_MAX);
        let begin = from.saturating_sub(RUN_MS_MAX);
        let After { at, id } = after.unwrap_or(After {
            at: begin.saturating_sub(1),
            id: 0,
        });
        let mut page = EventPage::default();
        on_either!(&self.db, Db, |pool| {
            let query = sqlx::query(sqlx::AssertSqlSafe(select))
                .bind(begin.max(at))
                .bind(to)
                .bind(from)
                .bind(at)
                .bind(id)
                .bind(i64::try_from(most).unwrap_or(i64::MAX));
            let rows = query.fetch_all(pool).await?;
            let is_full = rows.len() >= most;
            for row in rows {
                let name = Resource::from_bytes(row.try_get(RESOURCE)?);
                let (at, id, event) = read!(row, name);
                page.next = is_full.then_some(After { at, id });
                page.events.extend(event);
            }
        });
        Ok(page)
    }
}

/// The columns of one row in both stores.
struct Raw {
    at: i64,
    kind: String,
    backend: String,
    source: String,
    owner: Option<String>,
    token: Option<String>,
    ttl_ms: Option<i64>,
    waiters: Option<i64>,
    run: Option<(i64, i64)>,
    is_sampled: bool,
    waited_ms: Option<i64>,
    not_before: Option<i64>,
    stale_after_ms: Option<i64>,
}

impl Raw {
    /// `None` for an unknown kind or an invalid name.
    fn event(self, resource: Resource) -> Option<HistoryEvent> {
        DateTime::from_timestamp_millis(self.at)?;
        Some(HistoryEvent {
            at: self.at,
            kind: EventKind::parse(&self.kind)?,
            backend: BackendName::parse(&self.backend).ok()?,
            source: Source::parse(&self.source).ok()?,
            resource,
            owner: self.owner.map(OwnerId::new),
            token: self
                .token
                .and_then(|token| token.parse().ok())
                .map(FencingToken::new),
            ttl_ms: self.ttl_ms,
            not_before: self.not_before,
            stale_after_ms: self.stale_after_ms,
            waiters: self
                .waiters
                .map(|waiters| u32::try_from(waiters.max(0)).unwrap_or(u32::MAX)),
            waited_ms: self.waited_ms,
            run: self.run.map(|(count, until)| Run {
                count: u32::try_from(count.max(1)).unwrap_or(u32::MAX),
                until,
            }),
            is_sampled: self.is_sampled,
        })
    }
}
