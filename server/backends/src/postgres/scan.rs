//! One scan over every source, and the re-reading of some locks by name.

use domain::duration::millis;
use domain::names::{Resource, Source};
use domain::observation::{Coverage, ObservedLock};
use domain::reported::Reported;
use sqlx::Row;

use super::catalog;
use super::connection::Link;
use super::error::StatementError;
use super::lease_tables::{self, unread};
use super::snapshot::{self, Snapshot, WAITING_MAX};
use super::{PostgresBackend, advisory, relation};
use crate::{BackendError, Batch, Budget, ClockReading, Pass, Sink, SourcePass};
use runtime::clock::Clock;

pub(super) async fn observe(
    backend: &PostgresBackend,
    budget: Budget,
    sink: &mut dyn Sink,
) -> Result<Pass, BackendError> {
    let timeout_ms = backend.links.timeout_ms();
    let mut link = backend.links.acquire().await?;
    run(backend, &mut link, budget, sink)
        .await
        .map_err(|failure| failure.into_backend(timeout_ms))
}

async fn run(
    backend: &PostgresBackend,
    link: &mut Link<'_>,
    budget: Budget,
    sink: &mut dyn Sink,
) -> Result<Pass, StatementError> {
    let clock = &backend.clock;
    let budget_ms = millis(budget.time_max);
    let deadline = clock.tick().plus(budget_ms);
    let reading = read_clock(link, clock).await?;
    let mut sources = Vec::new();
    // Short sources with waiting users first.
    sessions(backend, link, sink, &mut sources).await?;
    let checked_tables = match catalog::check(link, &backend.tables).await {
        Err(StatementError::Refused(refusal)) => {
            let why = format!(
                "the catalog cannot be read: {} ({})",
                refusal.message, refusal.code
            );
            backend.tables.iter().map(|_| Err(why.clone())).collect()
        }
        checked_tables => checked_tables?,
    };
    for (table, checked) in backend.tables.iter().zip(checked_tables) {
        let pass = match checked {
            Err(why) => unread(&table.source, why),
            Ok(_) if clock.tick() >= deadline => unread(
                &table.source,
                "the scan timed out; raise `scan_timeout`".to_owned(),
            ),
            Ok(checked) => lease_tables::list(link, &checked, clock, deadline, sink).await?,
        };
        sources.push(pass);
    }
    Ok(Pass {
        sources,
        clock: Reported::Value(reading),
    })
}

async fn read_clock(link: &mut Link<'_>, clock: &Clock) -> Result<ClockReading, StatementError> {
    let before = clock.now();
    let rows = link.rows(sqlx::query("SELECT clock_timestamp()")).await?;
    let after = clock.now();
    let round_trip_ms = after.tick.since(before.tick);
    let unreadable = |_| {
        StatementError::Lost(BackendError::Protocol {
            detail: "no clock reading".to_owned(),
        })
    };
    let row = rows.first().ok_or(sqlx::Error::RowNotFound).map_err(unreadable)?;
    Ok(ClockReading {
        backend_now: row.try_get(0).map_err(unreadable)?,
        our_now: before.wall + chrono::TimeDelta::milliseconds(round_trip_ms / 2),
        error_ms: round_trip_ms / 2 + 1,
    })
}

/// Advisory locks and blocked sessions: one snapshot for both.
async fn sessions(
    backend: &PostgresBackend,
    link: &mut Link<'_>,
    sink: &mut dyn Sink,
    sources: &mut Vec<SourcePass>,
) -> Result<(), StatementError> {
    let requested = session_sources(backend);
    if requested.is_empty() {
        return Ok(());
    }
    let sent_at = backend.clock.tick();
    match snapshot::take(link).await {
        Ok(snapshot) => {
            let locks = locks(backend, &snapshot);
            let waiting = snapshot.is_cut().then(|| {
                format!(
                    "more than {WAITING_MAX} sessions wait: only that many were queried for their blockers"
                )
            });
            sources.extend(requested.into_iter().map(|source| match &waiting {
                Some(why) if source == relation::source() => {
                    let seen = locks.iter().filter(|lock| lock.source == source).count() as u64;
                    let coverage = Coverage::Partial {
                        seen,
                        of: None,
                        why: why.clone().into(),
                    };
                    SourcePass {
                        source,
                        coverage,
                        fault: Some(why.clone()),
                    }
                }
                _ => SourcePass {
                    source,
                    coverage: Coverage::Complete,
                    fault: None,
                },
            }));
            sink.accept(Batch {
                sent_at,
                locks,
                gone: Vec::new(),
            });
            Ok(())
        }
        Err(StatementError::Refused(refusal)) => {
            let why = format!("pg_locks cannot be read: {} ({})", refusal.message, refusal.code);
            sources.extend(requested.iter().map(|source| unread(source, why.clone())));
            Ok(())
        }
        Err(error) => Err(error),
    }
}

fn session_sources(backend: &PostgresBackend) -> Vec<Source> {
    let advisory = backend.advisory_locks.then(advisory::source);
    advisory
        .into_iter()
        .chain(backend.blocked_sessions.then(relation::source))
        .collect()
}

fn locks(backend: &PostgresBackend, snapshot: &Snapshot) -> Vec<ObservedLock> {
    let mut locks = Vec::new();
    if backend.advisory_locks {
        locks.extend(
            advisory::groups(snapshot)
                .iter()
                .map(|group| group.lock(snapshot)),
        );
    }
    if backend.blocked_sessions {
        locks.extend(
            relation::groups(snapshot)
                .iter()
                .map(|group| group.lock(snapshot)),
        );
    }
    locks
}

pub(super) async fn refresh(
    backend: &PostgresBackend,
    names: &[(Source, Resource)],
    sink: &mut dyn Sink,
) -> Result<(), BackendError> {
    let timeout_ms = backend.links.timeout_ms();
    let mut link = backend.links.acquire().await?;
    read_named(backend, &mut link, names, sink)
        .await
        .map_err(|failure| failure.into_backend(timeout_ms))
}

async fn read_named(
    backend: &PostgresBackend,
    link: &mut Link<'_>,
    names: &[(Source, Resource)],
    sink: &mut dyn Sink,
) -> Result<(), StatementError> {
    let names_of = |source: &Source| {
        names
            .iter()
            .filter(|(s, _)| s == source)
            .map(|(_, name)| name)
            .collect::<Vec<_>>()
    };
    if names
        .iter()
        .any(|(source, _)| session_sources(backend).contains(source))
    {
        let sent_at = backend.clock.tick();
        let snapshot = snapshot::take(link).await?;
        let mut locks = locks(backend, &snapshot);
        locks.retain(|lock| {
            names
                .iter()
                .any(|(s, name)| *s == lock.source && *name == lock.resource)
        });
        for source in session_sources(backend) {
            let found: Vec<_> = locks.extract_if(.., |lock| lock.source == source).collect();
            let requested = match shows_all(&snapshot, &source) {
                true => names_of(&source),
                false => Vec::new(),
            };
            deliver(sink, sent_at, &source, &requested, found);
        }
    }
    let tables: Vec<_> = backend
        .tables
        .iter()
        .filter(|table| !names_of(&table.source).is_empty())
        .cloned()
        .collect();
    for (table, checked) in tables.iter().zip(catalog::check(link, &tables).await?) {
        // The next scan reports a table that cannot be read; its rows stay and age.
        let Ok(checked) = checked else { continue };
        let requested = names_of(&table.source);
        let sent_at = backend.clock.tick();
        match lease_tables::read_named(link, &checked, &requested).await {
            Ok(found) => deliver(sink, sent_at, &table.source, &requested, found),
            Err(StatementError::Refused(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether a lock of this source that the snapshot does not have is free.
fn shows_all(snapshot: &Snapshot, source: &Source) -> bool {
    *source != relation::source() || !snapshot.is_cut()
}

fn deliver(
    sink: &mut dyn Sink,
    sent_at: domain::tick::Tick,
    source: &Source,
    requested: &[&Resource],
    locks: Vec<ObservedLock>,
) {
    let found: std::collections::HashSet<&Resource> = locks.iter().map(|lock| &lock.resource).collect();
    let missing = requested.iter().filter(|name| !found.contains(*name));
    let missing = missing.map(|name| (source.clone(), (*name).clone())).collect();
    sink.accept(Batch {
        sent_at,
        locks,
        gone: missing,
    });
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::snapshot::LockRow;
    use super::*;

    /// As many sessions as this wait for one table each.
    fn waiting(count: i64) -> Snapshot {
        let row = |pid: i64| LockRow {
            kind: "relation".to_owned(),
            database: None,
            relation: None,
            transaction: None,
            class: 0,
            object: 0,
            sub: 0,
            pid: i32::try_from(pid).unwrap(),
            mode: "AccessShareLock".to_owned(),
            granted: false,
            wait_start: None,
            blocked_by: vec![i32::MAX],
        };
        Snapshot {
            now: None,
            rows: (1..=count).map(row).collect(),
            parties: HashMap::new(),
        }
    }

    #[test]
    fn a_cut_snapshot_shows_no_blocked_table_as_free() {
        // One session fewer than are queried, and as many; all advisory locks are in it.
        let (few, many) = (waiting(WAITING_MAX - 1), waiting(WAITING_MAX));
        assert!(shows_all(&few, &relation::source()));
        assert!(!shows_all(&many, &relation::source()));
        assert!(shows_all(&many, &advisory::source()));
    }
}
