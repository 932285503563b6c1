//! Sessions that hold advisory locks, or wait for them. A session takes its lock with its life.

use std::time::Duration;

use sqlx::PgConnection;
use tokio::time::sleep;

use super::Access;
use crate::demo::fault::Fault;

/// The string whose hash is the key, as many programs make theirs; the console knows it by its configuration.
pub(in crate::demo) const CONTENDED: &str = "settlement:nightly";
pub(in crate::demo) const QUIET: &str = "search:reindex:products";
/// Prisma's migration key.
pub(in crate::demo) const PRISMA_KEY: i64 = 72_707_369;

const HOLD: Duration = Duration::from_secs(50);
const LONG: Duration = Duration::from_secs(3_600);

/// Waits for the contended lock, holds it for a while, frees it for the next in line and queues again.
pub(in crate::demo) async fn takes_turns(
    access: Access,
    application_name: &'static str,
) -> Result<(), Fault> {
    let mut session = access.session(application_name).await?;
    lock_hash_of(&mut session, CONTENDED).await?;
    sleep(HOLD).await;
    sqlx::query("SELECT pg_advisory_unlock(hashtextextended($1, 0))")
        .bind(CONTENDED)
        .execute(&mut session)
        .await?;
    Ok(())
}

/// Holds three locks that nobody wants: one by a hash, one by a well-known number, one by two numbers.
pub(in crate::demo) async fn holds_several(access: Access) -> Result<(), Fault> {
    let mut session = access.session("schema-migrator-2").await?;
    lock_hash_of(&mut session, QUIET).await?;
    sqlx::query("SELECT pg_advisory_lock($1)")
        .bind(PRISMA_KEY)
        .execute(&mut session)
        .await?;
    sqlx::query("SELECT pg_advisory_lock_shared(204, -7)")
        .execute(&mut session)
        .await?;
    watch_over(&mut session).await
}

async fn lock_hash_of(session: &mut PgConnection, text: &str) -> Result<(), Fault> {
    sqlx::query("SELECT pg_advisory_lock(hashtextextended($1, 0))")
        .bind(text)
        .execute(session)
        .await?;
    Ok(())
}

/// Keeps the session, and notices when the server has dropped it.
async fn watch_over(session: &mut PgConnection) -> Result<(), Fault> {
    for _ in 0..LONG.as_secs() / 5 {
        sleep(Duration::from_secs(5)).await;
        sqlx::query("SELECT 1").execute(&mut *session).await?;
    }
    Ok(())
}
