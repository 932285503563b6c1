//! Rows of lease tables: deleted, expired or set free, as the table's clients expect, if everything that tells one
//! holding from the next is as it was seen. The guard stands in the statement itself: whoever takes the row while we wait for
//! it is not touched.

use domain::generation::Generation;
use domain::names::{Resource, Source};
use domain::observation::Lifetime;
use domain::release::Release;
use sqlx::AssertSqlSafe;

use super::{before_the_act, refused};
use crate::backends::postgres::PostgresBackend;
use crate::backends::postgres::catalog;
use crate::backends::postgres::fault::{Failure, Refusal};
use crate::backends::postgres::link::{Link, Links};
use crate::backends::postgres::plan::Plan;
use crate::backends::postgres::row_act::{self, RowAct};
use crate::backends::postgres::table::LeaseTable;
use crate::backends::release::{Acted, settle};
use crate::backends::{Backend, BackendError};

pub(super) async fn release(
    backend: &PostgresBackend,
    unlocks: &Links,
    source: &Source,
    resource: &Resource,
    wanted: &Generation,
) -> Result<Release, BackendError> {
    let Some(table) = backend.table(source) else {
        return Ok(Release::refused(
            format!("{source} is no lease table of this backend"),
            "Configure it as a `[[backend.lease_table]]`.",
        ));
    };
    let mut link = unlocks.acquire().await?;
    let acted = match act(unlocks, &mut link, table, resource, wanted).await {
        Ok(acted) => acted,
        Err(failure) => before_the_act(unlocks, failure)?,
    };
    link.close();
    drop(link);
    if acted == Acted::Missed && is_over(backend, source, resource, wanted).await? {
        return Ok(Release::AlreadyFree);
    }
    settle(backend, source, resource, wanted, acted).await
}

/// A row that stays when its lease has ended is nobody's.
async fn is_over(
    backend: &PostgresBackend,
    source: &Source,
    resource: &Resource,
    wanted: &Generation,
) -> Result<bool, BackendError> {
    let seen = backend.inspect(source, resource).await?.lock;
    Ok(seen.is_some_and(|lock| {
        let over = matches!(
            lock.lifetime,
            Lifetime::Leased {
                remaining_ms: ..=0,
                ..
            }
        );
        over && lock.generation.known() == Some(wanted)
    }))
}

/// `Err`: what failed before the act.
async fn act(
    unlocks: &Links,
    link: &mut Link<'_>,
    table: &LeaseTable,
    resource: &Resource,
    wanted: &Generation,
) -> Result<Acted, Failure> {
    // A name that is not UTF-8 cannot be in a text column.
    let Ok(name) = std::str::from_utf8(resource.as_bytes()) else {
        return Ok(Acted::Missed);
    };
    let mut plans = catalog::check(link, std::slice::from_ref(table)).await?;
    let plan = match plans.pop() {
        Some(Ok(plan)) => plan,
        Some(Err(why)) => {
            let mend = "Give the account of forced unlocks the rights of docs/backends/postgres.md.";
            return Ok(Acted::Refused {
                why: format!("the account of forced unlocks: {why}"),
                mend: mend.to_owned(),
            });
        }
        None => return Ok(Acted::Missed),
    };
    let act = row_act::of(link, &plan).await?;
    let sql = match act.statement(&plan) {
        Ok(sql) => sql,
        Err(why) => {
            return Ok(Acted::Refused {
                why: why.to_owned(),
                mend: row_act::MEND.to_owned(),
            });
        }
    };
    let query = sqlx::query(AssertSqlSafe(sql)).bind(name).bind(wanted.as_str());
    Ok(match link.rows(query).await {
        Ok(touched) if touched.is_empty() => Acted::Missed,
        Ok(_) => Acted::Done,
        Err(Failure::Refused(refusal)) => explained(&refusal, act, &plan),
        Err(lost @ Failure::Lost(_)) => Acted::unanswered(&lost.into_backend(unlocks.timeout_ms())),
    })
}

/// The server has refused the statement: nothing was changed.
fn explained(refusal: &Refusal, act: RowAct, plan: &Plan) -> Acted {
    let (table, account) = (&plan.found.shown, &plan.found.account);
    if refusal.is_lock_timeout() || refusal.is_statement_timeout() {
        return Acted::Refused {
            why: format!(
                "another session has locked the row, or the table {table}, and did not let go in time"
            ),
            mend: "Look who blocks it among the blocked sessions, and end that session first.".to_owned(),
        };
    }
    if refusal.is_insufficient_privilege() {
        return Acted::Refused {
            why: format!("the account {account} may not change {table}"),
            mend: format!("GRANT {} ON {table} TO {account};", act.right(plan)),
        };
    }
    refused(refusal, "Mend what the server says, then try again.")
}
