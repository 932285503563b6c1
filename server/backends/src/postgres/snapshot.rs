//! One snapshot of `pg_locks` with the sessions behind it. `advisory`, `relation` and `blocker_tree`
//! are pure functions of it.
//!
//! Reading `pg_locks` waits for no lock. `pg_blocking_pids` is called only for waiting
//! sessions, because it briefly blocks the lock manager each time.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use domain::generation::Generation;
use domain::limits::{WAITERS_IDENTIFIED_MAX, WAITERS_KEPT_MAX};
use domain::observation::{InLine, WaitIdentity};
use domain::reported::Reported;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::blocker_tree;
use super::connection::Link;
use super::error::{Refusal, StatementError};
use super::lock_participant::{self, Party, PreparedRow, SessionRow};
use super::lossy_text::lossy_text;
use super::settings::APPLICATION_NAME;
use config::postgres::QueryText;

/// Waiting sessions whose blockers are read in one scan.
pub(super) const WAITING_MAX: i64 = 500;

/// At least one row: without locks, one whose columns of a lock are null.
const LOCKS: &str = "
WITH l AS MATERIALIZED (SELECT p.*, p AS whole FROM pg_locks p),
     waiting AS MATERIALIZED (SELECT DISTINCT pid FROM l WHERE NOT granted AND pid <> pg_backend_pid() LIMIT $1),
     blocking AS MATERIALIZED (SELECT pid, pg_blocking_pids(pid) AS pids FROM waiting),
     near AS MATERIALIZED (SELECT pid FROM waiting UNION SELECT unnest(pids) FROM blocking),
     relevant AS (SELECT * FROM l WHERE locktype = 'advisory' OR NOT granted
        OR locktype IN ('relation', 'tuple', 'transactionid', 'virtualxid')
           AND (pid IN (SELECT pid FROM near) OR pid IS NULL))
SELECT node.standby, clock_timestamp() AS now, l.locktype, d.datname::text AS database, l.relation, n.nspname::text AS schema,
       c.relname::text AS name, coalesce(c.relkind IN ('r', 'p', 'm'), false) AS is_table,
       coalesce(l.transactionid::text, l.virtualxid) AS transaction,
       l.classid::int8 AS class, l.objid::int8 AS object, l.objsubid::int4 AS sub,
       l.virtualtransaction AS holder, l.pid, l.mode, l.granted, b.pids AS blocked_by,
       CASE WHEN NOT l.granted THEN (to_jsonb(l.whole) ->> 'waitstart')::timestamptz END AS wait_start
FROM (SELECT pg_is_in_recovery() AS standby) node
LEFT JOIN relevant l ON true
LEFT JOIN pg_database d ON d.oid = l.database
LEFT JOIN pg_class c ON c.oid = l.relation AND d.datname = current_database()
LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN blocking b ON b.pid = l.pid AND NOT l.granted";

/// One row of `pg_locks`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LockRow {
    pub(super) kind: String,
    pub(super) database: Option<String>,
    pub(super) relation: Option<Relation>,
    /// A transaction id, or a virtual one.
    pub(super) transaction: Option<String>,
    pub(super) class: u32,
    pub(super) object: u32,
    pub(super) sub: i32,
    /// Negative for a prepared transaction: it has no process.
    pub(super) pid: i32,
    pub(super) mode: String,
    pub(super) granted: bool,
    pub(super) wait_start: Option<DateTime<Utc>>,
    pub(super) blocked_by: Vec<i32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Relation {
    pub(super) oid: u32,
    /// Schema and name; unknown in other databases.
    pub(super) name: Option<(String, String)>,
    pub(super) is_table: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Snapshot {
    /// By the server's clock; `None` if it cannot be read.
    pub(super) now: Option<DateTime<Utc>>,
    pub(super) rows: Vec<LockRow>,
    pub(super) parties: HashMap<i32, Party>,
}

/// Takes the snapshot: one round trip if there are no locks, otherwise two, or three with prepared transactions.
///
/// # Errors
/// Also [`Refusal::standby`]: the former primary after a fail-over.
pub(super) async fn take(link: &mut Link<'_>) -> Result<Snapshot, StatementError> {
    let answer = link.rows(sqlx::query(LOCKS).bind(WAITING_MAX)).await?;
    let is_standby = |row: &PgRow| row.try_get("standby").unwrap_or(false);
    if answer.first().is_some_and(is_standby) {
        return Err(StatementError::Refused(Refusal::standby()));
    }
    let now = answer.first().and_then(|row| row.try_get("now").ok());
    let mut rows: Vec<(LockRow, String)> = answer.iter().filter_map(|row| lock_row(row).ok()).collect();
    let mut parties = HashMap::new();
    if rows
        .iter()
        .any(|(row, _)| row.pid == 0 || row.blocked_by.contains(&0))
    {
        let prepared = link.rows(sqlx::query(lock_participant::PREPARED)).await?;
        name_prepared(&mut rows, &prepared, &mut parties);
    }
    let rows: Vec<LockRow> = rows.into_iter().map(|(row, _)| row).collect();
    parties.extend(sessions(link, &rows).await?);
    Ok(Snapshot { now, rows, parties })
}

async fn sessions(link: &mut Link<'_>, rows: &[LockRow]) -> Result<Vec<(i32, Party)>, StatementError> {
    let mut pids: Vec<i32> = rows
        .iter()
        .flat_map(|row| row.blocked_by.iter().copied().chain([row.pid]))
        .filter(|pid| *pid > 0)
        .collect();
    pids.sort_unstable();
    pids.dedup();
    if pids.is_empty() {
        return Ok(Vec::new());
    }
    let query_text = link.query_text();
    let poolers = link.poolers();
    let query = sqlx::query(lock_participant::SESSIONS)
        .bind(pids)
        .bind(APPLICATION_NAME)
        .bind(query_text != QueryText::Hidden);
    let rows = link.rows(query).await?;
    let sessions = rows
        .iter()
        .filter_map(|row| SessionRow::read(row, query_text, &poolers).ok());
    Ok(sessions
        .map(|session| (session.pid, Party::Session(Box::new(session))))
        .collect())
}

fn lock_row(row: &PgRow) -> Result<(LockRow, String), sqlx::Error> {
    let number = |name: &str| {
        row.try_get::<Option<i64>, _>(name)
            .map(|n| n.and_then(|n| u32::try_from(n).ok()))
    };
    let oid: Option<sqlx::postgres::types::Oid> = row.try_get("relation")?;
    let (schema, name) = (lossy_text(row, "schema")?, lossy_text(row, "name")?);
    let is_table = row.try_get("is_table")?;
    let lock = LockRow {
        kind: row.try_get("locktype")?,
        database: lossy_text(row, "database")?,
        relation: oid.map(|oid| Relation {
            oid: oid.0,
            name: schema.zip(name),
            is_table,
        }),
        transaction: row.try_get("transaction")?,
        class: number("class")?.unwrap_or_default(),
        object: number("object")?.unwrap_or_default(),
        sub: row.try_get::<Option<i32>, _>("sub")?.unwrap_or_default(),
        pid: row.try_get::<Option<i32>, _>("pid")?.unwrap_or_default(),
        mode: row.try_get("mode")?,
        granted: row.try_get("granted")?,
        wait_start: row.try_get("wait_start")?,
        blocked_by: row
            .try_get::<Option<Vec<i32>>, _>("blocked_by")?
            .unwrap_or_default(),
    };
    Ok((
        lock,
        row.try_get::<Option<String>, _>("holder")?.unwrap_or_default(),
    ))
}

/// Assigns each prepared transaction a negative number, since `pg_locks` has none and
/// `pg_blocking_pids` returns 0. All rows of one share `virtualtransaction`; the row for its
/// own transaction id names it. After a server restart the id is after the slash as well.
fn name_prepared(rows: &mut [(LockRow, String)], answer: &[PgRow], parties: &mut HashMap<i32, Party>) {
    let prepared: Vec<PreparedRow> = answer
        .iter()
        .filter_map(|row| PreparedRow::read(row).ok())
        .collect();
    let number = |xid: &str| {
        let at = prepared.iter().position(|prepared| prepared.xid == xid)?;
        i32::try_from(at).ok().map(|at| -1 - at)
    };
    let session_rows = rows
        .iter()
        .filter(|(row, _)| row.pid == 0 && row.granted && row.kind == "transactionid");
    let xids: HashMap<String, String> = session_rows
        .filter_map(|(row, holder)| Some((holder.clone(), row.transaction.clone()?)))
        .collect();
    for (row, holder) in rows.iter_mut().filter(|(row, _)| row.pid == 0) {
        let xid = xids
            .get(holder)
            .map(String::as_str)
            .or_else(|| holder.rsplit('/').next());
        row.pid = xid.and_then(number).unwrap_or(0);
    }
    let held: Vec<LockRow> = rows
        .iter()
        .filter(|(row, _)| row.pid < 0)
        .map(|(row, _)| row.clone())
        .collect();
    for (row, _) in rows.iter_mut().filter(|(row, _)| row.blocked_by.contains(&0)) {
        let holders: Vec<i32> = held
            .iter()
            .filter(|holder| holder.locks_same_object(row))
            .map(|holder| holder.pid)
            .collect();
        row.blocked_by.retain(|pid| *pid != 0);
        row.blocked_by.extend(holders);
        row.blocked_by.dedup();
    }
    for (at, row) in prepared.into_iter().enumerate() {
        if let Ok(at) = i32::try_from(at) {
            parties.insert(-1 - at, Party::Prepared(row));
        }
    }
}

impl LockRow {
    /// The same lock object, in any mode.
    pub(super) fn locks_same_object(&self, other: &Self) -> bool {
        let oid = |row: &Self| row.relation.as_ref().map(|relation| relation.oid);
        self.kind == other.kind
            && self.database == other.database
            && oid(self) == oid(other)
            && self.transaction == other.transaction
            && (self.class, self.object, self.sub) == (other.class, other.object, other.sub)
    }
}

impl Snapshot {
    /// How long a row has waited, in milliseconds. Before Postgres 14: since its query began,
    /// an upper bound.
    pub(super) fn waited_ms(&self, row: &LockRow) -> Option<i64> {
        let since = row.wait_start.or_else(|| match self.parties.get(&row.pid)? {
            Party::Session(session) => session.query_start,
            Party::Prepared(_) => None,
        })?;
        self.now.map(|now| (now - since).num_milliseconds().max(0))
    }

    /// Waiters, identified by the generation that their holding will have.
    pub(super) fn wait_queue(
        &self,
        waiters: &[&LockRow],
        generation: impl Fn(&Party) -> Reported<Generation>,
    ) -> Vec<InLine> {
        let in_queue = |(at, row): (usize, &&LockRow)| {
            let party = self.parties.get(&row.pid)?;
            // Without a generation it is not recognized as a later holder.
            let unknown = || Generation::new(format!("unknown:{}", row.pid));
            Some(InLine {
                generation: generation(party).known().cloned().unwrap_or_else(unknown),
                waited_ms: self.waited_ms(row),
                identity: (at < WAITERS_IDENTIFIED_MAX).then(|| Box::new(self.identity(row, party))),
            })
        };
        let queued = waiters.iter().enumerate().filter_map(in_queue);
        queued.take(WAITERS_KEPT_MAX).collect()
    }

    /// The sessions that block it directly, without our own.
    fn identity(&self, row: &LockRow, party: &Party) -> WaitIdentity {
        let blockers = row.blocked_by.iter().filter(|pid| !self.is_ours(**pid));
        let mut blockers: Vec<&Party> = blockers.filter_map(|pid| self.parties.get(pid)).collect();
        let hidden = blockers.len().saturating_sub(WAITERS_IDENTIFIED_MAX);
        blockers.truncate(WAITERS_IDENTIFIED_MAX);
        WaitIdentity {
            party: Arc::new(party.wait_party()),
            wants: Some(blocker_tree::described(row).into_boxed_str()),
            blocked_by: blockers
                .into_iter()
                .map(|party| Arc::new(party.wait_party()))
                .collect(),
            more_blockers: u32::try_from(hidden).unwrap_or(u32::MAX),
        }
    }

    pub(super) fn is_ours(&self, pid: i32) -> bool {
        self.parties.get(&pid).is_some_and(Party::is_ours)
    }

    /// Waiting rows in order of arrival, without our own.
    pub(super) fn waiting(&self) -> Vec<&LockRow> {
        let mut rows: Vec<&LockRow> = self
            .rows
            .iter()
            .filter(|row| !row.granted && row.pid != 0 && !self.is_ours(row.pid))
            .collect();
        rows.sort_by_key(|row| (std::cmp::Reverse(self.waited_ms(row)), row.pid));
        rows
    }

    /// More sessions wait than were read.
    pub(super) fn is_cut(&self) -> bool {
        let wanted_mode = self
            .rows
            .iter()
            .filter(|row| !row.granted && !row.blocked_by.is_empty())
            .count();
        wanted_mode >= usize::try_from(WAITING_MAX).unwrap_or(usize::MAX)
    }
}
