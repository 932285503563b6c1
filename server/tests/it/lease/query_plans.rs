//! What the statements of a batch read, whatever the planner knew when it planned them.

use super::lease_server::{LeaseStore, StoreKind, is_granted};
use super::retention::count;
use testkit::eventually;

const PAIRS: usize = 200;
/// A few of each table; a scan of a whole index would read half of all leases each time.
const ROWS_READ_MAX: usize = 10 * PAIRS;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_made_while_the_tables_are_empty_reads_few_rows() {
    // Sessions plan once. Here at a time when the statistics say that each table is empty, as after the first autovacuum.
    let store = LeaseStore::new(StoreKind::Postgres).await;
    store.serve().await.close().await;
    store.sql_once("VACUUM ANALYZE").await;
    let server = store.serve().await;
    for number in 0..PAIRS {
        let lease = server.acquire(&format!("lock-{number}"), "w1", 600).await;
        assert!(is_granted(&lease), "{lease}");
        server.delete(&lease).await;
    }
    server.close().await;
    // A session writes its counts when it ends.
    let is_counted = format!("pg_stat_user_tables WHERE relname = 'leases' AND n_tup_upd >= {PAIRS}");
    eventually("the updates are counted", async || {
        count(&store, &is_counted).await == 1
    })
    .await;
    let is_read = format!(
        "pg_stat_user_tables WHERE relname = 'leases' AND idx_tup_fetch <= {ROWS_READ_MAX} AND seq_tup_read < {ROWS_READ_MAX}"
    );
    assert_eq!(count(&store, &is_read).await, 1, "a batch reads too many leases");
}
