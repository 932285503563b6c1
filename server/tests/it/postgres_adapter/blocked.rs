//! Sessions blocked on rows and tables.

use domain::observation::Condition;
use leasehold::backends::Backend;
use leasehold::backends::postgres::PostgresBackend;
use sqlx::PgConnection;
use tokio::task::JoinHandle;

use super::rig::*;
use crate::support::eventually::eventually;

fn start(mut session: PgConnection, sql: &'static str) -> JoinHandle<()> {
    tokio::spawn(async move { run(&mut session, sql).await })
}

async fn until_waiting(backend: &PostgresBackend, resource: &str, count: u32) {
    eventually("as many wait as should", || async {
        let seen = observe(backend).await;
        let lock = seen.locks.get(&("relation".to_owned(), resource.to_owned()));
        lock.is_some_and(|lock| lock.waiter_count.known() == Some(&count))
    })
    .await;
}

#[tokio::test]
async fn a_chain_of_row_waits_shows_its_root_and_its_tree() {
    // One holds a row; one waits for its transaction, one behind it for the row, and another for the whole table.
    let server = server().await;
    let url = server.superuser_url();
    let mut root = named_user(&url, "billing").await;
    run(&mut root, "CREATE SCHEMA shop; CREATE TABLE shop.orders (id int PRIMARY KEY, n int);
        INSERT INTO shop.orders VALUES (1, 0), (2, 0)").await;
    run(&mut root, "BEGIN; UPDATE shop.orders SET n = 1 WHERE id = 1").await;
    let root_pid = pid(&mut root).await;
    let backend = backend(&url, Vec::new());
    let resource = "relation:postgres:shop.orders";
    let update = "UPDATE shop.orders SET n = 2 WHERE id = 1";
    let one = start(named_user(&url, "one").await, update);
    until_waiting(&backend, resource, 1).await;
    let two = start(named_user(&url, "two").await, update);
    until_waiting(&backend, resource, 2).await;
    let three = start(named_user(&url, "three").await, "ALTER TABLE shop.orders ADD COLUMN note text");
    until_waiting(&backend, resource, 3).await;

    let (source, resource) = id("relation", resource);
    let detail = backend.inspect(&source, &resource).await.unwrap();
    let lock = detail.lock.unwrap();
    assert_eq!(lock.owner.known().unwrap().as_str(), format!("billing#{root_pid}"));
    assert!(lock.acquired_at.why().unwrap().contains("its transaction began at"), "{lock:?}");
    assert!(lock.generation.known().unwrap().as_str().starts_with(&format!("pid:{root_pid}@")));
    let order: Vec<&str> =
        detail.waiters.iter().map(|waiter| waiter.owner_id.as_str().split('#').next().unwrap()).collect();
    assert_eq!(order, ["one", "two", "three"]);
    assert_eq!(detail.blockers.len(), 1, "{:#?}", detail.blockers);
    let top = &detail.blockers[0];
    assert_eq!(top.pid, Some(root_pid));
    assert!(top.doing.starts_with("idle in transaction: BEGIN; UPDATE"), "{top:?}");
    assert!(top.holds.contains("ExclusiveLock on transaction"), "{top:?}");
    assert!(top.waited_ms.is_none());
    let below: Vec<_> = top.blocks.iter().map(|node| node.owner_id.split('#').next().unwrap()).collect();
    assert_eq!(below, ["one", "three"], "{top:#?}");
    assert!(top.blocks[0].blocks[0].owner_id.starts_with("two#"), "{top:#?}");
    assert!(top.blocks[0].holds.starts_with("waits for ShareLock on transaction"), "{top:#?}");
    let session = detail.session.unwrap();
    assert_eq!((session.pid, session.state.as_str()), (root_pid, "idle in transaction"));
    assert!(detail.shares_fate_with.iter().any(|fate| fate == "RowExclusiveLock on shop.orders"), "{:?}", detail.shares_fate_with);

    run(&mut root, "COMMIT").await;
    for task in [one, two, three] {
        task.await.unwrap();
    }
    assert!(observe(&backend).await.of("relation").is_empty());
    assert_eq!(backend.inspect(&source, &resource).await.unwrap().lock, None);
}

#[tokio::test]
async fn a_unique_conflict_and_other_databases_are_named_as_well_as_they_can_be() {
    // An insert that waits for another insert has no tuple lock; in another database a table is known by its oid.
    let server = server().await;
    let url = server.superuser_url();
    let mut holder = user(&url).await;
    run(&mut holder, "CREATE DATABASE far").await;
    run(&mut holder, "CREATE TABLE jobs (name text PRIMARY KEY)").await;
    run(&mut holder, "BEGIN; INSERT INTO jobs VALUES ('a')").await;
    let waiter = start(user(&url).await, "INSERT INTO jobs VALUES ('a') ON CONFLICT DO NOTHING");
    let far_url = server.superuser_url_to("far");
    let mut far = user(&far_url).await;
    run(&mut far, "CREATE TABLE t (n int); BEGIN; LOCK TABLE t").await;
    let far_oid: i64 = sqlx::query_scalar("SELECT 't'::regclass::oid::int8").fetch_one(&mut far).await.unwrap();
    let far_waiter = start(user(&far_url).await, "SELECT * FROM t");
    let backend = backend(&url, Vec::new());
    until_waiting(&backend, "relation:postgres:public.jobs", 1).await;
    until_waiting(&backend, &format!("relation:far:oid {far_oid}"), 1).await;
    run(&mut holder, "ROLLBACK").await;
    run(&mut far, "ROLLBACK").await;
    waiter.await.unwrap();
    far_waiter.await.unwrap();
}

#[tokio::test]
async fn a_prepared_transaction_that_blocks_a_row_is_a_holder_that_is_gone() {
    // pg_blocking_pids says 0 for it: the transaction id leads to its name.
    let server = server().await;
    let url = server.superuser_url();
    let mut holder = user(&url).await;
    run(&mut holder, "CREATE TABLE t (n int); INSERT INTO t VALUES (1)").await;
    run(&mut holder, "BEGIN; UPDATE t SET n = 2; PREPARE TRANSACTION 'half done'").await;
    let waiter = start(user(&url).await, "UPDATE t SET n = 3");
    let backend = backend(&url, Vec::new());
    until_waiting(&backend, "relation:postgres:public.t", 1).await;
    let (source, resource) = id("relation", "relation:postgres:public.t");
    let detail = backend.inspect(&source, &resource).await.unwrap();
    let lock = detail.lock.unwrap();
    assert_eq!(lock.owner.known().unwrap().as_str(), "prepared#half done");
    assert!(matches!(lock.condition, Some(Condition::HolderGone { .. })), "{lock:?}");
    assert!(detail.blockers[0].holds.starts_with("ExclusiveLock on transaction"), "{:?}", detail.blockers);
    run(&mut holder, "COMMIT PREPARED 'half done'").await;
    waiter.await.unwrap();
}

#[tokio::test]
async fn a_table_under_access_exclusive_is_its_own_fault_and_the_rest_is_read() {
    // Another session holds the lease table; ours gives up soon, names it, is not listed, and goes on.
    let server = server().await;
    let url = server.superuser_url();
    let mut user = named_user(&url, "migrator").await;
    run(&mut user, COMMON).await;
    run(&mut user, "CREATE TABLE shedlock (name text, lock_until timestamp, locked_at timestamp, locked_by text);
        INSERT INTO shedlock VALUES ('job', timezone('utc', now()) + interval '1 h', timezone('utc', now()), 'h')").await;
    let shedlock = lease_table("shedlock", leasehold::config::postgres::LeaseTablePreset::Shedlock, &[]);
    let backend = backend(&url, vec![common("distributed_locks"), shedlock]);
    observe(&backend).await;
    run(&mut user, "BEGIN; LOCK TABLE distributed_locks IN ACCESS EXCLUSIVE MODE").await;
    let holder = pid(&mut user).await;
    let started = std::time::Instant::now();
    let (seen, again) = tokio::join!(observe(&backend), observe(&backend));
    assert!(started.elapsed() < std::time::Duration::from_secs(3), "{:?}", started.elapsed());
    let fault = seen.fault("table:public.distributed_locks");
    assert_eq!(fault, format!("table public.distributed_locks is blocked by pid {holder} (migrator)"));
    assert_eq!(seen.of("table:public.shedlock"), ["job"]);
    assert!(seen.source("table:public.shedlock").fault.is_none());
    // While one pass waits for the table, the other must not show it as a blocked session.
    assert!(seen.of("relation").is_empty() && again.of("relation").is_empty(), "{:?}", again.of("relation"));
    let (source, resource) = id("table:public.distributed_locks", "x");
    let refused = backend.inspect(&source, &resource).await.unwrap_err();
    assert!(refused.to_string().contains(&format!("blocked by pid {holder}")), "{refused}");
    run(&mut user, "COMMIT").await;
    assert!(observe(&backend).await.source("table:public.distributed_locks").fault.is_none());
}
