//! Rows of lease tables: deleted, expired or cleared, as the table's clients expect, if the
//! generation is unchanged. The guard is part of the statement: a holding that begins while the
//! statement waits for the row is not touched.

use domain::force_release::Release;
use domain::generation::Generation;
use domain::names::{Resource, Source};
use sqlx::AssertSqlSafe;

use super::{acquire, before_the_act, refused};
use crate::postgres::PostgresBackend;
use crate::postgres::catalog;
use crate::postgres::checked_table::CheckedTable;
use crate::postgres::connection::{Link, Links};
use crate::postgres::error::{Refusal, StatementError};
use crate::postgres::release_action::{self, RowAct};
use crate::postgres::table::LeaseTable;
use crate::release::{Acted, confirm_release};
use crate::{Backend, BackendError};

pub(super) async fn release(
    backend: &PostgresBackend,
    unlocks: &Links,
    source: &Source,
    resource: &Resource,
    expected: &Generation,
) -> Result<Release, BackendError> {
    let Some(table) = backend.table(source) else {
        return Ok(Release::refused(
            format!("{source} is not a lease table of this backend"),
            "Configure it as a `[[backend.lease_table]]`.",
        ));
    };
    let mut link = acquire(unlocks).await?;
    let acted = match act(unlocks, &mut link, table, resource, expected).await {
        Ok(acted) => acted,
        Err(failure) => before_the_act(unlocks, failure)?,
    };
    link.close();
    drop(link);
    if acted == Acted::Missed && is_over(backend, source, resource, expected).await? {
        return Ok(Release::AlreadyFree);
    }
    confirm_release(backend, source, resource, expected, acted).await
}

/// A row that stays after its lease has ended has no holder.
async fn is_over(
    backend: &PostgresBackend,
    source: &Source,
    resource: &Resource,
    expected: &Generation,
) -> Result<bool, BackendError> {
    let seen = backend.inspect(source, resource).await?.lock;
    Ok(seen.is_some_and(|lock| lock.is_expired() && lock.generation.known() == Some(expected)))
}

/// `Err`: failed before any change.
async fn act(
    unlocks: &Links,
    link: &mut Link<'_>,
    table: &LeaseTable,
    resource: &Resource,
    expected: &Generation,
) -> Result<Acted, StatementError> {
    // A name that is not UTF-8 cannot be in a text column.
    let Ok(name) = std::str::from_utf8(resource.as_bytes()) else {
        return Ok(Acted::Missed);
    };
    let mut checked_tables = catalog::check(link, std::slice::from_ref(table)).await?;
    let checked = match checked_tables.pop() {
        Some(Ok(checked)) => checked,
        Some(Err(why)) => {
            let remedy = "Grant the account for forced unlocks the permissions in docs/backends/postgres.md.";
            return Ok(Acted::Refused {
                why: format!("the account for forced unlocks: {why}"),
                remedy: remedy.to_owned(),
            });
        }
        None => return Ok(Acted::Missed),
    };
    let act = release_action::read(link, &checked).await?;
    let sql = match act.statement(&checked) {
        Ok(sql) => sql,
        Err((why, remedy)) => {
            return Ok(Acted::Refused {
                why: why.to_owned(),
                remedy: remedy.to_owned(),
            });
        }
    };
    let query = sqlx::query(AssertSqlSafe(sql)).bind(name).bind(expected.as_str());
    Ok(match link.rows(query).await {
        Ok(touched) if touched.is_empty() => Acted::Missed,
        Ok(_) => Acted::Done,
        Err(StatementError::Refused(refusal)) => explain_refusal(&refusal, &act, &checked),
        Err(lost @ StatementError::Lost(_)) => Acted::unanswered(&lost.into_backend(unlocks.timeout_ms())),
    })
}

/// The server refused the statement: nothing was changed.
fn explain_refusal(refusal: &Refusal, act: &RowAct, checked: &CheckedTable) -> Acted {
    let (table, account) = (&checked.found.shown, &checked.found.account);
    if refusal.is_lock_timeout() || refusal.is_statement_timeout() {
        return Acted::Refused {
            why: format!(
                "another session has locked the row, or the table {table}, and did not release it in time"
            ),
            remedy: "Find its blocker among the blocked sessions, and end that session first.".to_owned(),
        };
    }
    if refusal.is_insufficient_privilege() {
        return Acted::Refused {
            why: format!("the account {account} may not change {table}"),
            remedy: format!(
                "GRANT {} ON {table} TO {account};",
                act.required_privilege(checked)
            ),
        };
    }
    refused(refusal, "Fix the error that the server reported, then try again.")
}
