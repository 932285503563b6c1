//! Sessions: ended by `pg_terminate_backend` if process id and start are those observed and the
//! session still holds, or blocks, the same lock: all in one statement. A prepared transaction
//! has no session; only its coordinator can decide between commit and rollback, so it is
//! refused with the statement.

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::force_release::{Holding, Release};
use domain::generation::Generation;
use domain::names::{Resource, Source};
use sqlx::Row;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;

use super::{acquire, before_the_act, refuse_unknown_generation, refused};
use crate::BackendError;
use crate::postgres::connection::{Link, Links};
use crate::postgres::error::StatementError;
use crate::postgres::lock_participant::{Party, PreparedRow};
use crate::postgres::snapshot::{self, LockRow, Snapshot};
use crate::postgres::{PostgresBackend, advisory, relation};
use crate::release::{Acted, confirm_release};

/// Attempts to read sessions in a consistent state.
const ATTEMPTS_MAX: u32 = 5;
/// Interval between checks whether a terminated session has ended.
const SESSION_POLL_INTERVAL: Duration = Duration::from_millis(20);

const RIGHTS: &str = "
SELECT quote_ident(current_user) AS account, pg_has_role(current_user, 'pg_read_all_stats', 'USAGE') AS sees,
       pg_has_role(current_user, 'pg_signal_backend', 'USAGE') AS signals,
       (SELECT string_agg(DISTINCT quote_ident(owner.rolname), ', ') FROM pg_stat_activity a
        JOIN pg_roles owner ON owner.oid = a.usesysid
        WHERE a.pid = ANY($1) AND owner.rolsuper
          AND NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)) AS superusers";

/// Ends all holders of the key if they are exactly those observed: one sharer more or less is
/// another holding.
const END_HOLDERS: &str = "
WITH seen AS (SELECT * FROM unnest($1::int4[], $2::timestamptz[]) AS seen(pid, started)),
     holding AS MATERIALIZED (
        SELECT DISTINCT l.pid, a.backend_start AS started FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
        WHERE l.locktype = 'advisory' AND l.granted AND l.classid::int8 = $3 AND l.objid::int8 = $4
          AND l.objsubid::int4 = $5 AND l.database = (SELECT oid FROM pg_database WHERE datname = $6)),
     same AS MATERIALIZED (
        SELECT NOT EXISTS (SELECT pid, started FROM holding EXCEPT SELECT pid, started FROM seen)
           AND NOT EXISTS (SELECT pid, started FROM seen EXCEPT SELECT pid, started FROM holding) AS yes)
SELECT pg_terminate_backend(holding.pid) AS read FROM holding, same WHERE same.yes";

/// Ends the session if it is in the same transaction and still blocks one of the observed
/// waiters.
const END_BLOCKER: &str = "
WITH blocker AS MATERIALIZED (
    SELECT a.pid FROM pg_stat_activity a WHERE a.pid = $1 AND a.backend_start = $2
       AND a.xact_start IS NOT DISTINCT FROM $3
       AND EXISTS (SELECT FROM pg_locks w
           WHERE NOT w.granted AND w.pid = ANY($4) AND a.pid = ANY(pg_blocking_pids(w.pid))))
SELECT pg_terminate_backend(pid) AS read FROM blocker";

const STILL_THERE: &str = "
SELECT count(*) AS sessions FROM unnest($1::int4[], $2::timestamptz[]) AS seen(pid, started)
JOIN pg_stat_activity a ON a.pid = seen.pid AND a.backend_start = seen.started";

/// Sessions to end, found by the watching account.
struct Target {
    pids: Vec<i32>,
    starts: Vec<DateTime<Utc>>,
    end: End,
}

enum End {
    Holders {
        key: Box<LockRow>,
    },
    Blocker {
        transaction: Option<DateTime<Utc>>,
        /// Processes that were observed waiting for it.
        waiting: Vec<i32>,
    },
}

pub(super) async fn release(
    backend: &PostgresBackend,
    unlocks: &Links,
    source: &Source,
    resource: &Resource,
    expected: &Generation,
) -> Result<Release, BackendError> {
    let target = match read_session(backend, source, resource, expected).await? {
        Ok(target) => target,
        Err(answer) => return Ok(answer),
    };
    let mut link = acquire(unlocks).await?;
    let acted = match check(&mut link, &target).await {
        Ok(None) => end(unlocks, &mut link, &target).await,
        Ok(Some(refused)) => refused,
        Err(failure) => before_the_act(unlocks, failure)?,
    };
    link.close();
    drop(link);
    confirm_release(backend, source, resource, expected, acted).await
}

/// With the watching account. A session may end between two queries: tries up to [`ATTEMPTS_MAX`] times.
async fn read_session(
    backend: &PostgresBackend,
    source: &Source,
    resource: &Resource,
    expected: &Generation,
) -> Result<Result<Target, Release>, BackendError> {
    let mut link = backend.links.acquire().await?;
    for _ in 0..ATTEMPTS_MAX {
        let snapshot = snapshot::take(&mut link).await;
        let snapshot = snapshot.map_err(|failure| failure.into_backend(backend.links.timeout_ms()))?;
        if let Some(found) = find(&snapshot, source, resource, expected).transpose() {
            return Ok(found);
        }
    }
    Ok(Err(Release::refused(
        "its sessions change faster than they can be read",
        "Try again.",
    )))
}

/// Sessions to end, or why there are none; `None` if a session ended during the snapshot.
fn find(
    snapshot: &Snapshot,
    source: &Source,
    resource: &Resource,
    expected: &Generation,
) -> Result<Option<Target>, Release> {
    let (lock, pids, end) = if *source == advisory::source() {
        let groups = advisory::groups(snapshot);
        let group = groups.iter().find(|group| group.resource() == *resource);
        let group = group.filter(|group| !group.holders.is_empty());
        let group = group.ok_or(Release::AlreadyFree)?;
        let pids: Vec<i32> = group.holders.iter().map(|row| row.pid).collect();
        let key = Box::new(group.holders[0].clone());
        (group.lock(snapshot), pids, End::Holders { key })
    } else {
        let groups = relation::groups(snapshot);
        let group = groups.iter().find(|group| group.resource() == *resource);
        let group = group.ok_or(Release::AlreadyFree)?;
        // The root that is shown as the holder: it blocks the oldest waiter.
        let root = *group.roots.first().ok_or(Release::AlreadyFree)?;
        let transaction = match snapshot.parties.get(&root) {
            Some(Party::Session(session)) => session.xact_start,
            Some(Party::Prepared(_)) | None => None,
        };
        let blocked = snapshot.waiting().into_iter();
        let blocked = blocked.filter(|row| row.blocked_by.contains(&root));
        let waiting = blocked.map(|row| row.pid).collect();
        let end = End::Blocker { transaction, waiting };
        (group.lock(snapshot), vec![root], end)
    };
    if pids.iter().any(|pid| !snapshot.parties.contains_key(pid)) {
        return Ok(None);
    }
    if let Some(refused) = refuse_unknown_generation(&lock.generation) {
        return Err(refused);
    }
    if lock.generation.known() != Some(expected) {
        return Err(Release::HolderChanged {
            now: Box::new(Holding::from(&lock)),
        });
    }
    let mut starts = Vec::with_capacity(pids.len());
    for pid in &pids {
        match snapshot.parties.get(pid) {
            Some(Party::Prepared(prepared)) => return Err(only_by_hand(prepared)),
            // The generation is known, so every start time is.
            Some(Party::Session(session)) => starts.extend(session.backend_start),
            None => return Ok(None),
        }
    }
    Ok(Some(Target { pids, starts, end }))
}

fn only_by_hand(prepared: &PreparedRow) -> Release {
    let quoted = prepared.gid.replace('\'', "''");
    Release::refused(
        format!(
            "it is held by the prepared transaction {:?} of {}: whether that commits or not is its coordinator's decision",
            prepared.gid, prepared.account
        ),
        format!(
            "In database {}, as {} or a superuser: ROLLBACK PREPARED '{quoted}'; (or COMMIT PREPARED '{quoted}';)",
            prepared.database, prepared.account
        ),
    )
}

/// Why the account cannot end these sessions, if it cannot.
async fn check(link: &mut Link<'_>, target: &Target) -> Result<Option<Acted>, StatementError> {
    let rows = link.rows(sqlx::query(RIGHTS).bind(&target.pids)).await?;
    let unreadable = || {
        StatementError::Lost(BackendError::Protocol {
            detail: "the account cannot be read".to_owned(),
        })
    };
    let row = rows.first().ok_or_else(unreadable)?;
    let account: String = row.try_get("account").map_err(|_| unreadable())?;
    let may = |right: &str| row.try_get::<bool, _>(right).unwrap_or(false);
    let superusers: Option<String> = row.try_get("superusers").ok().flatten();
    let missing = |role: &str| Acted::Refused {
        why: format!("the account {account} is not a member of {role}"),
        remedy: format!("GRANT {role} TO {account};"),
    };
    if !may("signals") {
        return Ok(Some(missing("pg_signal_backend")));
    }
    if !may("sees") {
        return Ok(Some(missing("pg_read_all_stats")));
    }
    Ok(superusers.map(|names| Acted::Refused {
        why: format!("the session is of {names}, and only a superuser may end a superuser's session"),
        remedy: format!(
            "As a superuser: SELECT pg_terminate_backend({});",
            target.pids.first().copied().unwrap_or_default()
        ),
    }))
}

async fn end(unlocks: &Links, link: &mut Link<'_>, target: &Target) -> Acted {
    let read = match link.rows(statement(target)).await {
        Ok(read) => read,
        Err(StatementError::Refused(refusal)) if refusal.is_insufficient_privilege() => {
            return refused(&refusal, "Grant the permissions of docs/backends/postgres.md.");
        }
        // The signal may have been sent already.
        Err(failure) => return Acted::unanswered(&failure.into_backend(unlocks.timeout_ms())),
    };
    if read.is_empty() {
        return Acted::Missed;
    }
    let ended = tokio::time::timeout(unlocks.timeout(), until_session_ended(link, target)).await;
    match ended {
        Ok(Ok(())) => Acted::Done,
        Ok(Err(failure)) => Acted::unanswered(&failure.into_backend(unlocks.timeout_ms())),
        Err(_) => Acted::Unknown {
            why: format!(
                "the session was terminated and has not ended within {} ms",
                unlocks.timeout_ms()
            ),
        },
    }
}

fn statement(target: &Target) -> Query<'_, sqlx::Postgres, PgArguments> {
    match &target.end {
        End::Holders { key } => sqlx::query(END_HOLDERS)
            .bind(&target.pids)
            .bind(&target.starts)
            .bind(i64::from(key.class))
            .bind(i64::from(key.object))
            .bind(key.sub)
            .bind(&key.database),
        End::Blocker { transaction, waiting } => sqlx::query(END_BLOCKER)
            .bind(target.pids.first())
            .bind(target.starts.first())
            .bind(transaction)
            .bind(waiting),
    }
}

/// The signal is a request: a session ends at its next interrupt check.
async fn until_session_ended(link: &mut Link<'_>, target: &Target) -> Result<(), StatementError> {
    loop {
        let query = sqlx::query(STILL_THERE).bind(&target.pids).bind(&target.starts);
        let rows = link.rows(query).await?;
        let sessions = rows
            .first()
            .and_then(|row| row.try_get::<i64, _>("sessions").ok());
        if sessions == Some(0) {
            return Ok(());
        }
        tokio::time::sleep(SESSION_POLL_INTERVAL).await;
    }
}
