//! Reading the record: pages for people, newest first, one row with what ties it to its neighbours, and the whole chain in
//! order.

use chrono::DateTime;
use domain::audit::{AuditPage, AuditQuery, AuditRow, Readable};
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, FromRow};

use super::append::Row;
use super::filter::{Kind, Statement, Value};
use super::{Audit, chain, cut};
use crate::db::on_either;

/// One row, and whether it is as it was written, as far as it and the row before it tell.
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    pub row: AuditRow,
    /// Its fields give its hash.
    pub gives_its_hash: bool,
    /// The row before it is there, with the hash that this one holds.
    pub follows: bool,
    /// The nearest ones that may be read.
    pub older: Option<AuditRow>,
    pub newer: Option<AuditRow>,
}

impl Audit {
    /// Rows that fit, newest first. Names begin with the prefix as bytes do: no wildcards. A page is exact while others
    /// append: it goes on below the last number of the page before.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn page(&self, query: &AuditQuery) -> Result<AuditPage, sqlx::Error> {
        let limit = usize::try_from(query.limit).unwrap_or(usize::MAX);
        let is_few = match Statement::few(self.kind(), query) {
            Some(statement) => !self.select::<(i64,)>(statement).await?.is_empty(),
            None => false,
        };
        let mut rows: Vec<Row> = self.select(Statement::page(self.kind(), query, is_few)).await?;
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next_cursor = rows.last().filter(|_| more).map(|row| row.seq.to_string());
        let rows = rows.into_iter().map(|row| shown(row, &query.readable));
        Ok(AuditPage {
            rows: rows.collect(),
            next_cursor,
        })
    }

    /// One row by its number. None: there is none, or it may not be read.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn look(&self, seq: i64, readable: &Readable) -> Result<Option<Look>, sqlx::Error> {
        let found: Vec<Row> = self.select(Statement::from(self.kind(), seq, readable)).await?;
        let Some(row) = found.into_iter().next().filter(|row| row.seq == seq) else {
            return Ok(None);
        };
        let before: Vec<Row> = self.select(Statement::after(self.kind(), seq - 2, 1)).await?;
        let follows = match before.first() {
            Some(before) if before.seq == seq - 1 => before.hash == row.prev_hash,
            _ => seq == 1 && row.prev_hash == chain::GENESIS,
        };
        let newer: Vec<Row> = self
            .select(Statement::from(self.kind(), seq.saturating_add(1), readable))
            .await?;
        let older = AuditQuery {
            limit: 1,
            before_seq: Some(seq),
            readable: readable.clone(),
            ..AuditQuery::default()
        };
        let older = self.page(&older).await?.rows.into_iter().next();
        Ok(Some(Look {
            gives_its_hash: chain::hash(&row) == row.hash,
            follows,
            older,
            newer: newer.into_iter().next().map(|row| shown(row, readable)),
            row: shown(row, readable),
        }))
    }

    /// Number of the row that was written last; 0 for none.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn last(&self) -> Result<i64, sqlx::Error> {
        let select = "SELECT coalesce(max(seq), 0) FROM audit_rows";
        on_either!(self.db(), Db, |pool| sqlx::query_scalar(select)
            .fetch_one(pool)
            .await)
    }

    /// Rows after `seq`, in order, at most `limit`.
    pub(super) async fn after(&self, seq: i64, limit: i64) -> Result<Vec<Row>, sqlx::Error> {
        self.select(Statement::after(self.kind(), seq, limit)).await
    }

    fn kind(&self) -> Kind {
        Kind::of(self.db())
    }

    async fn select<T>(&self, statement: Statement) -> Result<Vec<T>, sqlx::Error>
    where
        T: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin,
    {
        on_either!(self.db(), Db, |pool| {
            // Made of our own words: what was asked for is in its values.
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

fn shown(row: Row, readable: &Readable) -> AuditRow {
    let (before, after) = cut::to(readable, &row);
    AuditRow {
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
