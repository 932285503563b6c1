//! An orphaned lock: a transaction prepared for two-phase commit whose coordinator never came back. It survives its
//! session and a restart of the server.

use super::{Access, run};
use crate::fault::WorkloadError;

const IS_PREPARED: &str = "SELECT EXISTS (SELECT FROM pg_prepared_xacts WHERE gid = 'ledger-export-2026-04')";
const PREPARE: &str = "
BEGIN;
SELECT pg_advisory_xact_lock(hashtextextended('ledger:export', 0));
PREPARE TRANSACTION 'ledger-export-2026-04'";
pub(crate) const NAME: &str = "ledger:export";

/// Prepares the transaction if it does not exist, then waits for its lock until the end of the demo.
pub(crate) async fn wait_for_owners(access: Access) -> Result<(), WorkloadError> {
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
