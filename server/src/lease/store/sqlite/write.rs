//! Writes what a batch has changed, row by row with statements that stay prepared, inside its transaction.

use domain::lease::{How, Lease, Revocation, StoreTime};
use domain::names::{OwnerId, Resource};
use domain::token::FencingToken;
use rusqlite::{CachedStatement, Connection, Params, params};

use super::sql;
use crate::lease::batch::Changes;
use crate::lease::store::StoreError;
use crate::lease::store::rows::metadata_text;

pub(super) fn write(
    connection: &Connection,
    changes: &Changes,
    replica: &str,
    now: StoreTime,
) -> Result<(), StoreError> {
    counters(connection, changes)?;
    // The ending of one lease before the birth of the next: a resource has one lease without.
    changed(connection, changes)?;
    born(connection, changes)?;
    rare(connection, changes, replica, now)?;
    let grants = i64::try_from(changes.grants).unwrap_or(0);
    one(
        &mut connection.prepare_cached(sql::TICK)?,
        params![now.ms(), grants],
    )
}

/// A statement that must touch one row: anything else means that the file is not what was read.
fn one(statement: &mut CachedStatement<'_>, params: impl Params) -> Result<(), StoreError> {
    match statement.execute(params)? {
        1 => Ok(()),
        rows => Err(StoreError::Corrupt(format!("a row to write, {rows} written"))),
    }
}

fn any(connection: &Connection, sql: &'static str, params: impl Params) -> Result<(), StoreError> {
    connection.prepare_cached(sql)?.execute(params)?;
    Ok(())
}

fn revocation(lease: &Lease) -> Option<&Revocation> {
    match lease.ending.as_ref().map(|ending| &ending.how) {
        Some(How::Revoked(revocation)) => Some(revocation),
        _ => None,
    }
}

fn counters(connection: &Connection, changes: &Changes) -> Result<(), StoreError> {
    let mut first = connection.prepare_cached(sql::FIRST_COUNTER)?;
    let mut counter = connection.prepare_cached(sql::COUNTER)?;
    for (resource, (found, state)) in &changes.resources {
        let name = resource.text();
        let token = state.last_token.number().cast_signed();
        let lease = state.lease.as_ref().map(|lease| lease.id.to_string());
        let until = state.locked_until.map(StoreTime::ms);
        if *found == 0 {
            one(&mut first, params![name, token, lease, until])?;
        } else {
            one(
                &mut counter,
                params![name, token, lease, until, found.cast_signed()],
            )?;
        }
    }
    Ok(())
}

fn changed(connection: &Connection, changes: &Changes) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(sql::CHANGED)?;
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
            lease.ending.as_ref().map(|ending| ending.how.wire()),
            revocation.map(|it| &*it.by),
            revocation.map(|it| &*it.reason),
            revocation.map(|it| &*it.audit_id),
        ];
        one(&mut statement, row)?;
    }
    Ok(())
}

fn born(connection: &Connection, changes: &Changes) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(sql::BORN)?;
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
            lease.ending.as_ref().map(|ending| ending.how.wire()),
            revocation.map(|it| &*it.by),
            revocation.map(|it| &*it.reason),
            revocation.map(|it| &*it.audit_id),
        ];
        one(&mut statement, row)?;
    }
    Ok(())
}

/// Keys, lines and the ledger.
fn rare(connection: &Connection, changes: &Changes, replica: &str, now: StoreTime) -> Result<(), StoreError> {
    for (name, row) in &changes.keys {
        let lease = row.lease.map(|lease| lease.to_string());
        let row = params![
            &*name.issuer,
            &*name.key,
            &*row.fingerprint,
            lease,
            row.created_at.ms()
        ];
        one(&mut connection.prepare_cached(sql::KEY)?, row)?;
    }
    for name in &changes.unbound {
        any(connection, sql::UNBOUND, params![&*name.issuer, &*name.key])?;
    }
    // One may leave and join again in the same batch.
    for waiter in &changes.left {
        any(connection, sql::LEFT, [waiter.to_string()])?;
    }
    for it in &changes.joined {
        let row = params![
            it.waiter.to_string(),
            it.resource.text(),
            it.owner.as_str(),
            replica,
            now.ms()
        ];
        one(&mut connection.prepare_cached(sql::JOINED)?, row)?;
    }
    for it in &changes.rejections {
        let row = params![
            Resource::text(&it.resource),
            it.token.number().cast_signed(),
            it.highest.map(FencingToken::number).map(u64::cast_signed),
            it.owner.as_ref().map(OwnerId::as_str),
            it.source,
            it.reason,
            it.at.unwrap_or(now).ms(),
            now.ms(),
        ];
        one(&mut connection.prepare_cached(sql::REJECTION)?, row)?;
    }
    Ok(())
}
