//! A cluster restored from a snapshot lacks the last commits: no token is issued twice.

use domain::lease::limits::EPOCH_STEP;

use super::*;

async fn snapshot(etcd: &EtcdCluster) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("snapshot.db");
    etcd.ctl(&[0], &["snapshot", "save", file.to_str().unwrap()])
        .await
        .unwrap();
    std::fs::read(file).unwrap()
}

async fn next_token(store: &EtcdStore, resource: &str) -> u64 {
    let lease = granted(store, resource).await;
    let released = apply(store, release(lease.id)).await.unwrap();
    assert!(matches!(released, OperationResult::Released(_)), "{released:?}");
    lease.token.number()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_replica_raises_the_epoch_of_a_restored_cluster() {
    let mut etcd = cluster(3, &[]).await;
    let store = open(&etcd).await;
    let before = next_token(&store, "r").await;
    let backup = snapshot(&etcd).await;
    // Its clock was written after the snapshot, as it is a few times a second.
    store.run_maintenance(&RETENTION).await.unwrap();
    let lost_token = next_token(&store, "r").await;
    assert_eq!((before, lost_token), (1, 2));
    etcd.restore(backup, options(&[])).await.unwrap();
    let after = next_token(&store, "r").await;
    assert!(after > EPOCH_STEP + before, "{after}");
    assert_eq!(next_token(&store, "r").await, after + 1, "raised once");
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_starting_replica_raises_the_epoch_of_a_restored_cluster() {
    // The snapshot lacks the second token.
    let mut etcd = cluster(1, &[]).await;
    let store = open(&etcd).await;
    assert_eq!(next_token(&store, "r").await, 1);
    let backup = snapshot(&etcd).await;
    assert_eq!(next_token(&store, "r").await, 2);
    store.close().await;
    etcd.restore(backup, options(&[])).await.unwrap();
    let report = super::super::inspect_store(&config(&etcd.addresses()), Clock::start())
        .await
        .unwrap();
    assert!(report.rewound.is_some(), "{report:?}");
    let store = open(&etcd).await;
    let token = next_token(&store, "r").await;
    assert!(token > EPOCH_STEP, "{token}");
    store.close().await;
    // Not raised again by the next start.
    let store = open(&etcd).await;
    assert_eq!(next_token(&store, "r").await, token + 1);
    store.close().await;
    let epoch = super::super::raise_epoch(&config(&etcd.addresses()), Clock::start())
        .await
        .unwrap();
    assert_eq!(epoch, 3);
    let store = open(&etcd).await;
    assert!(next_token(&store, "r").await > token + EPOCH_STEP);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_snapshot_restored_twice_raises_to_another_floor() {
    let mut etcd = cluster(1, &[]).await;
    let store = open(&etcd).await;
    assert_eq!(next_token(&store, "r").await, 1);
    let backup = snapshot(&etcd).await;
    store.close().await;
    let (mut known_floor, mut last) = (0, 1);
    for _ in 0..2 {
        etcd.restore(backup.clone(), options(&[])).await.unwrap();
        // As a server does that has recorded the floor in `store`.
        let known = LeaseStoreConfig {
            known_floor,
            ..config(&etcd.addresses())
        };
        let store = EtcdStore::open(&known, Clock::start()).await.unwrap();
        let token = next_token(&store, "r").await;
        assert!(token > last, "{token} after {last}");
        (known_floor, last) = (store.token_floor().unwrap(), token);
        store.close().await;
    }
    assert!(last > 2 * EPOCH_STEP, "{last}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_store_is_recovered_while_it_is_served() {
    // 250,000 resources, and 1,000 with the longest metadata: reading their tokens takes longer than an operation may.
    let mut etcd = cluster(1, &[]).await;
    let store = open(&etcd).await;
    let before = next_token(&store, "r").await;
    let mut metadata = std::collections::BTreeMap::new();
    metadata.insert("m".to_owned(), "x".repeat(4_000));
    let large = Operation::Acquire(Box::new(AcquireOp {
        metadata: Metadata::new(metadata, 4_096).unwrap(),
        ..acquire("large", AcquireMode::Once)
    }));
    apply(&store, large).await.unwrap();
    for (key, copy, count) in [
        (store.keys.free(&Resource::from("r")), "free", 250_000),
        (store.keys.held(&Resource::from("large")), "held", 1_000),
    ] {
        let found = store.readers.call(|mut client: etcd_client::Client| {
            let key = key.clone();
            async move { client.get(key, None).await }
        });
        let value = found.await.unwrap().kvs()[0].value().to_vec();
        let resource = |number| Resource::from(format!("{copy} {number}").as_str());
        let key = |number| match copy {
            "free" => store.keys.free(&resource(number)),
            _ => store.keys.held(&resource(number)),
        };
        put_all(&store, (0..count).map(|number| (key(number), value.clone()))).await;
    }
    let backup = snapshot(&etcd).await;
    // As the background tasks do: the registration has expired meanwhile.
    store.send_heartbeat().await.unwrap();
    store.run_maintenance(&RETENTION).await.unwrap();
    next_token(&store, "r").await;
    etcd.restore(backup, options(&[])).await.unwrap();
    for _ in 0..20 {
        let _registered = store.send_heartbeat().await;
        if store.run_maintenance(&RETENTION).await.is_ok() {
            break;
        }
    }
    let after = next_token(&store, "r").await;
    assert!(after > EPOCH_STEP + before, "{after}");
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_of_an_earlier_epoch_is_not_written() {
    // Made before the epoch was raised, and sent afterwards: its token may have been issued before the restore.
    let etcd = cluster(1, &[]).await;
    let store = open(&etcd).await;
    let decided = store.guard.basis();
    super::super::raise_epoch(&config(&etcd.addresses()), Clock::start())
        .await
        .unwrap();
    let adopted = store.run_maintenance(&RETENTION).await;
    assert!(adopted.is_ok() && !store.guard.is_current(decided), "{adopted:?}");
    for (basis, is_written) in [(decided, false), (store.guard.basis(), true)] {
        let txn = etcd_client::Txn::new().when(store.guard.compares(&store.keys, basis));
        let ran = store
            .readers
            .call(|client| super::super::identity::run(client, txn.clone()));
        assert_eq!(ran.await.unwrap().succeeded(), is_written);
    }
    store.close().await;
}
