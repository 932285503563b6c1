//! Reading the record: pages for people, newest first, and the whole chain in order.

use chrono::DateTime;
use domain::audit::{AuditPage, AuditQuery, AuditRow};
use domain::lease::NameRange;
use sqlx::QueryBuilder;

use super::Audit;
use super::append::Row;
use crate::db::on_either;

pub(super) const ROWS_OF_ONE_READ: i64 = 5_000;

const COLUMNS: &str = "SELECT seq, created_at, action, phase, outcome, actor_id, actor_name, role, backend, source, resource,
    unlock_id, reason, approver_id, before, after, ip, user_agent, request_id, trace_id, prev_hash, hash FROM audit_rows";

impl Audit {
    /// Rows that fit, newest first. Names begin with the prefix as bytes do: no wildcards.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn page(&self, query: &AuditQuery) -> Result<AuditPage, sqlx::Error> {
        let limit = i64::from(query.limit);
        let mut rows = on_either!(self.db(), Db, |pool| {
            let mut select = QueryBuilder::new(COLUMNS);
            select.push(" WHERE 1 = 1");
            if let Some(actor) = &query.actor {
                select.push(" AND (actor_id = ").push_bind(actor);
                select.push(" OR actor_name = ").push_bind(actor).push(")");
            }
            let exact = [
                (" AND backend = ", query.backend.as_deref()),
                (" AND action = ", query.action.map(domain::audit::Action::wire)),
                (" AND outcome = ", query.outcome.as_deref()),
                (" AND unlock_id = ", query.unlock_id.as_deref()),
            ];
            for (column, value) in exact {
                if let Some(value) = value {
                    select.push(column).push_bind(value);
                }
            }
            let range = query.prefix.as_deref().map(NameRange::starting_with);
            if let Some(range) = &range {
                select.push(" AND resource >= ").push_bind(&range.from);
                if let Some(to) = &range.to {
                    select.push(" AND resource < ").push_bind(to);
                }
            }
            if let Some(from) = query.from {
                select
                    .push(" AND created_at >= ")
                    .push_bind(from.timestamp_millis());
            }
            if let Some(to) = query.to {
                select.push(" AND created_at < ").push_bind(to.timestamp_millis());
            }
            if let Some(before) = query.before_seq {
                select.push(" AND seq < ").push_bind(before);
            }
            select.push(" ORDER BY seq DESC LIMIT ").push_bind(limit + 1);
            select.build_query_as::<Row>().fetch_all(pool).await?
        });
        let more = i64::try_from(rows.len()).unwrap_or(i64::MAX) > limit;
        rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        let next_cursor = rows.last().filter(|_| more).map(|row| row.seq.to_string());
        Ok(AuditPage {
            rows: rows.into_iter().map(shown).collect(),
            next_cursor,
        })
    }

    /// Rows after `seq`, in order, at most [`ROWS_OF_ONE_READ`].
    pub(super) async fn after(&self, seq: i64) -> Result<Vec<Row>, sqlx::Error> {
        on_either!(self.db(), Db, |pool| {
            let mut select = QueryBuilder::new(COLUMNS);
            select.push(" WHERE seq > ").push_bind(seq);
            select.push(" ORDER BY seq LIMIT ").push_bind(ROWS_OF_ONE_READ);
            select.build_query_as::<Row>().fetch_all(pool).await
        })
    }
}

fn shown(row: Row) -> AuditRow {
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
        before: row.before,
        after: row.after,
        ip: row.ip,
        user_agent: row.user_agent,
        request_id: row.request_id,
        trace_id: row.trace_id,
        prev_hash: row.prev_hash,
        hash: row.hash,
    }
}
