//! Reads lease tables: all rows in batches, or some by name. A table that cannot be read fails
//! its source only.

use std::collections::HashSet;
use std::sync::Arc;

use domain::format;
use domain::names::{OwnerId, Resource, Source};
use domain::observation::{Coverage, ObservedLock};
use domain::tick::Tick;
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, Row};

use super::checked_table::CheckedTable;
use super::connection::Link;
use super::duplicate_rows;
use super::error::{Refusal, StatementError};
use super::rows::{self, Skipped};
use crate::{Batch, Sink, SourcePass};
use runtime::clock::Clock;

/// Rows of the first round trip, and limit of the later ones, which are sized by the bytes of
/// the rows before.
const FIRST_ROWS: usize = 100;
const BATCH_ROWS_MAX: usize = 1000;
const BATCH_BYTES: usize = 4 * 1024 * 1024;

const BLOCKER: &str = "
SELECT l.pid, coalesce(nullif(a.application_name, ''), 'session') AS name, l.granted
FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'relation' AND l.relation = $1 AND l.mode = 'AccessExclusiveLock'
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
ORDER BY l.granted DESC LIMIT 1";

/// Counters of one table.
#[derive(Debug, Default)]
struct Tally {
    seen: u64,
    skipped: u64,
    skipped_why: Option<Skipped>,
    /// A skipped row may be a lock: it has a name that a lock may have.
    has_hidden_lock: bool,
}

impl Tally {
    fn collect_rows(
        &mut self,
        checked: &CheckedTable,
        rows: &[PgRow],
        repeated: &HashSet<Resource>,
    ) -> Vec<ObservedLock> {
        let mut locks = Vec::with_capacity(rows.len());
        for row in rows {
            match rows::lock(checked, row) {
                // Read together, so that one resource is one lock.
                Ok(lock) if repeated.contains(&lock.resource) => {}
                Ok(lock) => locks.push(lock),
                Err(why) => {
                    self.skipped += 1;
                    self.skipped_why = Some(why);
                    self.has_hidden_lock |= why == Skipped::Unreadable;
                }
            }
        }
        self.seen += locks.len() as u64;
        locks
    }

    fn pass(self, checked: &CheckedTable, cut: Option<String>) -> SourcePass {
        let source = checked.table.source.clone();
        let skipped = self.skipped_why.map(|why| {
            let rows = format::counted(self.skipped, "row", "rows");
            match why {
                Skipped::NoName => format!("{rows} without a resource (NULL) cannot be shown"),
                Skipped::NameTooLong => format!("{rows} with a resource of more than 64 KiB cannot be shown"),
                Skipped::Unreadable => format!("{rows} could not be decoded"),
            }
        });
        let of = if cut.is_some() {
            checked.found.row_estimate
        } else {
            Some(self.seen + self.skipped)
        };
        let of = of.map(|of| of.max(self.seen));
        match cut.or(skipped) {
            None => SourcePass {
                source,
                coverage: Coverage::Complete,
                fault: None,
            },
            Some(why) => {
                let coverage = Coverage::Partial {
                    seen: self.seen,
                    of,
                    why: why.clone().into(),
                };
                SourcePass {
                    source,
                    coverage,
                    fault: Some(why),
                }
            }
        }
    }
}

/// A source that was not read at all, with the reason.
pub(super) fn unread(source: &Source, why: String) -> SourcePass {
    let coverage = Coverage::Partial {
        seen: 0,
        of: None,
        why: why.clone().into(),
    };
    SourcePass {
        source: source.clone(),
        coverage,
        fault: Some(why),
    }
}

/// Lists one table until it ends or `deadline` is reached. Rows without a name that a lock may have make it partial,
/// but leave no lock unread.
pub(super) async fn list(
    link: &mut Link<'_>,
    checked: &CheckedTable,
    clock: &Clock,
    deadline: Tick,
    sink: &mut dyn Sink,
) -> Result<SourcePass, StatementError> {
    let mut tally = Tally::default();
    let sent_at = clock.tick();
    let mut repeated = duplicate_rows::names(link, checked).await?;
    let mut cut_reason = None;
    if !repeated.is_empty() {
        let read = read_named(link, checked, &repeated.iter().collect::<Vec<_>>()).await;
        let locks = match read {
            Ok(locks) => {
                // A name without a row by now is listed with the others, should it be acquired again.
                repeated = locks.iter().map(|lock| lock.resource.clone()).collect();
                locks
            }
            Err(StatementError::Refused(refusal)) => {
                cut_reason = Some(reason(link, checked, &refusal).await?);
                Vec::new()
            }
            Err(error) => return Err(error),
        };
        tally.seen += locks.len() as u64;
        sink.accept(Batch {
            sent_at,
            locks,
            gone: Vec::new(),
        });
    }
    let mut listing = Listing {
        checked,
        tally: &mut tally,
        repeated: &repeated,
    };
    let listed = batches(link, &mut listing, clock, deadline, sink).await;
    let ended = match listed {
        Err(StatementError::Lost(error)) => return Err(StatementError::Lost(error)),
        other => {
            link.end().await?;
            other
        }
    };
    match ended {
        Ok(timed_out) => {
            let cut_reason = cut_reason.or(timed_out);
            if cut_reason.is_none() && !tally.has_hidden_lock {
                sink.read_part(&checked.table.source, Arc::new(|_| true));
            }
            Ok(tally.pass(checked, cut_reason))
        }
        Err(StatementError::Refused(refusal)) => {
            let why = reason(link, checked, &refusal).await?;
            Ok(tally.pass(checked, Some(why)))
        }
        Err(error) => Err(error),
    }
}

/// One table while it is listed.
struct Listing<'a> {
    checked: &'a CheckedTable,
    tally: &'a mut Tally,
    /// Skipped: read before.
    repeated: &'a HashSet<Resource>,
}

/// Why the listing was cut, if it was. Every batch has the time of the first: the cursor reads all rows as they were
/// when it was opened, so that a row read by name meanwhile is younger.
async fn batches(
    link: &mut Link<'_>,
    listing: &mut Listing<'_>,
    clock: &Clock,
    deadline: Tick,
    sink: &mut dyn Sink,
) -> Result<Option<String>, StatementError> {
    let mut rows_max = FIRST_ROWS;
    let mut first = true;
    let sent_at = clock.tick();
    loop {
        let rows = if first {
            link.first(&listing.checked.list(), rows_max).await?
        } else {
            link.fetch_more(rows_max).await?
        };
        first = false;
        let is_last = rows.len() < rows_max;
        let locks = listing
            .tally
            .collect_rows(listing.checked, &rows, listing.repeated);
        rows_max = next_batch(&locks);
        if !locks.is_empty() {
            sink.accept(Batch {
                sent_at,
                locks,
                gone: Vec::new(),
            });
        }
        if is_last {
            return Ok(None);
        }
        if clock.tick() >= deadline {
            return Ok(Some("the scan timed out; raise `scan_timeout`".to_owned()));
        }
    }
}

/// Number of rows to request next: names may have 64 KiB each.
fn next_batch(locks: &[ObservedLock]) -> usize {
    let bytes: usize = locks.iter().map(|lock| lock.resource.as_bytes().len()).sum();
    let bytes_per_row = bytes / locks.len().max(1) + 1;
    (BATCH_BYTES / bytes_per_row).clamp(1, BATCH_ROWS_MAX)
}

/// The server's refusal as a sentence about this table.
async fn reason(
    link: &mut Link<'_>,
    checked: &CheckedTable,
    refusal: &Refusal,
) -> Result<String, StatementError> {
    let table = &checked.found.shown;
    if refusal.is_lock_timeout() {
        return Ok(match blocker(link, checked).await? {
            Some(blocker) => format!("table {table} is blocked by {blocker}"),
            None => format!("table {table} was blocked for a moment by another session's lock"),
        });
    }
    if refusal.is_statement_timeout() {
        return Ok(format!("table {table} did not answer in time: raise `timeout`"));
    }
    if refusal.is_insufficient_privilege() {
        let account = &checked.found.account;
        return Ok(format!(
            "this account may not read {table}: GRANT SELECT ON {table} TO {account};"
        ));
    }
    if checked.table.held_when.is_some() && refusal.is_of_expression() {
        return Ok(format!(
            "`held_when` of table {table} cannot be evaluated: {} ({}): correct `held_when` in the configuration",
            refusal.message, refusal.code
        ));
    }
    Ok(format!(
        "table {table} cannot be read: {} ({})",
        refusal.message, refusal.code
    ))
}

/// `pid 4711 (psql)`, the session whose lock blocks the read.
async fn blocker(link: &mut Link<'_>, checked: &CheckedTable) -> Result<Option<String>, StatementError> {
    let rows = link.rows(sqlx::query(BLOCKER).bind(checked.found.oid)).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let name: String = row.try_get("name").unwrap_or_default();
    let waits = if row.try_get("granted").unwrap_or(true) {
        ""
    } else {
        ", which itself waits for the table"
    };
    Ok(Some(match row.try_get::<Option<i32>, _>("pid") {
        Ok(Some(pid)) => format!("pid {pid} ({name}){waits}"),
        Ok(None) | Err(_) => "a prepared transaction (pg_prepared_xacts names it)".to_owned(),
    }))
}

/// Current locks with these names.
pub(super) async fn read_named(
    link: &mut Link<'_>,
    checked: &CheckedTable,
    resources: &[&Resource],
) -> Result<Vec<ObservedLock>, StatementError> {
    let locks = with_owners(link, checked, resources).await?;
    Ok(locks.into_iter().map(|(lock, _)| lock).collect())
}

/// The same, each with its owners.
pub(super) async fn with_owners(
    link: &mut Link<'_>,
    checked: &CheckedTable,
    resources: &[&Resource],
) -> Result<Vec<(ObservedLock, Vec<OwnerId>)>, StatementError> {
    // A name that is not UTF-8 cannot be in a text column.
    let names: Vec<&str> = resources
        .iter()
        .filter_map(|name| std::str::from_utf8(name.as_bytes()).ok())
        .collect();
    let rows = link
        .rows(sqlx::query(AssertSqlSafe(checked.select_named())).bind(names))
        .await?;
    let rows = Tally::default().collect_rows(checked, &rows, &HashSet::new());
    Ok(duplicate_rows::fold(rows))
}

/// Sentence for a table that refused a read by name.
pub(super) async fn explain(
    link: &mut Link<'_>,
    checked: &CheckedTable,
    failure: StatementError,
) -> Result<String, StatementError> {
    match failure {
        StatementError::Refused(refusal) => reason(link, checked, &refusal).await,
        lost @ StatementError::Lost(_) => Err(lost),
    }
}
