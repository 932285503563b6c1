//! Detects a cluster that may lack the last commits, and raises its tokens before any grant.

use domain::lease::limits::EPOCH_STEP;
use runtime::random;
use sqlx::postgres::PgConnection;

use super::sql;
use crate::error::LeaseOpenError;

/// Limits the effect of an identity that was changed by hand: tokens stay far below 2^53.
const LOST_EPOCHS_MAX: i64 = 1_000;

/// Records the identity of the cluster. A new timeline or a copy in another cluster may lack the
/// last commits: its tokens are raised before any grant.
pub(super) async fn identify(connection: &mut PgConnection) -> Result<String, LeaseOpenError> {
    let identity: String = sqlx::query_scalar(sql::IDENTITY)
        .fetch_one(&mut *connection)
        .await
        .map_err(LeaseOpenError::Store)?;
    let id = random::id();
    let first =
        "INSERT INTO store_meta (only_row, store_id, epoch, token_floor, cluster_identity) VALUES (1, $1, 1, 0, $2)
        ON CONFLICT DO NOTHING";
    let query = sqlx::query(first).bind(id).bind(&identity);
    query
        .execute(&mut *connection)
        .await
        .map_err(LeaseOpenError::Store)?;
    raise_epoch_once(connection, &identity, 0)
        .await
        .map_err(LeaseOpenError::Store)?;
    Ok(identity)
}

/// Whether the store lacks an epoch that this process has read: it is served by a primary from before a fail-over.
pub(super) async fn is_behind(connection: &mut PgConnection, known_floor: i64) -> Result<bool, sqlx::Error> {
    let read = "SELECT token_floor < $1 FROM store_meta";
    sqlx::query_scalar(read)
        .bind(known_floor)
        .fetch_one(connection)
        .await
}

/// Raises the epoch if the identity has changed or the store is below a floor that it had before. The first replica that detects
/// this raises it. The others wait for its row lock before they read any counter, so that sessions that are opened again and
/// again meanwhile do not all read the table.
pub(super) async fn raise_epoch_once(
    connection: &mut PgConnection,
    identity: &str,
    known_floor: i64,
) -> Result<(), sqlx::Error> {
    let read = "SELECT cluster_identity FROM store_meta";
    let recorded: String = sqlx::query_scalar(read).fetch_one(&mut *connection).await?;
    let lost = lost_epochs(&recorded, identity);
    let update = "WITH locked AS MATERIALIZED (SELECT FROM store_meta
            WHERE cluster_identity <> $1 OR token_floor < $3 FOR UPDATE)
        UPDATE store_meta SET epoch = epoch + $4, cluster_identity = $1, token_floor = $2 * $4 + greatest(token_floor, $3,
        coalesce((SELECT max(last_token) FROM resource_tokens), 0))
        WHERE (cluster_identity <> $1 OR token_floor < $3) AND EXISTS (SELECT FROM locked)";
    let result = sqlx::query(update)
        .bind(identity)
        .bind(EPOCH_STEP.cast_signed())
        .bind(known_floor)
        .bind(lost)
        .execute(connection)
        .await?;
    if result.rows_affected() > 0 {
        tracing::warn!(
            lost,
            "the lease store's Postgres was restored or promoted: every fencing token is raised by 2^32 for each lost epoch"
        );
    }
    Ok(())
}

/// How often the tokens must be raised: once, and once more for each timeline of this cluster in between. Such a timeline was
/// served and had raised the tokens too, before it was abandoned for the present one.
fn lost_epochs(recorded: &str, current: &str) -> i64 {
    match (timeline(recorded), timeline(current)) {
        (Some((cluster, from)), Some((same, to))) if cluster == same => (to - from).clamp(1, LOST_EPOCHS_MAX),
        _ => 1,
    }
}

/// The cluster and its timeline, which Postgres writes as hexadecimal digits.
fn timeline(identity: &str) -> Option<(&str, i64)> {
    let (cluster, timeline) = identity.split_once(':')?;
    Some((cluster, i64::from_str_radix(timeline, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use runtime::clock::Clock;
    use testkit::{Postgres, PostgresOptions, Throwaway};

    use super::super::PostgresStore;
    use super::super::optimistic_cache::StateAfter;
    use super::*;

    const STEP: i64 = EPOCH_STEP.cast_signed();

    async fn opened() -> (Postgres, PostgresStore) {
        let options = PostgresOptions {
            fast: true,
            ..PostgresOptions::default()
        };
        let server = Throwaway::postgres(options).await.unwrap();
        let store = PostgresStore::open(&server.superuser_url(), Clock::start())
            .await
            .unwrap();
        (server, store)
    }

    async fn epoch_and_floor(connection: &mut PgConnection) -> (i64, i64) {
        let read = "SELECT epoch, token_floor FROM store_meta";
        sqlx::query_as(read).fetch_one(connection).await.unwrap()
    }

    #[test]
    fn each_timeline_in_between_is_a_lost_epoch() {
        // The next timeline; one given up in between; hexadecimal; another cluster; an identity changed by hand.
        for (recorded, current, lost) in [
            ("7:00000001", "7:00000002", 1),
            ("7:00000001", "7:00000003", 2),
            ("7:0000000F", "7:00000012", 3),
            ("7:00000001", "8:00000009", 1),
            ("7:00000001", "7:FFFFFFFF", LOST_EPOCHS_MAX),
            ("before", "7:00000002", 1),
        ] {
            assert_eq!(lost_epochs(recorded, current), lost, "{recorded} {current}");
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_second_restore_raises_above_the_tokens_of_the_first() {
        // The first restore was timeline 2, and its tokens began above 2^32.
        let (_server, store) = opened().await;
        let mut session = store.connect().await.unwrap();
        let backup = "UPDATE store_meta SET cluster_identity = '7:00000001'";
        sqlx::raw_sql(backup).execute(&mut session).await.unwrap();
        for _ in 0..2 {
            raise_epoch_once(&mut session, "7:00000003", 0).await.unwrap();
            assert_eq!(epoch_and_floor(&mut session).await, (3, 2 * STEP));
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_primary_from_before_a_fail_over_is_raised() {
        // The identity is that of the start, and the floor is below that of the primary in between.
        let (_server, store) = opened().await;
        let known_floor = 5 * STEP;
        store.cache.lock().put(StateAfter {
            floor: known_floor,
            more: HashSet::new(),
            states: HashMap::new(),
        });
        for _ in 0..2 {
            let mut session = store.connect().await.unwrap();
            assert_eq!(epoch_and_floor(&mut session).await, (2, 6 * STEP));
        }
    }
}
