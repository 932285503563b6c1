//! Fills a store with ended leases and idempotency keys by SQL, because granting them would take ten times as long.
//!
//! They are spread over ten minutes of the past, the leases so that the first ones are due for deletion when the load begins.

use std::fmt::Write as _;
use std::path::Path;

use domain::lease::LeaseId;
use runtime::clock::Clock;
use rusqlite::{Connection, params};
use sqlx::{Connection as _, PgConnection};

use super::RETENTION;
use crate::error::BenchError;

const ISSUER: &str = "fill";
/// Resources of the leases.
const NAMES: u32 = 16_384;
/// The time over which the rows are spread, and the window of idempotency keys. Milliseconds.
const SPAN_MS: i64 = 600_000;
/// A lease is visited for deletion this long after its retention, see `store/retention.rs` of the lease service.
const VISITED_AFTER_MS: i64 = 600_000;
/// Until the load begins.
const FILL_MS: i64 = 180_000;
const ROWS_PER_COPY: u32 = 50_000;

/// Row `number` of `rows`, in the order of time.
struct Row {
    lease: String,
    resource: u32,
    token: u32,
    ended_ms: i64,
    key: String,
    key_ms: i64,
}

struct Rows {
    count: u32,
    /// Creation of the first lease.
    leases_from_ms: i64,
    keys_from_ms: i64,
}

impl Rows {
    fn new(count: u32) -> Self {
        let begin_ms = Clock::start().now().wall.timestamp_millis() + FILL_MS;
        let retention_ms = domain::duration::millis(RETENTION);
        Self {
            count,
            leases_from_ms: begin_ms - retention_ms - VISITED_AFTER_MS,
            keys_from_ms: begin_ms - SPAN_MS,
        }
    }

    fn row(&self, number: u32) -> Row {
        let offset_ms = SPAN_MS * i64::from(number) / i64::from(self.count);
        let created_ms = self.leases_from_ms + offset_ms;
        let mut random = [0; 10];
        // Rising within a millisecond, as the ids of appended rows.
        random[..4].copy_from_slice(&number.to_be_bytes());
        Row {
            lease: LeaseId::from_parts(created_ms, random).to_string(),
            resource: number % NAMES,
            token: number / NAMES + 1,
            ended_ms: created_ms,
            key: format!("fill{number:028}"),
            key_ms: self.keys_from_ms + offset_ms,
        }
    }

    /// The last token of a resource.
    fn last_token(&self, resource: u32) -> u32 {
        (self.count + NAMES - 1 - resource) / NAMES
    }
}

pub(super) fn sqlite(file: &Path, count: u32) -> Result<(), BenchError> {
    let rows = Rows::new(count);
    let mut connection = Connection::open(file)?;
    connection.pragma_update(None, "synchronous", "off")?;
    let transaction = connection.transaction()?;
    {
        let mut lease = transaction.prepare(
            "INSERT INTO leases (lease_id, resource, owner_id, issuer, fencing_token, ttl_seconds, metadata, acquired_at,
                expires_at, renewed_at, renewals, ended_at, ended_how)
             VALUES (?1, 'fill:' || ?2, 'fill', 'fill', ?3, 30, '{}', ?4, ?4 + 30000, ?4, 0, ?4, 'released')",
        )?;
        let mut key = transaction.prepare(
            "INSERT INTO idempotency_keys (issuer, key, fingerprint, lease_id, is_claimed, created_at)
             VALUES (?1, ?2, 'fill', ?3, 1, ?4)",
        )?;
        for row in (0..count).map(|number| rows.row(number)) {
            lease.execute(params![row.lease, row.resource, row.token, row.ended_ms])?;
            key.execute(params![ISSUER, row.key, row.lease, row.key_ms])?;
        }
        let mut counter = transaction
            .prepare("INSERT INTO resource_tokens (resource, last_token) VALUES ('fill:' || ?1, ?2)")?;
        for resource in 0..NAMES.min(count) {
            counter.execute([resource, rows.last_token(resource)])?;
        }
    }
    transaction.commit()?;
    Ok(())
}

pub(super) async fn postgres(url: &str, count: u32) -> Result<(), BenchError> {
    const LEASES: &str =
        "COPY leases (lease_id, resource, owner_id, issuer, fencing_token, ttl_seconds, metadata,
        acquired_at, expires_at, renewed_at, renewals, ended_at, ended_how) FROM STDIN";
    const KEYS: &str =
        "COPY idempotency_keys (issuer, key, fingerprint, lease_id, is_claimed, created_at) FROM STDIN";
    const COUNTERS: &str = "COPY resource_tokens (resource, last_token) FROM STDIN";
    let rows = Rows::new(count);
    let mut connection = PgConnection::connect(url).await?;
    let mut from = 0;
    while from < count {
        let until = count.min(from + ROWS_PER_COPY);
        let (mut leases, mut keys) = (String::new(), String::new());
        for row in (from..until).map(|number| rows.row(number)) {
            let Row {
                lease,
                resource,
                token,
                ended_ms: at,
                key,
                key_ms,
            } = row;
            let _ = writeln!(
                leases,
                "{lease}\tfill:{resource}\tfill\t{ISSUER}\t{token}\t30\t{{}}\t{at}\t{}\t{at}\t0\t{at}\treleased",
                at + 30_000
            );
            let _ = writeln!(keys, "{ISSUER}\t{key}\tfill\t{lease}\ttrue\t{key_ms}");
        }
        copy(&mut connection, LEASES, leases).await?;
        copy(&mut connection, KEYS, keys).await?;
        from = until;
    }
    let mut counters = String::new();
    for resource in 0..NAMES.min(count) {
        let _ = writeln!(counters, "fill:{resource}\t{}", rows.last_token(resource));
    }
    copy(&mut connection, COUNTERS, counters).await?;
    sqlx::raw_sql("VACUUM ANALYZE leases, idempotency_keys, resource_tokens")
        .execute(&mut connection)
        .await?;
    connection.close().await?;
    Ok(())
}

async fn copy(connection: &mut PgConnection, statement: &str, text: String) -> Result<(), BenchError> {
    let mut copy = connection.copy_in_raw(statement).await?;
    copy.send(text.into_bytes()).await?;
    copy.finish().await?;
    Ok(())
}
