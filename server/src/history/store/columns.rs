//! Inserts events on Postgres with columns as parameters: with a parameter per value, planning would cost more than
//! execution.

use domain::lock_detail::EventKind;
use sqlx::{Postgres, Transaction};

use super::{trace_of, without_nul};
use inventory::LockChange;
use lease::LeaseService;

/// Rows per statement, which limits memory.
const ROWS_MAX: usize = 4_096;

const INSERT: &str = "INSERT INTO lock_events
        (at, kind, backend, source, resource, owner_id, fencing_token, ttl_ms, waiters, is_sampled, trace_id, waited_ms,
         ttl_seen_ms, not_before, stale_after_ms)
     SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::text[], $7::text[],
        $8::bigint[], $9::bigint[], $10::bigint[], $11::text[], $12::bigint[], $13::bigint[], $14::bigint[],
        $15::bigint[])";

#[derive(Default)]
struct Columns<'a> {
    at: Vec<i64>,
    kind: Vec<&'static str>,
    backend: Vec<&'a str>,
    source: Vec<&'a str>,
    resource: Vec<&'a [u8]>,
    owner_id: Vec<Option<String>>,
    fencing_token: Vec<Option<String>>,
    ttl_ms: Vec<Option<i64>>,
    waiters: Vec<Option<i64>>,
    is_sampled: Vec<i64>,
    trace_id: Vec<Option<String>>,
    waited_ms: Vec<Option<i64>>,
    ttl_seen_ms: Vec<Option<i64>>,
    not_before: Vec<Option<i64>>,
    stale_after_ms: Vec<Option<i64>>,
}

impl<'a> Columns<'a> {
    fn push(&mut self, change: &'a LockChange, leases: Option<&LeaseService>) {
        self.at.push(change.at.timestamp_millis());
        self.kind.push(EventKind::as_str(change.kind));
        self.backend.push(change.backend.as_str());
        self.source.push(change.source.as_str());
        self.resource.push(change.resource.as_bytes());
        let owner = change.owner.as_deref();
        self.owner_id
            .push(owner.map(|owner| without_nul(owner).into_owned()));
        self.fencing_token
            .push(change.token.map(|token| token.to_string()));
        self.ttl_ms.push(change.ttl_ms.map(i64::from));
        self.waiters.push(change.waiters.map(i64::from));
        self.is_sampled.push(i64::from(change.is_sampled));
        self.trace_id.push(trace_of(leases, change));
        self.waited_ms.push(change.waited_ms);
        self.ttl_seen_ms.push(change.ttl_seen_ms.map(i64::from));
        self.not_before
            .push(change.not_before.map(|after| after.timestamp_millis()));
        self.stale_after_ms.push(change.stale_after_ms.map(i64::from));
    }
}

pub(super) async fn insert(
    tx: &mut Transaction<'static, Postgres>,
    changes: &[&LockChange],
    leases: Option<&LeaseService>,
) -> Result<(), sqlx::Error> {
    for some in changes.chunks(ROWS_MAX) {
        let mut columns = Columns::default();
        for change in some {
            columns.push(change, leases);
        }
        sqlx::query(INSERT)
            .bind(columns.at)
            .bind(columns.kind)
            .bind(columns.backend)
            .bind(columns.source)
            .bind(columns.resource)
            .bind(columns.owner_id)
            .bind(columns.fencing_token)
            .bind(columns.ttl_ms)
            .bind(columns.waiters)
            .bind(columns.is_sampled)
            .bind(columns.trace_id)
            .bind(columns.waited_ms)
            .bind(columns.ttl_seen_ms)
            .bind(columns.not_before)
            .bind(columns.stale_after_ms)
            .execute(&mut **tx)
            .await?;
    }
    Ok(())
}
