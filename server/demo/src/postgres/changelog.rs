//! A schema migration that holds Liquibase's lock: one row, no expiry.

use std::time::Duration;

use sqlx::PgPool;
use tokio::time::sleep;

use crate::fault::WorkloadError;

const LOCK: &str = "
UPDATE databasechangeloglock
SET locked = true, lockgranted = timezone('utc', clock_timestamp()), lockedby = $1
WHERE id = 1";
const UNLOCK: &str =
    "UPDATE databasechangeloglock SET locked = false, lockgranted = NULL, lockedby = NULL WHERE id = 1";

/// A long migration, and a short pause until the next.
pub(crate) async fn migrate(pool: PgPool) -> Result<(), WorkloadError> {
    sqlx::query(LOCK)
        .bind("schema-migrator-2 (10.20.0.17)")
        .execute(&pool)
        .await?;
    sleep(Duration::from_secs(120)).await;
    sqlx::query(UNLOCK).execute(&pool).await?;
    sleep(Duration::from_secs(3)).await;
    Ok(())
}
