//! Scheduled tasks that lock as ShedLock does: the row stays, and `lock_until` is its expiry.

use std::time::Duration;

use sqlx::PgPool;
use tokio::time::sleep;

use crate::fault::WorkloadError;
use crate::rng;

/// Times without zone, in UTC, as ShedLock's documentation advises. Held for at most ten minutes.
const LOCK: &str = "
INSERT INTO shedlock AS s (name, lock_until, locked_at, locked_by)
VALUES ($1, timezone('utc', clock_timestamp()) + interval '10 min', timezone('utc', clock_timestamp()), $2)
ON CONFLICT (name) DO UPDATE SET
    lock_until = EXCLUDED.lock_until, locked_at = EXCLUDED.locked_at, locked_by = EXCLUDED.locked_by
WHERE s.lock_until <= timezone('utc', clock_timestamp())";

const UNLOCK: &str = "
UPDATE shedlock SET lock_until = timezone('utc', clock_timestamp()) WHERE name = $1 AND locked_by = $2";

/// One run of a scheduled task, and the pause until the next.
pub(crate) async fn run_task(
    pool: PgPool,
    name: &'static str,
    host: &'static str,
) -> Result<(), WorkloadError> {
    sqlx::query(LOCK).bind(name).bind(host).execute(&pool).await?;
    sleep(rng::between(Duration::from_secs(20), Duration::from_secs(60))).await;
    sqlx::query(UNLOCK).bind(name).bind(host).execute(&pool).await?;
    sleep(rng::between(Duration::from_secs(2), Duration::from_secs(8))).await;
    Ok(())
}
