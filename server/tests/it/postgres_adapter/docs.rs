//! The SQL of docs/backends/postgres.md, run unchanged.

use ::backends::{Backend, Hints};
use ::config::postgres::LeaseTablePreset;
use domain::backend::WatchState;
use sqlx::{AssertSqlSafe, Executor};

use super::watched_postgres::*;

const PAGE: &str = include_str!("../../../../docs/backends/postgres.md");

/// The fenced SQL blocks of the page, in order.
fn blocks() -> Vec<&'static str> {
    PAGE.split("```sql\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect()
}

#[tokio::test]
async fn the_documented_role_can_watch_and_nothing_else() {
    // The grants run as superuser; then the role itself observes, and attempts forbidden statements.
    let server = server().await;
    let mut root = user(&server.superuser_url()).await;
    run(&mut root, "CREATE DATABASE orders").await;
    let orders = server.superuser_url_to("orders");
    let mut root = named_user(&orders, "billing").await;
    run(&mut root, COMMON).await;
    run(
        &mut root,
        "INSERT INTO distributed_locks (resource, owner_id) VALUES ('a', 'w'); SELECT pg_advisory_lock(1)",
    )
    .await;
    let [grants, _trigger, _unlock] = blocks().try_into().unwrap();
    run(&mut root, grants).await;
    let url = server.url("leasehold_watch", "orders");
    let backend = backend(&url, vec![common("public.distributed_locks")]);
    let observed = observe(&backend).await;
    assert!(
        observed
            .pass
            .sources
            .iter()
            .all(|source| source.coverage.is_complete()),
        "{:?}",
        observed.pass
    );
    assert_eq!(observed.locks.len(), 2);
    assert!(
        observed
            .lock("advisory", "advisory:orders:1")
            .generation
            .is_known()
    );
    for right in backend.probe().await.unwrap().rights {
        assert_eq!(right.allowed.known(), Some(&right.wanted), "{right:?}");
    }

    let victim = pid(&mut root).await;
    let mut watcher = user(&url).await;
    // The role's own setting is optional; without it the missing privileges must protect as well.
    run(&mut watcher, "SET default_transaction_read_only = off").await;
    let forbidden = [
        "INSERT INTO distributed_locks (resource) VALUES ('b')".to_owned(),
        "UPDATE distributed_locks SET owner_id = 'me'".to_owned(),
        "DELETE FROM distributed_locks".to_owned(),
        "TRUNCATE distributed_locks".to_owned(),
        "LOCK TABLE distributed_locks IN ACCESS EXCLUSIVE MODE".to_owned(),
        "SELECT * FROM distributed_locks FOR UPDATE".to_owned(),
        "ALTER TABLE distributed_locks ADD COLUMN x int".to_owned(),
        "DROP TABLE distributed_locks".to_owned(),
        "CREATE TABLE mine (n int)".to_owned(),
        "CREATE SCHEMA mine".to_owned(),
        "CREATE ROLE mine".to_owned(),
        format!("SELECT pg_terminate_backend({victim})"),
        format!("SELECT pg_cancel_backend({victim})"),
    ];
    for sql in forbidden {
        let refused = watcher
            .execute(AssertSqlSafe(format!("BEGIN; {sql}; COMMIT")))
            .await
            .unwrap_err();
        let code = refused.as_database_error().unwrap().code().unwrap().into_owned();
        assert_eq!(code, "42501", "{sql}: {refused}");
        run(&mut watcher, "ROLLBACK").await;
    }
    assert_eq!(pid(&mut root).await, victim);
}

#[tokio::test]
async fn the_documented_trigger_announces_each_change() {
    // Insert, update, a changed name, delete, a name too long for a payload; with the mapping that the page shows.
    let server = server().await;
    let mut root = user(&server.superuser_url()).await;
    run(&mut root, COMMON).await;
    let [_grants, trigger, _unlock] = blocks().try_into().unwrap();
    run(&mut root, trigger).await;
    let mut table = lease_table("public.distributed_locks", LeaseTablePreset::Common, &[]);
    table.notify = Some("leasehold_locks".to_owned());
    let backend = backend(&server.superuser_url(), vec![table]);
    let hints = Hints::default();
    let heard = async |what: &str, name: Option<&str>| {
        let wanted = name.map(|name| id("table:public.distributed_locks", name));
        let limit = std::time::Duration::from_secs(30);
        tokio::time::timeout(limit, async {
            loop {
                let pending = hints.take().await;
                if wanted
                    .as_ref()
                    .map_or(pending.relist, |wanted| pending.names.contains(wanted))
                {
                    return;
                }
            }
        })
        .await
        .unwrap_or_else(|_| panic!("not heard: {what}"));
    };
    let story = async {
        while hints.take().await.state != Some(WatchState::Live) {}
        run(&mut root, "INSERT INTO distributed_locks (resource) VALUES ('a')").await;
        heard("insert", Some("a")).await;
        run(&mut root, "UPDATE distributed_locks SET owner_id = 'w'").await;
        heard("update", Some("a")).await;
        run(&mut root, "UPDATE distributed_locks SET resource = 'b'").await;
        heard("rename", Some("b")).await;
        run(&mut root, "DELETE FROM distributed_locks").await;
        heard("delete", Some("b")).await;
        run(
            &mut root,
            "INSERT INTO distributed_locks (resource) VALUES (repeat('x', 2500) || repeat('ü', 4000))",
        )
        .await;
        heard("too long", None).await;
    };
    tokio::select! {
        () = backend.watch(hints.clone()) => panic!("the watch ended"),
        () = story => {}
    }
}
