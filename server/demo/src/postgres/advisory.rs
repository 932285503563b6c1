//! Sessions that hold advisory locks or wait for them; the locks end with their session.

use std::time::Duration;

use sqlx::PgConnection;
use tokio::time::sleep;

use super::Access;
use crate::fault::WorkloadError;

/// The string whose hash is the key, a common practice; the console has it in its configuration.
pub(crate) const CONTENDED: &str = "settlement:nightly";
pub(crate) const QUIET: &str = "search:reindex:products";
/// Prisma's migration key.
pub(crate) const PRISMA_KEY: i64 = 72_707_369;

const HOLD: Duration = Duration::from_secs(50);
const LONG: Duration = Duration::from_secs(3_600);

/// Waits for the contended lock, holds it for a while, releases it and queues again.
pub(crate) async fn wait_and_hold(
    access: Access,
    application_name: &'static str,
) -> Result<(), WorkloadError> {
    let mut session = access.session(application_name).await?;
    lock_hash_of(&mut session, CONTENDED).await?;
    sleep(HOLD).await;
    sqlx::query("SELECT pg_advisory_unlock(hashtextextended($1, 0))")
        .bind(CONTENDED)
        .execute(&mut session)
        .await?;
    Ok(())
}

/// Holds three uncontended locks: a hash, a well-known number, and two numbers.
pub(crate) async fn hold_uncontended_locks(access: Access) -> Result<(), WorkloadError> {
    let mut session = access.session("schema-migrator-2").await?;
    lock_hash_of(&mut session, QUIET).await?;
    sqlx::query("SELECT pg_advisory_lock($1)")
        .bind(PRISMA_KEY)
        .execute(&mut session)
        .await?;
    sqlx::query("SELECT pg_advisory_lock_shared(204, -7)")
        .execute(&mut session)
        .await?;
    keep_session_open(&mut session).await
}

pub(crate) async fn lock_hash_of(session: &mut PgConnection, text: &str) -> Result<(), WorkloadError> {
    sqlx::query("SELECT pg_advisory_lock(hashtextextended($1, 0))")
        .bind(text)
        .execute(session)
        .await?;
    Ok(())
}

/// Keeps the session open and detects when the server has closed it.
async fn keep_session_open(session: &mut PgConnection) -> Result<(), WorkloadError> {
    for _ in 0..LONG.as_secs() / 5 {
        sleep(Duration::from_secs(5)).await;
        sqlx::query("SELECT 1").execute(&mut *session).await?;
    }
    Ok(())
}
