//! The event source on the tables of history, audit and lease store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::alerts::{CountedEvent, Counts, Gap};
use domain::history::{HistoryEvent, Run};
use domain::lease::StoreTime;
use domain::lock_detail::EventKind;
use domain::names::{BackendName, LockId, OwnerId, Resource, Source};
use domain::token::FencingToken;
use sqlx::{PgPool, Row as _};

use super::{Answer, Ledger, ReadPositions, Start};
use crate::audit::Audit;
use crate::history::signals::{self, Signal};
use inventory::Inventory;
use lease::{LeaseError, LeaseService, RejectionCount, RejectionPosition, RejectionSpan};
use runtime::db::{Db, on_either};

/// How long a row of signals can grow after its start, in milliseconds.
const SIGNALS_RECENT_MS: i64 = 120_000;

pub struct SqlLedger {
    history: Db,
    console: Db,
    leases: Arc<LeaseService>,
    audit: Audit,
    inventory: Arc<Inventory>,
    /// Store queries, for metrics and the test of an idle server.
    queries: AtomicU64,
}

impl SqlLedger {
    pub fn new(history: Db, audit: Audit, inventory: Arc<Inventory>, leases: Arc<LeaseService>) -> Self {
        Self {
            history,
            console: audit.db().clone(),
            leases,
            audit,
            inventory,
            queries: AtomicU64::new(0),
        }
    }

    fn count_query(&self) {
        self.queries.fetch_add(1, Ordering::Relaxed);
    }

    /// Positions including other replicas: one statement, each part by the end of an index. Recent signals are added
    /// to in place: while there are any, the position always differs.
    async fn shared_positions(pool: &PgPool, now: i64) -> Result<ReadPositions, sqlx::Error> {
        let select = "SELECT (SELECT revision FROM alert_evaluator), (SELECT coalesce(max(id), 0) FROM lock_events),
            (SELECT coalesce(max(id), 0) FROM fencing_rejections), (SELECT coalesce(max(seq), 0) FROM audit_entries),
            EXISTS (SELECT 1 FROM lease_signals WHERE at >= $1)";
        let query = sqlx::query(select).bind(now - SIGNALS_RECENT_MS);
        let row = query.fetch_one(pool).await?;
        let has_signals: bool = row.try_get(4)?;
        Ok(ReadPositions {
            revision: row.try_get(0)?,
            events: row.try_get(1)?,
            records: (row.try_get(2)?, row.try_get(3)?),
            signals: if has_signals { now } else { 0 },
        })
    }

    /// Positions of a store with a single server, from memory.
    fn own_positions(&self) -> Option<ReadPositions> {
        let count = |count: u64| count.cast_signed();
        // Signals are written together with events.
        let written = count(self.inventory.journal().written()?);
        Some(ReadPositions {
            revision: None,
            events: written,
            records: (
                count(self.leases.metrics().rejections.read()),
                count(self.audit.publish_count()),
            ),
            signals: written,
        })
    }

    async fn read(&self, after: i64, most: i64) -> Result<Vec<(i64, HistoryEvent)>, sqlx::Error> {
        let select =
            "SELECT id, at, kind, backend, source, resource, owner_id, fencing_token, ttl_ms, waiters, run_count,
            run_until, is_sampled, not_before, stale_after_ms FROM lock_events WHERE id > $1 ORDER BY id LIMIT $2";
        let mut names = Names::default();
        let mut events = Vec::new();
        on_either!(&self.history, Db, |pool| {
            let query = sqlx::query(select).bind(after).bind(most);
            for row in query.fetch_all(pool).await? {
                let kind: &str = row.try_get(2)?;
                let (backend, source): (&str, &str) = (row.try_get(3)?, row.try_get(4)?);
                let token: Option<&str> = row.try_get(7)?;
                let owner: Option<&str> = row.try_get(6)?;
                // A newer version may know more kinds.
                let known = EventKind::parse(kind).zip(names.intern(backend, source));
                let Some((kind, (backend, source))) = known else {
                    continue;
                };
                let event = HistoryEvent {
                    at: row.try_get(1)?,
                    kind,
                    backend,
                    source,
                    resource: Resource::from_bytes(row.try_get(5)?),
                    owner: owner.map(OwnerId::new),
                    token: token.and_then(|token| token.parse().ok()).map(FencingToken::new),
                    ttl_ms: row.try_get(8)?,
                    not_before: row.try_get(13)?,
                    stale_after_ms: row.try_get(14)?,
                    waiters: saturating_u32(row.try_get(9)?),
                    // Rules measure waits by queue length.
                    waited_ms: None,
                    run: saturating_u32(row.try_get(10)?)
                        .zip(row.try_get(11)?)
                        .map(|(count, until)| Run { count, until }),
                    is_sampled: row.try_get::<i64, _>(12)? != 0,
                };
                events.push((row.try_get(0)?, event));
            }
        });
        Ok(events)
    }

    async fn read_position(&self, select: &'static str, at: i64) -> Result<i64, sqlx::Error> {
        Ok(on_either!(&self.history, Db, |pool| sqlx::query_scalar(select)
            .bind(at)
            .fetch_one(pool)
            .await?))
    }

    async fn read_unlocks(&self, since: i64) -> Result<Vec<CountedEvent>, sqlx::Error> {
        let select =
            "SELECT acted_at, backend, source, resource, by_name, break_glass_reason IS NOT NULL FROM unlocks
            WHERE acted_at >= $1 AND state IN ('released', 'outcome_unknown') ORDER BY acted_at";
        let mut all = Vec::new();
        on_either!(&self.console, Db, |pool| {
            for row in sqlx::query(select).bind(since).fetch_all(pool).await? {
                let (backend, source, resource, by): (String, String, String, String) =
                    (row.try_get(1)?, row.try_get(2)?, row.try_get(3)?, row.try_get(4)?);
                let named = BackendName::parse(&backend)
                    .ok()
                    .zip(Source::parse(&source).ok())
                    .zip(serde_json::from_str::<Resource>(&resource).ok());
                let Some(((backend, source), resource)) = named else {
                    continue;
                };
                let is_alone: bool = row.try_get(5)?;
                all.push(CountedEvent {
                    at: row.try_get(0)?,
                    what: Counts::Unlock { is_alone },
                    lock: Some(LockId {
                        backend: backend.clone(),
                        source,
                        resource,
                    }),
                    backend,
                    owner: None,
                    times: 1,
                    how: format!(
                        "by {by}{}",
                        if is_alone {
                            ", without a second approver"
                        } else {
                            ""
                        }
                    ),
                });
            }
        });
        Ok(all)
    }

    async fn read_rejections(&self, span: &RejectionSpan) -> Result<Vec<CountedEvent>, sqlx::Error> {
        let counts = self.leases.rejection_counts(span).await.map_err(lease_store)?;
        Ok(counts.into_iter().map(rejected).collect())
    }
}

fn lease_store(error: LeaseError) -> sqlx::Error {
    sqlx::Error::AnyDriverError(Box::new(error))
}

fn rejected(count: RejectionCount) -> CountedEvent {
    let how = match count.highest.filter(|_| count.is_older) {
        Some(highest) => format!("with token {} after {highest} was granted", count.token),
        None => format!("with token {}", count.token),
    };
    CountedEvent {
        at: count.at.ms(),
        what: Counts::Rejection {
            is_older: count.is_older,
        },
        lock: Some(LockId {
            backend: BackendName::builtin(),
            source: Source::fixed("lease"),
            resource: Resource::from(count.resource.as_str()),
        }),
        backend: BackendName::builtin(),
        owner: count.owner,
        times: u32::try_from(count.times).unwrap_or(u32::MAX),
        how,
    }
}

/// A stored count.
fn saturating_u32(count: Option<i64>) -> Option<u32> {
    count.map(|count| u32::try_from(count).unwrap_or(u32::MAX))
}

/// Interns names that repeat in every row.
#[derive(Default)]
struct Names(Vec<(String, String, BackendName, Source)>);

impl Names {
    fn intern(&mut self, backend: &str, source: &str) -> Option<(BackendName, Source)> {
        if let Some((_, _, backend, source)) = self.0.iter().find(|(b, s, ..)| b == backend && s == source) {
            return Some((backend.clone(), source.clone()));
        }
        let parsed = (BackendName::parse(backend).ok()?, Source::parse(source).ok()?);
        self.0.push((
            backend.to_owned(),
            source.to_owned(),
            parsed.0.clone(),
            parsed.1.clone(),
        ));
        Some(parsed)
    }
}

impl Ledger for SqlLedger {
    fn events(&self, after: i64, most: i64) -> Answer<'_, Vec<(i64, HistoryEvent)>> {
        self.count_query();
        Box::pin(self.read(after, most))
    }

    fn position_before(&self, at: i64) -> Answer<'_, i64> {
        let select = "SELECT coalesce((SELECT min(id) - 1 FROM lock_events WHERE at >= $1),
            (SELECT max(id) FROM lock_events), 0)";
        Box::pin(self.read_position(select, at))
    }

    fn recent_position_before(&self, at: i64) -> Answer<'_, i64> {
        // A sum, so that it is read by time and not by id.
        let select = "SELECT coalesce((SELECT min(id + 0) - 1 FROM lock_events WHERE at >= $1),
            (SELECT max(id) FROM lock_events), 0)";
        Box::pin(self.read_position(select, at))
    }

    fn start(&self, since: i64, most: i64) -> Answer<'_, Start> {
        // Positions can have gaps, so there are never more events than positions.
        let first = "SELECT at FROM lock_events WHERE id > $1 ORDER BY id LIMIT 1";
        Box::pin(async move {
            let position = self.position_before(since).await?;
            let last = self.last_position().await?;
            if last - position <= most {
                return Ok(Start { position, at: since });
            }
            let position = last - most;
            let at: Option<i64> = on_either!(&self.history, Db, |pool| sqlx::query_scalar(first)
                .bind(position)
                .fetch_optional(pool)
                .await?);
            let at = at.map_or(since, |at| at.max(since));
            Ok(Start { position, at })
        })
    }

    fn last_position(&self) -> Answer<'_, i64> {
        let select = "SELECT coalesce(max(id), 0) FROM lock_events";
        Box::pin(async move {
            Ok(on_either!(&self.history, Db, |pool| sqlx::query_scalar(select)
                .fetch_one(pool)
                .await?))
        })
    }

    fn gaps(&self, since: i64) -> Answer<'_, Vec<Gap>> {
        let select = "SELECT started_at, ended_at, backend FROM history_gaps WHERE ended_at >= $1
            ORDER BY started_at, ended_at LIMIT 10000";
        Box::pin(async move {
            let rows: Vec<(i64, i64, Option<String>)> = on_either!(&self.history, Db, |pool| {
                sqlx::query_as(select).bind(since).fetch_all(pool).await?
            });
            let gap = |(began, ended, backend): (i64, i64, Option<String>)| {
                let backend = backend.map(|name| BackendName::parse(&name));
                let backend = backend.transpose().ok()?;
                Some(Gap {
                    backend,
                    began,
                    ended,
                })
            };
            Ok(rows.into_iter().filter_map(gap).collect())
        })
    }

    fn positions(&self, now: i64) -> Answer<'_, Option<ReadPositions>> {
        Box::pin(async move {
            match &self.history {
                Db::Sqlite(_) => Ok(self.own_positions()),
                Db::Postgres(pool) => {
                    self.count_query();
                    let mut positions = Self::shared_positions(pool, now).await?;
                    if self.leases.has_own_store() {
                        let last = self
                            .leases
                            .last_rejection_before(StoreTime::from_ms(i64::MAX))
                            .await;
                        // Without an answer the position is that of the tables, which differs.
                        positions.records.0 = last.map_or(positions.records.0, |last| last.sum());
                    }
                    Ok(Some(positions))
                }
            }
        })
    }

    fn query_count(&self) -> u64 {
        self.queries.load(Ordering::Relaxed)
    }

    fn signals(&self, since: i64) -> Answer<'_, Vec<Signal>> {
        self.count_query();
        Box::pin(signals::read(&self.history, since))
    }

    fn unlocks(&self, since: i64) -> Answer<'_, Vec<CountedEvent>> {
        self.count_query();
        Box::pin(self.read_unlocks(since))
    }

    fn rejections(&self, span: RejectionSpan) -> Answer<'_, Vec<CountedEvent>> {
        self.count_query();
        Box::pin(async move { self.read_rejections(&span).await })
    }

    fn last_rejection_before(&self, at: i64) -> Answer<'_, RejectionPosition> {
        self.count_query();
        Box::pin(async move {
            let last = self.leases.last_rejection_before(StoreTime::from_ms(at)).await;
            last.map_err(lease_store)
        })
    }
}
