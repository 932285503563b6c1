//! The record of a lock as stored in Postgres, field by field, and what else ends with its
//! session.

use domain::format;
use domain::names::Resource;
use domain::observation::RawField;
use sqlx::postgres::PgRow;
use sqlx::postgres::types::Oid;
use sqlx::{AssertSqlSafe, Row};

use super::advisory::{self, AdvisoryKey};
use super::blocker_tree;
use super::checked_table::CheckedTable;
use super::connection::Link;
use super::error::StatementError;
use super::known_keys::KeyName;
use super::lock_participant::{self, Party};
use super::pooler::Pooler;
use super::relation;
use super::snapshot::{LockRow, Snapshot};

/// Longest value read of one column, in bytes.
const VALUE_BYTES_MAX: usize = 64 * 1024;
/// Locks read of a session that a forced unlock would end.
const HELD_MAX: i64 = 1000;
/// Locks named of such a session; more are counted.
const RELATED_SHOWN: usize = 20;

const HELD: &str = "
SELECT l.locktype, l.mode, l.classid::int8 AS class, l.objid::int8 AS object, l.objsubid::int4 AS sub,
       coalesce(n.nspname || '.' || c.relname, l.relation::text) AS name, d.datname::text AS database,
       n.nspname::text AS schema, c.relname::text AS relation, l.relation AS oid, count(*) OVER () AS total
FROM pg_locks l
LEFT JOIN pg_database d ON d.oid = l.database
LEFT JOIN pg_class c ON c.oid = l.relation AND d.datname = current_database()
LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE l.pid = ANY($1) AND l.granted AND l.locktype IN ('advisory', 'relation')
  AND coalesce(c.relkind IN ('r', 'p', 'm'), true) AND coalesce(n.nspname <> 'pg_catalog', true)
ORDER BY l.locktype, name, l.mode, l.classid, l.objid LIMIT $2";

/// Every readable column, in the table's order.
pub(super) async fn row_fields(
    link: &mut Link<'_>,
    checked: &CheckedTable,
    resource: &Resource,
) -> Result<Vec<RawField>, StatementError> {
    let text = resource.text();
    let query = sqlx::query(AssertSqlSafe(checked.record(VALUE_BYTES_MAX))).bind(text);
    let rows = link.rows(query).await?;
    let Some(row) = rows.first() else {
        return Ok(Vec::new());
    };
    let value = |at: usize| row.try_get::<Option<String>, _>(at).ok().flatten();
    let field = |(at, name): (usize, &str)| RawField {
        name: name.to_owned(),
        value: value(at).unwrap_or_else(|| "NULL".to_owned()),
    };
    Ok(checked.readable().enumerate().map(field).collect())
}

fn field(name: &str, value: impl Into<String>) -> RawField {
    RawField {
        name: name.to_owned(),
        value: value.into(),
    }
}

pub(super) fn advisory_fields(
    snapshot: &Snapshot,
    group: &advisory::Group<'_>,
    name: &KeyName,
) -> Vec<RawField> {
    let mut raw = vec![field("database", group.database.clone())];
    match group.key {
        AdvisoryKey::One(key) => raw.push(field("key", key.to_string())),
        AdvisoryKey::Two(first, second) => raw.extend([
            field("key1", first.to_string()),
            field("key2", second.to_string()),
        ]),
    }
    raw.extend(name_fields(name));
    if let Some(row) = group.holders.first() {
        raw.extend([
            field("classid", row.class.to_string()),
            field("objid", row.object.to_string()),
            field("objsubid", row.sub.to_string()),
            field("mode", row.mode.clone()),
        ]);
        if let Some(party) = snapshot.parties.get(&row.pid) {
            raw.push(field("level", party.level().description()));
            raw.extend(participant_fields(party));
        }
    }
    raw
}

fn name_fields(name: &KeyName) -> Vec<RawField> {
    match name {
        KeyName::Unknown => Vec::new(),
        KeyName::Known(found) => vec![field("known as", &found.name), field("named by", &found.how)],
        KeyName::Ambiguous(names) => {
            let quoted_names: Vec<String> = names.iter().map(|found| format!("{:?}", found.name)).collect();
            let origins = names
                .iter()
                .map(|found| format!("{:?} by {}", found.name, found.how));
            vec![
                field("known as", format!("ambiguous: {}", quoted_names.join(" or "))),
                field("named by", origins.collect::<Vec<_>>().join("; ")),
            ]
        }
    }
}

pub(super) fn relation_fields(snapshot: &Snapshot, group: &relation::Group<'_>) -> Vec<RawField> {
    let mut raw = Vec::new();
    if let Some(row) = group.waiters.first() {
        raw.push(field("first waiter waits for", blocker_tree::described(row)));
    }
    if let Some(party) = group.roots.first().and_then(|pid| snapshot.parties.get(pid)) {
        raw.extend(participant_fields(party));
    }
    raw
}

fn participant_fields(party: &Party) -> Vec<RawField> {
    let time = |at: Option<chrono::DateTime<chrono::Utc>>| at.map(lock_participant::whole_seconds);
    let fields = match party {
        Party::Session(session) if session.hidden => vec![
            ("pid", Some(session.pid.to_string())),
            ("usename", session.account.clone()),
            ("application_name", Some(session.application_name.clone())),
            (
                "state, query, times",
                Some("unknown: this account is not a member of pg_monitor".to_owned()),
            ),
        ],
        Party::Session(session) => vec![
            ("pid", Some(session.pid.to_string())),
            ("usename", session.account.clone()),
            ("application_name", Some(session.application_name.clone())),
            ("client_addr", session.client.clone()),
            ("state", session.state.clone()),
            ("query", session.query.clone()),
            ("backend_start", time(session.backend_start)),
            ("xact_start", time(session.xact_start)),
            ("state_change", time(session.state_change)),
            (
                "pooler",
                Some(
                    session
                        .pooler
                        .as_ref()
                        .map_or("none recognised".to_owned(), Pooler::description),
                ),
            ),
        ],
        Party::Prepared(prepared) => vec![
            ("gid", Some(prepared.gid.clone())),
            ("transaction", Some(prepared.xid.clone())),
            (
                "prepared",
                Some(lock_participant::whole_seconds(prepared.prepared)),
            ),
            ("owner", Some(prepared.account.clone())),
        ],
    };
    fields
        .into_iter()
        .map(|(name, value)| field(name, value.unwrap_or_else(|| "NULL".to_owned())))
        .collect()
}

/// A lock that ends with its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HeldLock {
    pub(super) what: String,
    /// Name in the inventory; `None` if the lock's database is unknown.
    pub(super) resource: Option<Resource>,
}

/// Locks and transactions that also end with some sessions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct RelatedLocks {
    pub(super) transactions: Vec<String>,
    pub(super) locks: Vec<HeldLock>,
    /// Locks that exist besides those that were read.
    pub(super) unlisted: u64,
}

impl RelatedLocks {
    /// One sentence each, for the first locks of many.
    pub(super) fn sentences(&self) -> Vec<String> {
        let mut ages = self.transactions.clone();
        ages.extend(
            self.locks
                .iter()
                .take(RELATED_SHOWN)
                .map(|lock| lock.what.clone()),
        );
        let hidden = self.locks.len().saturating_sub(RELATED_SHOWN);
        if hidden > 0 {
            ages.push(format!(
                "and {} more",
                format::counted(hidden as u64, "lock", "locks")
            ));
        }
        ages
    }
}

/// What else these sessions hold; `known` is the lock itself.
pub(super) async fn related(
    link: &mut Link<'_>,
    snapshot: &Snapshot,
    pids: &[i32],
    known: &[&LockRow],
) -> Result<RelatedLocks, StatementError> {
    let transactions = pids
        .iter()
        .filter_map(|pid| transaction(snapshot.parties.get(pid)?))
        .collect();
    let mut related = RelatedLocks {
        transactions,
        ..RelatedLocks::default()
    };
    let sessions: Vec<i32> = pids.iter().copied().filter(|pid| *pid > 0).collect();
    if sessions.is_empty() {
        return Ok(related);
    }
    let rows = link.rows(sqlx::query(HELD).bind(sessions).bind(HELD_MAX)).await?;
    let total = rows.first().and_then(|row| row.try_get::<i64, _>("total").ok());
    let total = total.and_then(|total| u64::try_from(total).ok());
    related.unlisted = total.unwrap_or_default().saturating_sub(rows.len() as u64);
    let itself = |class: u32, object: u32, sub: i32| {
        known
            .iter()
            .any(|row| (row.class, row.object, row.sub) == (class, object, sub))
    };
    for row in &rows {
        let is_advisory = row
            .try_get::<&str, _>("locktype")
            .is_ok_and(|kind| kind == "advisory");
        if is_advisory {
            let (class, object, sub) = advisory_key(row);
            if !itself(class, object, sub) {
                related
                    .locks
                    .push(held_key(row, AdvisoryKey::decode(class, object, sub)));
            }
        } else {
            related.locks.push(held_relation(row));
        }
    }
    Ok(related)
}

fn advisory_key(row: &PgRow) -> (u32, u32, i32) {
    let half = |name: &str| {
        let number = row.try_get::<Option<i64>, _>(name).ok().flatten();
        number.and_then(|n| u32::try_from(n).ok()).unwrap_or_default()
    };
    let sub = row.try_get::<Option<i32>, _>("sub").ok().flatten();
    (half("class"), half("object"), sub.unwrap_or_default())
}

fn text_of(row: &PgRow, column: &str) -> Option<String> {
    row.try_get::<Option<String>, _>(column).ok().flatten()
}

fn held_key(row: &PgRow, key: AdvisoryKey) -> HeldLock {
    let mode = text_of(row, "mode").unwrap_or_default();
    HeldLock {
        what: format!("advisory lock {} ({mode})", key.text()),
        resource: text_of(row, "database").map(|database| advisory::resource(&database, key)),
    }
}

fn held_relation(row: &PgRow) -> HeldLock {
    let mode = text_of(row, "mode").unwrap_or_default();
    let oid = row.try_get::<Option<Oid>, _>("oid").ok().flatten();
    let qualified_name = text_of(row, "schema").zip(text_of(row, "relation"));
    // A shared catalog belongs to no database.
    let database = text_of(row, "database").unwrap_or_else(|| relation::SHARED.to_owned());
    HeldLock {
        what: format!("{mode} on {}", text_of(row, "name").unwrap_or_default()),
        resource: oid.map(|oid| relation::resource(&database, qualified_name, oid.0)),
    }
}

fn transaction(party: &Party) -> Option<String> {
    match party {
        Party::Session(session) => session.xact_start.map(|start| {
            format!(
                "a transaction open since {}",
                lock_participant::whole_seconds(start)
            )
        }),
        Party::Prepared(prepared) => Some(format!(
            "the prepared transaction {:?} with all its changes",
            prepared.gid
        )),
    }
}
