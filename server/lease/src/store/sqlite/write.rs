//! Writes the changes of a batch row by row with cached prepared statements, inside its transaction.

use domain::lease::{EndCause, Lease, LeaseId, Revocation, StoreTime};
use domain::names::{OwnerId, Resource};
use domain::token::FencingToken;
use rusqlite::{CachedStatement, Connection, Params, params};

use super::sql;
use super::unwritten_counters::{CounterPlan, CounterRow};
use crate::batch::Changes;
use crate::store::StoreError;
use crate::store::rows::metadata_text;

/// All rows but the idempotency keys: see [`write_keys`].
pub(super) fn write(
    connection: &Connection,
    changes: &Changes,
    counters: &CounterPlan,
    replica: &str,
    now: StoreTime,
) -> Result<(), StoreError> {
    write_counters(connection, &counters.rows)?;
    // Endings before new leases: the unique index allows one lease without an ending per resource.
    update_leases(connection, changes)?;
    insert_leases(connection, changes)?;
    write_others(connection, changes, replica, now)?;
    let grants = i64::try_from(changes.grants).unwrap_or(0);
    execute_one(
        &mut connection.prepare_cached(sql::TICK)?,
        params![
            now.ms(),
            grants,
            counters.unwritten_from.map(|from| from.to_string())
        ],
    )
}

/// Executes a statement that must change exactly one row; otherwise the file differs from what was read.
fn execute_one(statement: &mut CachedStatement<'_>, params: impl Params) -> Result<(), StoreError> {
    match statement.execute(params)? {
        1 => Ok(()),
        rows => Err(StoreError::Corrupt(format!("one row expected, {rows} written"))),
    }
}

fn execute(connection: &Connection, sql: &'static str, params: impl Params) -> Result<(), StoreError> {
    connection.prepare_cached(sql)?.execute(params)?;
    Ok(())
}

fn revocation(lease: &Lease) -> Option<&Revocation> {
    match lease.ending.as_ref().map(|ending| &ending.how) {
        Some(EndCause::Revoked(revocation)) => Some(revocation),
        _ => None,
    }
}

/// No lease with a smaller id has an unwritten counter; `None`: all counters are written.
pub(super) fn write_unwritten_from(connection: &Connection, from: Option<LeaseId>) -> Result<(), StoreError> {
    execute(
        connection,
        sql::UNWRITTEN_FROM,
        [from.map(|from| from.to_string())],
    )
}

pub(super) fn write_counters(connection: &Connection, rows: &[CounterRow]) -> Result<(), StoreError> {
    let mut first = connection.prepare_cached(sql::FIRST_COUNTER)?;
    let mut counter = connection.prepare_cached(sql::COUNTER)?;
    for row in rows {
        let name = row.resource.text();
        let token = row.token.cast_signed();
        let lease = row.lease.map(|lease| lease.to_string());
        let until = row.locked_until.map(StoreTime::ms);
        if row.written == 0 {
            execute_one(&mut first, params![name, token, lease, until])?;
        } else {
            execute_one(
                &mut counter,
                params![name, token, lease, until, row.written.cast_signed()],
            )?;
        }
    }
    Ok(())
}

fn update_leases(connection: &Connection, changes: &Changes) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(sql::UPDATE_LEASE)?;
    for change in changes.leases.values().filter(|change| !change.is_new) {
        let lease = &change.lease;
        let revocation = revocation(lease);
        let row = params![
            lease.id.to_string(),
            lease.ttl.seconds(),
            lease.expires_at.ms(),
            lease.renewed_at.ms(),
            lease.renewals,
            lease.ending.as_ref().map(|ending| ending.at.ms()),
            lease.ending.as_ref().map(|ending| ending.how.as_str()),
            revocation.map(|it| &*it.by),
            revocation.map(|it| &*it.reason),
            revocation.map(|it| &*it.audit_id),
        ];
        execute_one(&mut statement, row)?;
    }
    Ok(())
}

fn insert_leases(connection: &Connection, changes: &Changes) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(sql::INSERT_LEASE)?;
    for change in changes.leases.values().filter(|change| change.is_new) {
        let lease = &change.lease;
        let revocation = revocation(lease);
        let row = params![
            lease.id.to_string(),
            change.resource.text(),
            lease.owner.as_str(),
            &*lease.issuer,
            lease.token.number().cast_signed(),
            lease.ttl.seconds(),
            metadata_text(&lease.metadata),
            lease.acquired_at.ms(),
            lease.expires_at.ms(),
            lease.renewed_at.ms(),
            lease.renewals,
            lease.ending.as_ref().map(|ending| ending.at.ms()),
            lease.ending.as_ref().map(|ending| ending.how.as_str()),
            revocation.map(|it| &*it.by),
            revocation.map(|it| &*it.reason),
            revocation.map(|it| &*it.audit_id),
        ];
        execute_one(&mut statement, row)?;
    }
    Ok(())
}

/// Deletes and binds keys, and replaces those that were bound up to `replaced_until`. `false` when another one is bound;
/// some of the keys may have been written then.
pub(super) fn write_keys(
    connection: &Connection,
    changes: &Changes,
    replaced_until: StoreTime,
) -> Result<bool, StoreError> {
    for name in &changes.unbound {
        execute_one(
            &mut connection.prepare_cached(sql::UNBOUND)?,
            params![&*name.issuer, &*name.key],
        )?;
    }
    if changes.keys.is_empty() {
        return Ok(true);
    }
    let mut statement = connection.prepare_cached(sql::KEY)?;
    for (name, row) in &changes.keys {
        let lease = row.lease.map(|lease| lease.to_string());
        let row = params![
            &*name.issuer,
            &*name.key,
            &*row.fingerprint,
            lease,
            row.is_claimed,
            row.created_at.ms(),
            replaced_until.ms()
        ];
        if statement.execute(row)? == 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Queues and fencing rejections.
fn write_others(
    connection: &Connection,
    changes: &Changes,
    replica: &str,
    now: StoreTime,
) -> Result<(), StoreError> {
    // A waiter may leave and join again in one batch.
    for waiter in &changes.left {
        execute(connection, sql::LEFT, [waiter.to_string()])?;
    }
    for join in &changes.joined {
        let row = params![
            join.waiter.to_string(),
            join.resource.text(),
            join.owner.as_str(),
            replica,
            now.ms()
        ];
        execute_one(&mut connection.prepare_cached(sql::JOINED)?, row)?;
    }
    for rejection in &changes.rejections {
        let row = params![
            Resource::text(&rejection.resource),
            rejection.token.number().cast_signed(),
            rejection.highest.map(FencingToken::number).map(u64::cast_signed),
            rejection.owner.as_ref().map(OwnerId::as_str),
            rejection.source,
            rejection.reason,
            rejection.at.unwrap_or(now).ms(),
            now.ms(),
        ];
        execute_one(&mut connection.prepare_cached(sql::REJECTION)?, row)?;
    }
    Ok(())
}
