//! An SQLite store whose counters wait to be written: in the store that a kill leaves, and for readers meanwhile.

use std::time::Duration;

use ::lease::LeasePrincipal;
use ::lease::operation::{AcquireMode, AcquireOp, Operation, OperationResult};
use ::lease::store::sqlite::{SqliteStore, inspect_store};
use ::lease::store::{Lane, LeaseRetention, Store as _};
use domain::lease::{LeaseId, Metadata, Scope, Ttl};
use domain::names::{OwnerId, Resource};
use runtime::clock::Clock;
use sqlx::{Connection as _, Executor as _, SqliteConnection};
use testkit::eventually;

use super::lease_server::{LeaseStore, StoreKind};

fn lease_id(number: u8) -> LeaseId {
    LeaseId::from_parts(1_700_000_000_000 + i64::from(number), [number; 10])
}

fn resource() -> Resource {
    Resource::from("r")
}

fn acquire(number: u8) -> Operation {
    Operation::Acquire(Box::new(AcquireOp {
        resource: resource(),
        id: lease_id(number),
        owner: OwnerId::new("o"),
        issuer: "t".into(),
        ttl: Ttl::parse(60, 3_600).unwrap(),
        metadata: Metadata::default(),
        key: None,
        mode: AcquireMode::Once,
    }))
}

fn release(number: u8) -> Operation {
    Operation::Release {
        lease: lease_id(number),
        principal: LeasePrincipal::new("t"),
        scope: Scope::everything(),
        unbind: None,
    }
}

async fn open(store: &LeaseStore) -> SqliteStore {
    let path = store.url.strip_prefix("sqlite:").unwrap();
    SqliteStore::open(path.as_ref(), Clock::start()).await.unwrap()
}

/// Token of the grant.
async fn granted(store: &SqliteStore, number: u8) -> u64 {
    let applied = store.apply(Lane::Main, &[acquire(number)]).await.unwrap();
    match &applied.done[0] {
        OperationResult::Acquired { lease, .. } => lease.token.number(),
        other => panic!("{other:?}"),
    }
}

async fn released(store: &SqliteStore, number: u8) {
    let applied = store.apply(Lane::Main, &[release(number)]).await.unwrap();
    assert!(
        matches!(applied.done[0], OperationResult::Released(_)),
        "{applied:?}"
    );
}

/// Two grants, of which the counter of the second waits: no batch follows that would write it.
async fn with_a_waiting_counter(store: &LeaseStore) -> SqliteStore {
    let opened = open(store).await;
    assert_eq!(granted(&opened, 1).await, 1);
    released(&opened, 1).await;
    assert_eq!(granted(&opened, 2).await, 2);
    assert_eq!(written_token(store).await, 1);
    opened
}

async fn connect(store: &LeaseStore) -> SqliteConnection {
    SqliteConnection::connect(&store.url).await.unwrap()
}

async fn written_token(store: &LeaseStore) -> i64 {
    let read = sqlx::query_scalar("SELECT last_token FROM resource_tokens");
    read.fetch_one(&mut connect(store).await).await.unwrap()
}

async fn unwritten_from(store: &LeaseStore) -> Option<String> {
    let read = sqlx::query_scalar("SELECT unwritten_from FROM store_meta");
    read.fetch_one(&mut connect(store).await).await.unwrap()
}

/// What a kill leaves of an open store: its file and its log.
async fn copy(store: &LeaseStore) -> LeaseStore {
    let copied = LeaseStore::new(StoreKind::Sqlite).await;
    for file in std::fs::read_dir(store.folder.path()).unwrap() {
        let file = file.unwrap();
        if !file.file_name().to_str().unwrap().ends_with("-shm") {
            std::fs::copy(file.path(), copied.folder.path().join(file.file_name())).unwrap();
        }
    }
    copied
}

#[tokio::test]
async fn a_counter_not_written_before_a_kill_is_restored() {
    // Trap 5: no answered token comes again, also if its lease was released after it.
    let store = LeaseStore::new(StoreKind::Sqlite).await;
    let running = with_a_waiting_counter(&store).await;
    let held = copy(&store).await;
    released(&running, 2).await;
    let free = copy(&store).await;
    running.close().await;
    for (killed, is_held) in [(held, true), (free, false)] {
        let path = killed.folder.path().join("leases.db");
        let inspected = inspect_store(&mut connect(&killed).await, &path).await.unwrap();
        assert_eq!(inspected.rewound, None);
        let opened = open(&killed).await;
        assert_eq!(written_token(&killed).await, 2);
        let read = opened.resource(&resource()).await.unwrap().value.state;
        assert_eq!(read.lease.unwrap().ending.is_none(), is_held);
        if is_held {
            released(&opened, 2).await;
        }
        assert_eq!(granted(&opened, 3).await, 3);
        opened.close().await;
    }
}

#[tokio::test]
async fn readers_know_a_counter_that_is_not_written() {
    let store = LeaseStore::new(StoreKind::Sqlite).await;
    let running = with_a_waiting_counter(&store).await;
    let read = async || running.resource(&resource()).await.unwrap().value.state;
    let state = read().await;
    assert_eq!(
        (state.last_token.number(), state.lease.unwrap().id),
        (2, lease_id(2))
    );
    released(&running, 2).await;
    assert!(read().await.lease.unwrap().ending.is_some());
    // After a failed batch as well, when the counters in memory may not be all.
    let mut blocker = connect(&store).await;
    blocker
        .execute("BEGIN IMMEDIATE; UPDATE store_meta SET epoch = epoch")
        .await
        .unwrap();
    assert!(running.apply(Lane::Main, &[acquire(3)]).await.is_err());
    let state = read().await;
    assert_eq!(
        (state.last_token.number(), state.lease.unwrap().id),
        (2, lease_id(2))
    );
    blocker.execute("COMMIT").await.unwrap();
    assert_eq!(granted(&running, 3).await, 3);
    running.close().await;
    // A closed store has them all.
    assert_eq!(written_token(&store).await, 3);
    assert_eq!(unwritten_from(&store).await, None);
}

#[tokio::test]
async fn a_batch_that_reads_writes_the_counters_first() {
    // A lease that is not the newest of its resource is read from the file, with the state of its resource.
    let store = LeaseStore::new(StoreKind::Sqlite).await;
    let running = with_a_waiting_counter(&store).await;
    let applied = running.apply(Lane::Main, &[release(1)]).await.unwrap();
    assert!(
        !matches!(applied.done[0], OperationResult::NotFound),
        "{applied:?}"
    );
    assert_eq!(written_token(&store).await, 2);
    released(&running, 2).await;
    assert_eq!(granted(&running, 3).await, 3);
    running.close().await;
}

#[tokio::test]
async fn the_counter_of_two_grants_in_one_batch_is_written() {
    // Otherwise the first one's lease would be before `unwritten_from`, and doctor would report a rewound store.
    let store = LeaseStore::new(StoreKind::Sqlite).await;
    let running = open(&store).await;
    assert_eq!(granted(&running, 1).await, 1);
    let batch = [release(1), acquire(2), release(2), acquire(3)];
    let applied = running.apply(Lane::Main, &batch).await.unwrap();
    assert!(
        matches!(&applied.done[3], OperationResult::Acquired { lease, .. } if lease.token.number() == 3),
        "{applied:?}"
    );
    let path = store.folder.path().join("leases.db");
    let inspected = inspect_store(&mut connect(&store).await, &path).await.unwrap();
    assert_eq!(inspected.rewound, None);
    assert_eq!(written_token(&store).await, 3);
    running.close().await;
}

#[tokio::test]
async fn an_idle_store_writes_its_counters() {
    let retention = LeaseRetention {
        released: Duration::from_hours(1),
        ended: Duration::from_hours(1),
        lifetime_max: Duration::from_hours(1),
    };
    let store = LeaseStore::new(StoreKind::Sqlite).await;
    let running = with_a_waiting_counter(&store).await;
    assert_eq!(unwritten_from(&store).await, Some(lease_id(2).to_string()));
    eventually("the counter is written", async || {
        running.run_maintenance(&retention).await.unwrap();
        written_token(&store).await == 2
    })
    .await;
    assert_eq!(unwritten_from(&store).await, None);
    released(&running, 2).await;
    assert_eq!(granted(&running, 3).await, 3);
    running.close().await;
}
