//! Several servers that write events to one store.

use std::time::Duration;

use ::lease::{Acquired, LeaseCaller, LeasePrincipal};
use domain::lease::Scope;
use runtime::db::Db;

use super::recorder::{HistoryStore, Server};
use super::rollups::acquire;
use testkit::eventually;

#[tokio::test]
async fn events_of_several_servers_commit_in_order_of_ids() {
    // The leader's transaction, which has an id, is open when another server has an event: that one waits. Otherwise a
    // reader would continue after its id, and never read those of the leader.
    let home = HistoryStore::postgres().await;
    home.sql("UPDATE history_writer SET fencing_token = 1000000")
        .await;
    let server = Server::start(&home).await;
    let Db::Postgres(pool) = home.db().await else {
        panic!("a store on Postgres");
    };
    let mut leader = pool.begin().await.unwrap();
    for statement in [
        "SET LOCAL idle_in_transaction_session_timeout = 0",
        "UPDATE history_writer SET last_write_at = 1",
        "INSERT INTO lock_events (at, kind, backend, source, resource) VALUES (1, 'acquired', 'cache', 'key', 'r')",
    ] {
        sqlx::query(statement).execute(&mut *leader).await.unwrap();
    }
    let Acquired::Granted { lease, .. } = acquire(&server, "a", Duration::ZERO).await else {
        panic!("it is free");
    };
    let release = async {
        eventually("b is queued", async || server.leases.waiters() == 1).await;
        let caller = LeaseCaller {
            principal: LeasePrincipal::new("test"),
            scope: Scope::everything(),
        };
        server.leases.release(&caller, lease.id).await.unwrap();
    };
    let (granted, ()) = tokio::join!(acquire(&server, "b", Duration::from_secs(30)), release);
    assert!(matches!(granted, Acquired::Granted { .. }));
    let waiting = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%history_writer%'";
    eventually("the other server waits", async || home.number(waiting).await > 0).await;
    assert_eq!(home.count().await, 0);
    leader.commit().await.unwrap();
    server.written(&home, 2).await;
    let in_order = "SELECT count(*) FROM lock_events a JOIN lock_events b ON a.id < b.id
        WHERE a.kind = 'acquired' AND b.kind = 'granted_after_wait'";
    assert_eq!(home.number(in_order).await, 1);
    server.stopped().await;
}
