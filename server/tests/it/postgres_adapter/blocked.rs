//! Sessions blocked on rows and tables.

use ::backends::Backend;
use ::backends::postgres::PostgresBackend;
use ::config::postgres::LeaseTablePreset;
use ::testkit::{Postgres, PostgresOptions, Throwaway};
use domain::blockers::Blocker;
use domain::observation::ObservedCondition;
use runtime::clock::Clock;
use sqlx::PgConnection;
use tokio::task::JoinHandle;

use super::watched_postgres::*;
use testkit::eventually;

fn count(trees: &[Blocker]) -> usize {
    trees.iter().map(|node| 1 + count(&node.blocks)).sum()
}

async fn until_waiting(backend: &PostgresBackend, resource: &str, count: u32) {
    eventually("as many wait as should", || async {
        let observed = observe(backend).await;
        let lock = observed.locks.get(&("relation".to_owned(), resource.to_owned()));
        lock.is_some_and(|lock| lock.waiter_count.known() == Some(&count))
    })
    .await;
}

const ORDERS: &str = "relation:postgres:shop.orders";

/// `billing` holds a row; `one` waits for its transaction, `two` behind it for the row, `three` for the whole table.
struct Chain {
    _server: Postgres,
    backend: PostgresBackend,
    root: PgConnection,
    root_pid: i32,
    waiting: Vec<JoinHandle<()>>,
}

async fn chain() -> Chain {
    let server = server().await;
    let url = server.superuser_url();
    let mut root = named_user(&url, "billing").await;
    run(
        &mut root,
        "CREATE SCHEMA shop; CREATE TABLE shop.orders (id int PRIMARY KEY, n int)",
    )
    .await;
    run(&mut root, "INSERT INTO shop.orders VALUES (1, 0), (2, 0)").await;
    let root_pid = pid(&mut root).await;
    run(&mut root, "BEGIN; UPDATE shop.orders SET n = 1 WHERE id = 1").await;
    let backend = backend(&url, Vec::new());
    let update = "UPDATE shop.orders SET n = 2 WHERE id = 1";
    let steps = [
        ("one", update),
        ("two", update),
        ("three", "ALTER TABLE shop.orders ADD COLUMN note text"),
    ];
    let mut waiting = Vec::new();
    for ((name, sql), count) in steps.into_iter().zip(1..) {
        waiting.push(later(named_user(&url, name).await, sql));
        until_waiting(&backend, ORDERS, count).await;
    }
    Chain {
        _server: server,
        backend,
        root,
        root_pid,
        waiting,
    }
}

#[tokio::test]
async fn a_chain_of_row_waits_is_one_lock_of_its_root() {
    // The first waits for a transaction, the second for a tuple, the third for the table: all for one relation.
    let mut chain = chain().await;
    let (source, resource) = id("relation", ORDERS);
    let detail = chain.backend.inspect(&source, &resource).await.unwrap();
    let lock = detail.lock.unwrap();
    assert_eq!(
        lock.owner.known().unwrap().as_str(),
        format!("billing#{}", chain.root_pid)
    );
    assert!(
        lock.acquired_at
            .why()
            .unwrap()
            .contains("its transaction began at xact_start"),
        "{lock:?}"
    );
    let generation = lock.generation.known().unwrap().as_str();
    assert!(
        generation.starts_with(&format!("pid:{}@", chain.root_pid)),
        "{generation}"
    );
    let name = |owner: &str| owner.split('#').next().unwrap().to_owned();
    let order: Vec<String> = detail
        .waiters
        .iter()
        .map(|waiter| name(waiter.owner_id.as_str()))
        .collect();
    assert_eq!(order, ["one", "two", "three"]);
    let session = detail.session.unwrap();
    assert_eq!(
        (session.pid, session.state.as_str()),
        (chain.root_pid, "idle in transaction")
    );
    let related = detail.related_locks;
    assert!(
        related.contains(&"RowExclusiveLock on shop.orders".to_owned()),
        "{related:?}"
    );

    run(&mut chain.root, "COMMIT").await;
    for task in chain.waiting {
        task.await.unwrap();
    }
    assert!(observe(&chain.backend).await.names_in("relation").is_empty());
    assert_eq!(
        chain.backend.inspect(&source, &resource).await.unwrap().lock,
        None
    );
}

#[tokio::test]
async fn the_tree_of_a_chain_shows_query_lock_and_wait() {
    // One root with four sessions in all; the second waits below the first.
    let chain = chain().await;
    let (source, resource) = id("relation", ORDERS);
    let blockers = chain.backend.inspect(&source, &resource).await.unwrap().blockers;
    assert_eq!((blockers.len(), count(&blockers)), (1, 4), "{blockers:#?}");
    let top = &blockers[0];
    assert_eq!((top.pid, top.waited_ms), (Some(chain.root_pid), None));
    assert!(
        top.doing
            .starts_with("idle in transaction: BEGIN; UPDATE shop.orders SET n = ? WHERE id = ?"),
        "{top:?}"
    );
    assert!(top.holds.contains("ExclusiveLock on transaction"), "{top:?}");
    let below = |node: &Blocker, name: &str| {
        node.blocks
            .iter()
            .find(|node| node.owner_id.starts_with(name))
            .cloned()
    };
    let one = below(top, "one#").unwrap();
    assert!(
        one.holds.starts_with("waits for ShareLock on transaction"),
        "{one:?}"
    );
    assert!(
        one.waited_ms.is_some() && one.doing.starts_with("active: UPDATE"),
        "{one:?}"
    );
    let two = below(&one, "two#").unwrap();
    assert_eq!(two.holds, "waits for ExclusiveLock on a tuple of shop.orders");
    for task in chain.waiting {
        task.abort();
    }
}

#[tokio::test]
async fn a_deadlock_not_yet_broken_has_its_smallest_process_as_root() {
    // Two sessions wait for each other's row; the server looks for deadlocks only after a minute.
    let settings = vec![("deadlock_timeout".to_owned(), "60s".to_owned())];
    let options = PostgresOptions {
        fast: true,
        settings,
        ..Default::default()
    };
    let server = Throwaway::postgres(options).await.unwrap();
    let url = server.superuser_url();
    let (mut one, mut two) = (user(&url).await, user(&url).await);
    run(&mut one, "CREATE TABLE t (id int, n int)").await;
    run(&mut one, "INSERT INTO t VALUES (1, 0), (2, 0)").await;
    let smallest = pid(&mut one).await.min(pid(&mut two).await);
    run(&mut one, "BEGIN; UPDATE t SET n = 1 WHERE id = 1").await;
    run(&mut two, "BEGIN; UPDATE t SET n = 2 WHERE id = 2").await;
    let waiting = [
        later(one, "UPDATE t SET n = 1 WHERE id = 2"),
        later(two, "UPDATE t SET n = 2 WHERE id = 1"),
    ];
    let backend = backend(&url, Vec::new());
    until_waiting(&backend, "relation:postgres:public.t", 2).await;
    let (source, resource) = id("relation", "relation:postgres:public.t");
    let detail = backend.inspect(&source, &resource).await.unwrap();
    let lock = detail.lock.unwrap();
    assert_eq!(
        lock.owner.known().unwrap().as_str(),
        format!("session#{smallest}")
    );
    assert_eq!(
        (detail.blockers.len(), count(&detail.blockers)),
        (1, 2),
        "{:#?}",
        detail.blockers
    );
    assert_eq!(detail.blockers[0].pid, Some(smallest));
    for task in waiting {
        task.abort();
    }
}

#[tokio::test]
async fn unique_conflicts_and_other_databases_are_named() {
    // An insert that waits for another insert has no tuple lock; in another database a table is known by its oid.
    let server = server().await;
    let url = server.superuser_url();
    let mut holder = user(&url).await;
    run(&mut holder, "CREATE DATABASE far").await;
    run(&mut holder, "CREATE TABLE jobs (name text PRIMARY KEY)").await;
    run(&mut holder, "BEGIN; INSERT INTO jobs VALUES ('a')").await;
    let waiter = later(
        user(&url).await,
        "INSERT INTO jobs VALUES ('a') ON CONFLICT DO NOTHING",
    );
    let far_url = server.superuser_url_to("far");
    let mut far = user(&far_url).await;
    run(&mut far, "CREATE TABLE t (n int)").await;
    run(&mut far, "BEGIN; LOCK TABLE t").await;
    let far_oid: i64 = sqlx::query_scalar("SELECT 't'::regclass::oid::int8")
        .fetch_one(&mut far)
        .await
        .unwrap();
    let far_waiter = later(user(&far_url).await, "SELECT * FROM t");
    let backend = backend(&url, Vec::new());
    until_waiting(&backend, "relation:postgres:public.jobs", 1).await;
    until_waiting(&backend, &format!("relation:far:oid {far_oid}"), 1).await;
    run(&mut holder, "ROLLBACK").await;
    run(&mut far, "ROLLBACK").await;
    waiter.await.unwrap();
    far_waiter.await.unwrap();
}

#[tokio::test]
async fn a_prepared_transaction_that_blocks_a_row_is_orphaned() {
    // pg_blocking_pids reports 0 for it: the transaction id identifies it.
    let server = server().await;
    let url = server.superuser_url();
    let mut holder = user(&url).await;
    run(&mut holder, "CREATE TABLE t (n int); INSERT INTO t VALUES (1)").await;
    run(
        &mut holder,
        "BEGIN; UPDATE t SET n = 2; PREPARE TRANSACTION 'half done'",
    )
    .await;
    let waiter = later(user(&url).await, "UPDATE t SET n = 3");
    let backend = backend(&url, Vec::new());
    until_waiting(&backend, "relation:postgres:public.t", 1).await;
    let (source, resource) = id("relation", "relation:postgres:public.t");
    let detail = backend.inspect(&source, &resource).await.unwrap();
    let lock = detail.lock.unwrap();
    assert_eq!(lock.owner.known().unwrap().as_str(), "prepared#half done");
    assert!(
        matches!(lock.condition, Some(ObservedCondition::Orphaned { .. })),
        "{lock:?}"
    );
    assert!(
        detail.blockers[0]
            .holds
            .starts_with("ExclusiveLock on transaction"),
        "{:?}",
        detail.blockers
    );
    run(&mut holder, "COMMIT PREPARED 'half done'").await;
    waiter.await.unwrap();
}

#[tokio::test]
async fn a_table_under_access_exclusive_fails_alone() {
    // Another session locks the lease table; our query times out soon, names it, is not listed itself, and later scans
    // work.
    let server = server().await;
    let url = server.superuser_url();
    let mut user = named_user(&url, "migrator").await;
    run(&mut user, COMMON).await;
    run(&mut user, "CREATE TABLE shedlock (name text, lock_until timestamp, locked_at timestamp, locked_by text);
        INSERT INTO shedlock VALUES ('job', timezone('utc', now()) + interval '1 h', timezone('utc', now()), 'h')").await;
    let shedlock = lease_table("shedlock", LeaseTablePreset::Shedlock, &[]);
    let backend = backend(&url, vec![common("distributed_locks"), shedlock]);
    observe(&backend).await;
    run(
        &mut user,
        "BEGIN; LOCK TABLE distributed_locks IN ACCESS EXCLUSIVE MODE",
    )
    .await;
    let holder = pid(&mut user).await;
    let clock = Clock::start();
    let (observed, again) = tokio::join!(observe(&backend), observe(&backend));
    assert!(clock.tick().0 < 3_000, "{:?}", clock.tick());
    let fault = observed.fault("table:public.distributed_locks");
    assert_eq!(
        fault,
        format!("table public.distributed_locks is blocked by pid {holder} (migrator)")
    );
    assert_eq!(observed.names_in("table:public.shedlock"), ["job"]);
    assert!(observed.source("table:public.shedlock").fault.is_none());
    // While one pass waits for the table, the other must not show it as a blocked session.
    assert!(
        observed.names_in("relation").is_empty() && again.names_in("relation").is_empty(),
        "{:?}",
        again.names_in("relation")
    );
    let (source, resource) = id("table:public.distributed_locks", "x");
    let refused = backend.inspect(&source, &resource).await.unwrap_err();
    assert!(
        refused.to_string().contains(&format!("blocked by pid {holder}")),
        "{refused}"
    );
    run(&mut user, "COMMIT").await;
    assert!(
        observe(&backend)
            .await
            .source("table:public.distributed_locks")
            .fault
            .is_none()
    );
}
