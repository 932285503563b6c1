//! One lock read fresh, with all details.

use domain::force_release::BlastRadius;
use domain::format;
use domain::limits;
use domain::names::{OwnerId, Resource, Source};
use domain::observation::{Inspection, Waiter};
use domain::reported::Reported;

use super::blocker_tree::Waits;
use super::connection::Link;
use super::error::StatementError;
use super::lock_participant::Party;
use super::record::RelatedLocks;
use super::release::blast_radius;
use super::release_action::{self, RowAct};
use super::snapshot::{self, LockRow, Snapshot};
use super::{PostgresBackend, advisory, catalog, lease_tables, record, relation};
use crate::BackendError;

pub(super) async fn inspect(
    backend: &PostgresBackend,
    source: &Source,
    resource: &Resource,
) -> Result<Inspection, BackendError> {
    let timeout_ms = backend.links.timeout_ms();
    let _inspection = backend.links.permit_inspection().await?;
    let mut link = backend.links.acquire().await?;
    let inspected = if *source == advisory::source() {
        advisory_lock(backend, &mut link, resource).await
    } else if *source == relation::source() {
        blocked_relation(&mut link, resource).await
    } else {
        return lease(backend, &mut link, source, resource).await;
    };
    inspected.map_err(|failure| failure.into_backend(timeout_ms))
}

/// A row of a lease table. A read error is the result, with its remedy.
async fn lease(
    backend: &PostgresBackend,
    link: &mut Link<'_>,
    source: &Source,
    resource: &Resource,
) -> Result<Inspection, BackendError> {
    let timeout_ms = backend.links.timeout_ms();
    let to_backend = |failure: StatementError| failure.into_backend(timeout_ms);
    let Some(table) = backend.table(source) else {
        return Ok(Inspection::default());
    };
    let mut checked_tables = catalog::check(link, std::slice::from_ref(table))
        .await
        .map_err(to_backend)?;
    let checked = match checked_tables.pop() {
        Some(Ok(checked)) => checked,
        Some(Err(detail)) => {
            return Err(BackendError::Misconfigured {
                detail,
                remedy: remedy(),
            });
        }
        None => return Ok(Inspection::default()),
    };
    let read = async {
        let found = lease_tables::with_owners(link, &checked, &[resource])
            .await?
            .pop();
        let (lock, owners) = found.map_or((None, Vec::new()), |(lock, owners)| (Some(lock), owners));
        if lock.is_none() {
            return Ok((lock, owners, Vec::new(), RowAct::Clear));
        }
        let raw = record::row_fields(link, &checked, resource).await?;
        Ok((lock, owners, raw, release_action::read(link, &checked).await?))
    };
    let (lock, owners, raw, act) = match read.await {
        Ok(read) => read,
        Err(failure) => {
            let detail = lease_tables::explain(link, &checked, failure)
                .await
                .map_err(to_backend)?;
            return Err(BackendError::Misconfigured {
                detail,
                remedy: remedy(),
            });
        }
    };
    Ok(Inspection {
        blast_radius: blast_radius::for_row(lock.as_ref(), &act, &checked),
        lock,
        owners: truncated(owners),
        raw,
        ..Inspection::default()
    })
}

fn remedy() -> String {
    "The other locks of this backend are not affected; docs/backends/postgres.md lists the permissions and the mapping."
        .to_owned()
}

async fn advisory_lock(
    backend: &PostgresBackend,
    link: &mut Link<'_>,
    resource: &Resource,
) -> Result<Inspection, StatementError> {
    let snapshot = snapshot::take(link).await?;
    let groups = advisory::groups(&snapshot);
    let Some(group) = groups.iter().find(|group| group.resource() == *resource) else {
        return Ok(Inspection::default());
    };
    let hashes = backend.key_names.server_hashes(link).await?;
    let name = backend.key_names.find(group.key, &group.database, &hashes);
    let holders: Vec<i32> = group.holders.iter().map(|row| row.pid).collect();
    let pids: Vec<i32> = group
        .waiters
        .iter()
        .map(|row| row.pid)
        .chain(holders.iter().copied())
        .collect();
    let related = record::related(link, &snapshot, &holders, &group.holders).await?;
    let radius = blast_radius::for_sessions(&snapshot, &holders, &related);
    Ok(Inspection {
        blast_radius: radius.map(blast_radius::with_reacquired_lock),
        lock: Some(group.lock(&snapshot)),
        waiters: waiters(&snapshot, &group.waiters),
        owners: truncated(group.owners(&snapshot)),
        blockers: if group.waiters.is_empty() {
            Vec::new()
        } else {
            Waits::from_snapshot(&snapshot).trees(&pids)
        },
        session: session(&snapshot, &holders),
        raw: record::advisory_fields(&snapshot, group, &name),
        related_locks: related.sentences(),
        quorum: None,
    })
}

async fn blocked_relation(link: &mut Link<'_>, resource: &Resource) -> Result<Inspection, StatementError> {
    let snapshot = snapshot::take(link).await?;
    let groups = relation::groups(&snapshot);
    let Some(group) = groups.iter().find(|group| group.resource() == *resource) else {
        return Ok(Inspection::default());
    };
    let related = record::related(link, &snapshot, &group.roots, &[]).await?;
    Ok(Inspection {
        blast_radius: first_root(link, &snapshot, &group.roots, &related).await?,
        lock: Some(group.lock(&snapshot)),
        waiters: waiters(&snapshot, &group.waiters),
        owners: truncated(group.owners(&snapshot)),
        blockers: Waits::from_snapshot(&snapshot).trees(&group.pids()),
        session: session(&snapshot, &group.roots),
        raw: record::relation_fields(&snapshot, group),
        related_locks: related.sentences(),
        quorum: None,
    })
}

/// A forced unlock ends the session shown as the holder, not the other blockers.
async fn first_root(
    link: &mut Link<'_>,
    snapshot: &Snapshot,
    roots: &[i32],
    related: &RelatedLocks,
) -> Result<Reported<BlastRadius>, StatementError> {
    let [first, others @ ..] = roots else {
        return Ok(Reported::unknown("no blocker is known"));
    };
    // No catalog lists the rows that a transaction has locked.
    let with_rows = |mut radius: BlastRadius| {
        radius.has_unnamed = true;
        radius
    };
    if others.is_empty() {
        return Ok(blast_radius::for_sessions(snapshot, &[*first], related).map(with_rows));
    }
    let related = record::related(link, snapshot, &[*first], &[]).await?;
    let radius = blast_radius::for_sessions(snapshot, &[*first], &related).map(with_rows);
    Ok(radius.map(|mut radius| {
        let sessions = format::counted(others.len() as u64, "other session", "other sessions");
        radius.warn(format!("It stays blocked: {sessions} block it as well."));
        radius
    }))
}

fn waiters(snapshot: &Snapshot, rows: &[&LockRow]) -> Vec<Waiter> {
    let waiter = |(at, row): (u32, &&LockRow)| Waiter {
        position: at,
        owner_id: snapshot
            .parties
            .get(&row.pid)
            .map_or_else(|| super::lock_participant::owner_of("", row.pid), Party::owner_id),
        waited_ms: match snapshot.waited_ms(row) {
            Some(ms) => Reported::Value(ms),
            None => Reported::unknown("this server does not report when a wait began"),
        },
        lease_remaining_ms: None,
    };
    (1..)
        .zip(rows)
        .map(waiter)
        .take(limits::WAITERS_KEPT_MAX)
        .collect()
}

fn truncated(mut owners: Vec<OwnerId>) -> Vec<OwnerId> {
    owners.truncate(limits::WAITERS_KEPT_MAX);
    owners
}

fn session(snapshot: &Snapshot, pids: &[i32]) -> Option<domain::observation::Session> {
    let now = snapshot.now?;
    pids.iter().find_map(|pid| match snapshot.parties.get(pid)? {
        Party::Session(session) => Some(session.to_session(now)),
        Party::Prepared(_) => None,
    })
}
