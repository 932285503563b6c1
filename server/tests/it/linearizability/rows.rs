//! Reads the store directly, without the service.

use sqlx::Connection as _;

use super::history::HistoryRow;

type Tuple = (
    String,
    String,
    String,
    i64,
    i64,
    i64,
    i64,
    Option<i64>,
    Option<String>,
    i64,
);

const LEASES: &str =
    "SELECT lease_id, resource, owner_id, fencing_token, acquired_at, renewed_at, expires_at, ended_at,
     ended_how, ttl_seconds FROM leases";
const LEDGER: &str = "SELECT source FROM fencing_rejections";

/// Leases, and the reporters of the ledger of rejections.
pub(super) async fn read(url: &str) -> (Vec<HistoryRow>, Vec<String>) {
    let (rows, ledger): (Vec<Tuple>, Vec<String>) = if url.starts_with("postgres") {
        let mut connection = sqlx::PgConnection::connect(url).await.unwrap();
        (
            sqlx::query_as(LEASES).fetch_all(&mut connection).await.unwrap(),
            sqlx::query_scalar(LEDGER)
                .fetch_all(&mut connection)
                .await
                .unwrap(),
        )
    } else {
        let mut connection = sqlx::SqliteConnection::connect(url).await.unwrap();
        (
            sqlx::query_as(LEASES).fetch_all(&mut connection).await.unwrap(),
            sqlx::query_scalar(LEDGER)
                .fetch_all(&mut connection)
                .await
                .unwrap(),
        )
    };
    (rows.into_iter().map(row).collect(), ledger)
}

fn row(
    (lease, resource, owner, token, acquired_ms, renewed_ms, expires_ms, ended_at, ended_how, ttl): Tuple,
) -> HistoryRow {
    HistoryRow {
        lease,
        resource,
        owner,
        token: u64::try_from(token).unwrap(),
        acquired_ms,
        renewed_ms,
        expires_ms,
        ended: ended_at.zip(ended_how),
        ttl_ms: ttl * 1_000,
    }
}
