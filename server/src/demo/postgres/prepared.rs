//! A lock whose holder is gone: a transaction prepared for two-phase commit by a coordinator that never came back.
//! It survives its session, and a restart of the server.

use super::{Access, run};
use crate::demo::fault::Fault;

const IS_PREPARED: &str = "SELECT EXISTS (SELECT FROM pg_prepared_xacts WHERE gid = 'ledger-export-2026-04')";
const PREPARE: &str = "
BEGIN;
SELECT pg_advisory_xact_lock(hashtextextended('ledger:export', 0));
PREPARE TRANSACTION 'ledger-export-2026-04'";
pub(in crate::demo) const NAME: &str = "ledger:export";

/// Prepares the transaction unless it is there already, then stands in line behind it, for ever.
pub(in crate::demo) async fn wait_for_the_gone(access: Access) -> Result<(), Fault> {
    let mut coordinator = access.session("exporter-1").await?;
    let is_prepared: bool = sqlx::query_scalar(IS_PREPARED)
        .fetch_one(&mut coordinator)
        .await?;
    if !is_prepared {
        run(&mut coordinator, PREPARE).await?;
    }
    drop(coordinator);
    let mut waiter = access.session("exporter-2").await?;
    sqlx::query("SELECT pg_advisory_lock(hashtextextended($1, 0))")
        .bind(NAME)
        .execute(&mut waiter)
        .await?;
    Ok(())
}
