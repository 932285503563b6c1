//! Leases moved from an SQL store to etcd: no token repeats, holders keep their leases, and at no time can both stores grant.

use std::process::Stdio;

use ::lease::store::Lane;
use ::lease::{LeaseConfig, LeaseOpenError, LeaseService, MovedLeases, move_to_etcd, raise_epoch};
use axum::http::StatusCode;
use domain::names::Resource;
use runtime::clock::Clock;
use runtime::db::{Db, on_either};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio_util::sync::CancellationToken;

use super::idempotency_keys::{hold, release};
use super::lease_server::{LeaseStore, StoreKind, is_granted, lease_stores, on_both_stores, token};

/// More than are moved before the test kills the command.
const MANY: i64 = 30_000;
/// Fails a move that marks a Postgres store.
const NO_MARK: &str = "CREATE FUNCTION no_mark() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'marked'; END $$";

fn target(etcd: &LeaseStore) -> LeaseConfig {
    LeaseConfig {
        store: lease_stores(&etcd.url),
        ..LeaseConfig::default()
    }
}

async fn moved(from: &LeaseStore, to: &LeaseStore) -> Result<MovedLeases, LeaseOpenError> {
    Box::pin(move_to_etcd(&from.url, &target(to), Clock::start(), |_, _| {})).await
}

/// The id that the first command on this SQL store has made.
async fn installation(store: &LeaseStore) -> String {
    let select = "SELECT value FROM settings WHERE key = 'installation'";
    let db = Db::open_existing(&store.url).await.unwrap();
    let id = on_either!(&db, Db, |pool| sqlx::query_scalar(select)
        .fetch_one(pool)
        .await
        .unwrap());
    db.close().await;
    id
}

/// Why a server does not start.
async fn refused(url: &str, config: LeaseConfig) -> String {
    let opened = LeaseService::open(url, config, Clock::start(), CancellationToken::new()).await;
    format!("{:#}", anyhow::Error::from(opened.err().expect("it started")))
}

on_both_stores!(tokens_and_held_leases_are_moved_with_their_ids, |store| {
    let etcd = LeaseStore::new(StoreKind::Etcd).await;
    let server = store.serve().await;
    for _ in 0..3 {
        let lease = server.acquire("free", "o", 60).await;
        server.delete(&lease).await;
    }
    let held = server.acquire("held", "o", 600).await;
    let short = server.acquire("expires", "o", 1).await;
    server.close().await;
    let all = moved(store, &etcd).await.unwrap();
    assert_eq!((all.resources, all.held), (3, 2));

    let server = etcd.serve().await;
    assert!(!is_granted(&server.acquire("held", "other", 60).await));
    let (status, renewed) = server.renew(&held).await;
    assert_eq!(status, StatusCode::OK, "{renewed}");
    assert_eq!(token(&renewed), token(&held), "{renewed}");
    server.delete(&held).await;
    for (resource, last) in [("held", token(&held)), ("free", 3), ("expires", token(&short))] {
        // A lease that expired on the way is not held for longer.
        let next = server.acquire_waiting(resource, "next", 60, 5).await;
        assert_eq!(token(&next), last + 1, "{resource}: {next}");
    }
    server.close().await;

    let why = refused(&store.url, LeaseConfig::default()).await;
    assert!(
        why.contains(&etcd.url) && why.contains("Set lease.store"),
        "{why}"
    );
    let again = moved(store, &etcd).await.unwrap_err().to_string();
    assert!(
        again.contains("there is a lease store below /leasehold/ already"),
        "{again}"
    );
    // Undone: tokens are above all that the other store may have issued.
    raise_epoch(&store.url, &LeaseConfig::default(), None)
        .await
        .unwrap();
    let server = store.serve().await;
    let lease = server.acquire("free", "o", 60).await;
    assert!(token(&lease) > 1 << 32);
    // On Postgres the trigger of the move is still there, and refuses nothing.
    assert_eq!(server.renew(&lease).await.0, StatusCode::OK);
    assert_eq!(server.delete(&lease).await.0, StatusCode::OK);
    server.close().await;
});

on_both_stores!(leases_are_not_moved_while_a_server_runs, |store| {
    let etcd = LeaseStore::new(StoreKind::Etcd).await;
    let server = store.serve().await;
    if store.postgres.is_some() {
        // A mark would stop the grants of the server until the move is refused.
        for statement in [
            NO_MARK,
            "CREATE TRIGGER no_mark BEFORE UPDATE OF moved_to ON store_meta EXECUTE FUNCTION no_mark()",
        ] {
            store.sql(statement).await;
        }
    }
    let error = moved(store, &etcd).await.unwrap_err();
    assert!(
        matches!(error, LeaseOpenError::InUse { .. } | LeaseOpenError::Running),
        "{error}"
    );
    // It serves on, and starts again.
    assert!(is_granted(&server.acquire("r", "o", 60).await));
    server.close().await;
    store.serve().await.close().await;
    if store.postgres.is_some() {
        store.sql("DROP TRIGGER no_mark ON store_meta").await;
    }
    assert_eq!(moved(store, &etcd).await.unwrap().resources, 1);
});

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_killed_in_the_middle_is_served_by_neither() {
    let (lease_store, etcd) = (
        LeaseStore::new(StoreKind::Sqlite).await,
        LeaseStore::new(StoreKind::Etcd).await,
    );
    lease_store.serve().await.close().await;
    lease_store
        .sql(&format!(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {MANY})
         INSERT INTO resource_tokens (resource, last_token) SELECT 'r' || i, i FROM n"
        ))
        .await;
    let toml = format!(
        "listen = \"127.0.0.1:0\"\nstore = \"{}\"\n[lease]\nstore = \"{}\"\n",
        lease_store.url, etcd.url
    );
    let file = lease_store.folder.path().join("leasehold.toml");
    std::fs::write(&file, toml).unwrap();
    let command = || {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_leasehold"));
        command.args(["migrate", "--to", "etcd", "--config"]).arg(&file);
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    };
    let mut killed = command().spawn().unwrap();
    let mut lines = BufReader::new(killed.stderr.take().unwrap()).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        if line.contains("resources moved") {
            break;
        }
    }
    killed.kill().await.unwrap();

    let half = refused(&lease_store.url, target(&etcd)).await;
    assert!(
        half.contains("not all have arrived") && half.contains("migrate --to etcd"),
        "{half}"
    );
    let old = refused(&lease_store.url, LeaseConfig::default()).await;
    assert!(old.contains("repeat `leasehold migrate --to etcd`"), "{old}");

    let done = command().output().await.unwrap();
    let (out, errors) = (
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr),
    );
    assert!(done.status.success(), "{errors}");
    assert!(
        out.contains("Moved the fencing tokens of 30,000 resources"),
        "{out}"
    );
    let mut moved = target(&etcd);
    moved
        .store
        .as_mut()
        .unwrap()
        .set_installation(&installation(&lease_store).await);
    let server = etcd.serve_with(moved, None).await;
    for resource in [1, 7_777, MANY] {
        let next = server.acquire(&format!("r{resource}"), "o", 60).await;
        assert_eq!(token(&next), resource.unsigned_abs() + 1, "{next}");
    }
    server.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_raised_epoch_is_moved() {
    let (store, etcd) = (
        LeaseStore::new(StoreKind::Sqlite).await,
        LeaseStore::new(StoreKind::Etcd).await,
    );
    store.serve().await.close().await;
    raise_epoch(&store.url, &LeaseConfig::default(), None)
        .await
        .unwrap();
    moved(&store, &etcd).await.unwrap();
    let server = etcd.serve().await;
    // A resource that was never locked before.
    assert!(token(&server.acquire("new", "o", 60).await) > 1 << 32);
    server.close().await;
    let error = Box::pin(move_to_etcd(
        &store.url,
        &LeaseConfig::default(),
        Clock::start(),
        |_, _| {},
    ))
    .await;
    assert!(matches!(error, Err(LeaseOpenError::NoTarget)), "{error:?}");
    let shards = LeaseStore::new(StoreKind::EtcdShards).await;
    let error = moved(&store, &shards).await.unwrap_err();
    assert!(matches!(error, LeaseOpenError::SeveralTargets(2)), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_suspended_during_a_move_writes_nothing() {
    // It has opened the old store, its last heartbeat is older than those that the move waits for, and it continues afterwards.
    let (lease_store, etcd) = (
        LeaseStore::new(StoreKind::Postgres).await,
        LeaseStore::new(StoreKind::Etcd).await,
    );
    let suspended = lease_store.open(&Clock::start()).await;
    testkit::eventually("a lease is granted", async || {
        suspended.apply(Lane::Main, &[hold(1, "held")]).await.is_ok()
    })
    .await;
    lease_store
        .sql("UPDATE lease_replicas SET heartbeat_at = 0")
        .await;
    let all = moved(&lease_store, &etcd).await.unwrap();
    assert_eq!((all.resources, all.held), (1, 1));
    for operation in [release(1, None), hold(2, "free")] {
        let refused = suspended.apply(Lane::Main, &[operation]).await.unwrap_err();
        assert!(refused.to_string().contains("were moved"), "{refused}");
    }
    let held = suspended.resource(&Resource::from("held")).await.unwrap();
    let lease = held.value.state.lease.expect("its newest lease");
    assert_eq!(lease.ending, None);
    suspended.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_by_another_role_than_the_owner_is_refused() {
    // The role of a server in docs/deploy/postgres-roles.sql changes rows, and no table.
    let (lease_store, etcd) = (
        LeaseStore::new(StoreKind::Postgres).await,
        LeaseStore::new(StoreKind::Etcd).await,
    );
    lease_store.serve().await.close().await;
    for statement in [
        "CREATE ROLE leasehold LOGIN",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO leasehold",
    ] {
        lease_store.sql(statement).await;
    }
    let url = lease_store
        .postgres
        .as_ref()
        .unwrap()
        .url("leasehold", "postgres");
    let refused = Box::pin(move_to_etcd(&url, &target(&etcd), Clock::start(), |_, _| {})).await;
    assert!(matches!(refused, Err(LeaseOpenError::NotOwner)), "{refused:?}");
    // The store is not marked: a server starts on it.
    lease_store.serve().await.close().await;
}

#[tokio::test]
async fn a_server_that_starts_while_a_move_begins_is_refused() {
    // The store is marked as moved between the first check of the starting server and its heartbeat, by which the move
    // would have seen it; it leaves no heartbeat behind.
    let store = LeaseStore::new(StoreKind::Postgres).await;
    store.serve().await.close().await;
    store
        .sql(
            "CREATE FUNCTION move_begins() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN UPDATE store_meta SET moved_to = 'etcd://elsewhere'; RETURN NULL; END $$",
        )
        .await;
    store
        .sql(
            "CREATE TRIGGER move_begins AFTER INSERT ON lease_replicas FOR EACH ROW EXECUTE FUNCTION move_begins()",
        )
        .await;
    let why = refused(&store.url, LeaseConfig::default()).await;
    assert!(why.contains("moved to etcd://elsewhere"), "{why}");
    let db = Db::open_existing(&store.url).await.unwrap();
    let left: i64 = on_either!(&db, Db, |pool| sqlx::query_scalar(
        "SELECT count(*) FROM lease_replicas"
    )
    .fetch_one(pool)
    .await
    .unwrap());
    assert_eq!(left, 0);
    db.close().await;
}
