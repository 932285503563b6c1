//! Queries of the audit log: pages for display, newest first; one entry with its neighbours; the whole chain in
//! order.

use chrono::DateTime;
use domain::audit::{AuditEntry, AuditPage, AuditQuery, Readable};
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, FromRow};

use super::append::AuditRecord;
use super::filter::{FilterKind, Statement, Value};
use super::{Audit, chain, redaction};
use runtime::db::on_either;

/// One entry, and whether it and the one before it are consistent.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordWithNeighbours {
    pub row: AuditEntry,
    /// Its fields give its stored hash.
    pub gives_its_hash: bool,
    /// The previous entry exists and has the hash that this one refers to.
    pub follows: bool,
    /// The nearest readable entries.
    pub older: Option<AuditEntry>,
    pub newer: Option<AuditEntry>,
}

impl Audit {
    /// Matching entries, newest first. A name prefix matches bytes, without wildcards. Pages are stable during
    /// appends: each continues below the last number of the page before.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn page(&self, query: &AuditQuery) -> Result<AuditPage, sqlx::Error> {
        let limit = usize::try_from(query.limit).unwrap_or(usize::MAX);
        let is_few = match Statement::few_entries(self.kind(), query) {
            Some(statement) => !self.select::<(i64,)>(statement).await?.is_empty(),
            None => false,
        };
        let mut rows: Vec<AuditRecord> = self.select(Statement::page(self.kind(), query, is_few)).await?;
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next_cursor = rows.last().filter(|_| more).map(|row| row.seq.to_string());
        let rows = rows.into_iter().map(|row| redact(row, &query.readable));
        Ok(AuditPage {
            rows: rows.collect(),
            next_cursor,
        })
    }

    /// One entry by its number; `None` if it does not exist or is not readable.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn read_with_neighbours(
        &self,
        seq: i64,
        readable: &Readable,
    ) -> Result<Option<RecordWithNeighbours>, sqlx::Error> {
        let found: Vec<AuditRecord> = self.select(Statement::from(self.kind(), seq, readable)).await?;
        let Some(row) = found.into_iter().next().filter(|row| row.seq == seq) else {
            return Ok(None);
        };
        let before: Vec<AuditRecord> = self.select(Statement::after(self.kind(), seq - 2, 1)).await?;
        let follows = match before.first() {
            Some(before) if before.seq == seq - 1 => before.hash == row.prev_hash,
            _ => seq == 1 && row.prev_hash == chain::GENESIS,
        };
        let newer: Vec<AuditRecord> = self
            .select(Statement::from(self.kind(), seq.saturating_add(1), readable))
            .await?;
        let older = AuditQuery {
            limit: 1,
            before_seq: Some(seq),
            readable: readable.clone(),
            ..AuditQuery::default()
        };
        let older = self.page(&older).await?.rows.into_iter().next();
        Ok(Some(RecordWithNeighbours {
            gives_its_hash: chain::hash(&row) == row.hash,
            follows,
            older,
            newer: newer.into_iter().next().map(|row| redact(row, readable)),
            row: redact(row, readable),
        }))
    }

    /// Number of the latest entry; 0 without one.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn last(&self) -> Result<i64, sqlx::Error> {
        let select = "SELECT coalesce(max(seq), 0) FROM audit_entries";
        on_either!(self.db(), Db, |pool| sqlx::query_scalar(select)
            .fetch_one(pool)
            .await)
    }

    /// Entries after `seq`, in order, at most `limit`.
    pub(super) async fn after(&self, seq: i64, limit: i64) -> Result<Vec<AuditRecord>, sqlx::Error> {
        self.select(Statement::after(self.kind(), seq, limit)).await
    }

    fn kind(&self) -> FilterKind {
        FilterKind::from_db(self.db())
    }

    async fn select<T>(&self, statement: Statement) -> Result<Vec<T>, sqlx::Error>
    where
        T: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin,
    {
        on_either!(self.db(), Db, |pool| {
            // Safe: the text is built from constants, values are bound.
            let mut query = sqlx::query_as::<_, T>(AssertSqlSafe(statement.sql));
            for value in statement.values {
                query = match value {
                    Value::Text(text) => query.bind(text),
                    Value::Int(number) => query.bind(number),
                };
            }
            query.fetch_all(pool).await
        })
    }
}

fn redact(row: AuditRecord, readable: &Readable) -> AuditEntry {
    let (before, after) = redaction::to(readable, &row);
    AuditEntry {
        id: row.seq.to_string(),
        created_at: DateTime::from_timestamp_millis(row.created_at).unwrap_or_default(),
        action: row.action,
        phase: row.phase,
        outcome: row.outcome,
        actor_id: row.actor_id,
        actor_name: row.actor_name,
        role: row.role,
        backend: row.backend,
        source: row.source,
        resource: row.resource,
        unlock_id: row.unlock_id,
        reason: row.reason,
        approver_id: row.approver_id,
        before,
        after,
        ip: row.ip,
        user_agent: row.user_agent,
        request_id: row.request_id,
        trace_id: row.trace_id,
        prev_hash: row.prev_hash,
        hash: row.hash,
    }
}
