//! The store's clock, moved while everything runs.
//!
//! Postgres: its own `clock_timestamp()` is hidden behind one that adds what a table says. SQLite: the store's clock is
//! the server's, which runs under faketime and reads its offset from a file.

use sqlx::Executor as _;

use super::cluster::{Cluster, StoreKind};
use super::history::RecordedAnswer;

const HIDE: &str = "CREATE SCHEMA moved;
    CREATE TABLE moved.by_how_much (seconds double precision NOT NULL);
    INSERT INTO moved.by_how_much VALUES (0);
    CREATE FUNCTION moved.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
    'SELECT pg_catalog.clock_timestamp() + make_interval(secs => (SELECT seconds FROM moved.by_how_much))';
    ALTER ROLE postgres SET search_path = moved, pg_catalog, public";

/// Before the first server opens the store.
pub(super) async fn install(url: &str) {
    run(url, HIDE.to_owned()).await;
}

/// Moves a Postgres' clock to this far from the true one.
pub(super) async fn set(url: &str, seconds: i64) {
    run(url, format!("UPDATE moved.by_how_much SET seconds = {seconds}")).await;
}

async fn run(url: &str, statement: String) {
    use sqlx::Connection as _;
    let mut connection = sqlx::PgConnection::connect(url).await.unwrap();
    connection
        .execute(sqlx::raw_sql(sqlx::AssertSqlSafe(statement)))
        .await
        .unwrap();
}

/// Whether the store has noted where its time has come to.
pub(super) async fn written_down(url: &str) -> bool {
    use sqlx::Connection as _;
    let mut connection = sqlx::PgConnection::connect(url).await.unwrap();
    let read = "SELECT clock_ms > 0 FROM store_meta";
    sqlx::query_scalar(read).fetch_one(&mut connection).await.unwrap()
}

/// Whether an SQLite store has recorded that its time is behind the wall clock.
pub(super) async fn is_behind_recorded(url: &str) -> bool {
    use sqlx::Connection as _;
    let mut connection = sqlx::SqliteConnection::connect(url).await.unwrap();
    let read = "SELECT clock_behind_ms FROM store_meta";
    let behind_ms: i64 = sqlx::query_scalar(read).fetch_one(&mut connection).await.unwrap();
    behind_ms > 0
}

/// Moves the clock to this far from the true one.
pub(super) async fn move_to(cluster: &mut Cluster, seconds: i64) {
    if cluster.kind == StoreKind::Postgres {
        // Leases end early by a clock that is set ahead. Setting it back or correcting it must change nothing.
        cluster.history.clock_moved |= seconds > 0;
        run(
            &cluster.url,
            format!("UPDATE moved.by_how_much SET seconds = {seconds}"),
        )
        .await;
    } else {
        // A running replica on etcd does not follow its wall clock, and one that starts follows the other.
        cluster.wall_moved = cluster.kind != StoreKind::Etcd;
        std::fs::write(cluster.folder.path().join("offset.next"), format!("{seconds:+}")).unwrap();
        std::fs::rename(
            cluster.folder.path().join("offset.next"),
            cluster.folder.path().join("offset"),
        )
        .unwrap();
    }
}

/// How far the clock is from ours, as the store or its server shows it.
pub(super) async fn offset_seconds(cluster: &mut Cluster) -> i64 {
    if cluster.kind == StoreKind::Postgres {
        use sqlx::Connection as _;
        let mut connection = sqlx::PgConnection::connect(&cluster.url).await.unwrap();
        let read = "SELECT extract(epoch FROM clock_timestamp() - pg_catalog.clock_timestamp())::bigint";
        return sqlx::query_scalar(read).fetch_one(&mut connection).await.unwrap();
    }
    // A lease's id begins with the milliseconds of its server's wall clock.
    let number = cluster.history.calls.len();
    let (_, answer) = cluster.probe(&format!("clock:{number}")).await;
    let RecordedAnswer::Granted { lease, .. } = answer else {
        return 0;
    };
    let shown_ms = i64::from_str_radix(&lease.replace('-', "")[..12], 16).unwrap();
    let file = cluster.folder.path().join("now");
    // The writer of the file sets the machine's time.
    std::fs::write(&file, "").unwrap();
    let ours: chrono::DateTime<chrono::Utc> = std::fs::metadata(&file).unwrap().modified().unwrap().into();
    (shown_ms - ours.timestamp_millis()) / 1_000
}
