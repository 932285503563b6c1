//! Idempotency keys in batches: new keys are inserted without being looked up, so a batch that contains a bound one has
//! to be decided again, on what is stored.

use ::lease::LeasePrincipal;
use ::lease::operation::{AcquireMode, AcquireOp, IdempotencyKey, KeyName, Operation, OperationResult};
use ::lease::store::{Lane, PruneProgress, Store};
use domain::lease::{LeaseId, Metadata, Scope, Ttl};
use domain::names::{OwnerId, Resource};
use runtime::clock::Clock;

use super::lease_server::{LeaseStore, StoreKind, on_both_stores, on_stores};
use super::model::RETENTION;
use super::retention::count;

fn lease_id(number: u8) -> LeaseId {
    LeaseId::from_parts(1_700_000_000_000, [number; 10])
}

/// An acquire of the resource that is named as its key.
fn acquire(number: u8, key: &str, fingerprint: &str) -> Operation {
    Operation::Acquire(Box::new(AcquireOp {
        resource: Resource::from(key),
        id: lease_id(number),
        owner: OwnerId::new("o"),
        issuer: "t".into(),
        ttl: Ttl::parse(60, 3_600).unwrap(),
        metadata: Metadata::default(),
        key: Some(IdempotencyKey {
            name: KeyName {
                issuer: "t".into(),
                key: key.into(),
            },
            fingerprint: fingerprint.into(),
        }),
        mode: AcquireMode::Once,
    }))
}

/// The lease that each operation gets, and whether it is an earlier one; `None` for a key of another request.
async fn leases(store: &dyn Store, operations: &[Operation]) -> Vec<Option<(LeaseId, bool)>> {
    let applied = store.apply(Lane::Main, operations).await.unwrap();
    let results = applied.done.into_iter().map(|done| match done {
        OperationResult::Acquired { lease, replayed, .. } => Some((lease.id, replayed)),
        OperationResult::KeyReused => None,
        other => panic!("{other:?}"),
    });
    results.collect()
}

on_both_stores!(a_bound_key_is_found_between_new_ones, |lease_store| {
    let store = lease_store.open(&Clock::start()).await;
    let granted = |number| Some((lease_id(number), false));
    let replayed = |number| Some((lease_id(number), true));
    assert_eq!(leases(&*store, &[acquire(1, "a", "f")]).await, [granted(1)]);
    let replay = [acquire(2, "b", "f"), acquire(3, "a", "f"), acquire(4, "c", "f")];
    assert_eq!(
        leases(&*store, &replay).await,
        [granted(2), replayed(1), granted(4)]
    );
    let reuse = [acquire(5, "d", "f"), acquire(6, "a", "g")];
    assert_eq!(leases(&*store, &reuse).await, [granted(5), None]);
    // Twice in one batch.
    let twice = [acquire(7, "e", "f"), acquire(8, "e", "f"), acquire(9, "e", "g")];
    assert_eq!(leases(&*store, &twice).await, [granted(7), replayed(7), None]);
    // Each key is stored once, with the lease that it got, and so is each lease.
    let bound = "idempotency_keys k JOIN leases l ON l.lease_id = k.lease_id AND l.resource = k.key";
    assert_eq!(
        (
            count(lease_store, bound).await,
            count(lease_store, "leases").await
        ),
        (5, 5)
    );
    store.close().await;
});

on_both_stores!(a_key_past_its_window_is_bound_again, |lease_store| {
    let store = lease_store.open(&Clock::start()).await;
    leases(&*store, &[acquire(1, "a", "f"), acquire(2, "b", "f")]).await;
    store.apply(Lane::Main, &[release(1, None)]).await.unwrap();
    lease_store
        .sql("UPDATE idempotency_keys SET created_at = created_at - 600001")
        .await;
    // Also by another request.
    let again = leases(&*store, &[acquire(3, "a", "g")]).await;
    assert_eq!(again, [Some((lease_id(3), false))]);
    // It is the newest now: the one after it is deleted.
    store.run_maintenance(&RETENTION).await.unwrap();
    let keys = ["idempotency_keys", "idempotency_keys WHERE fingerprint = 'g'"];
    assert_eq!(
        (
            count(lease_store, keys[0]).await,
            count(lease_store, keys[1]).await
        ),
        (1, 1)
    );
    store.close().await;
});

/// An acquire of the resource `name`, with the key of that name, by a client that waits.
fn wait(number: u8, name: &str, mode: AcquireMode) -> Operation {
    let mut op = acquire(number, name, "f");
    if let Operation::Acquire(op) = &mut op {
        op.mode = mode;
    }
    op
}

/// An acquire without a key.
pub(super) fn hold(number: u8, name: &str) -> Operation {
    let mut op = acquire(number, name, "f");
    if let Operation::Acquire(op) = &mut op {
        op.key = None;
    }
    op
}

pub(super) fn release(number: u8, unbind: Option<&str>) -> Operation {
    Operation::Release {
        lease: lease_id(number),
        principal: LeasePrincipal::new("t"),
        scope: Scope::everything(),
        unbind: unbind.map(|key| KeyName {
            issuer: "t".into(),
            key: key.into(),
        }),
    }
}

/// Applies the operations as one batch, or each as one; then returns what a further retry gets.
async fn retried(
    store: &dyn Store,
    (number, name): (u8, &str),
    operations: &[Operation],
    batch_size: usize,
) -> (Vec<OperationResult>, LeaseId) {
    let waits = |mode| wait(number + 1, name, mode);
    let ready = [
        hold(number, name),
        waits(AcquireMode::OrWait),
        release(number, None),
        waits(AcquireMode::Waiting),
    ];
    store.send_heartbeat().await.unwrap();
    let granted = store.apply(Lane::Main, &ready).await.unwrap().done;
    assert!(
        matches!(granted[3], OperationResult::Acquired { replayed: false, .. }),
        "{granted:?}"
    );
    let mut results = Vec::new();
    for batch in operations.chunks(batch_size) {
        results.extend(store.apply(Lane::Main, batch).await.unwrap().done);
    }
    match &leases(store, &[wait(number + 3, name, AcquireMode::OrWait)]).await[..] {
        [Some((lease, true))] => (results, *lease),
        other => panic!("{other:?}"),
    }
}

// A waiter's client has disconnected when its lock is granted, so the lease is released and its key deleted. Meanwhile the client
// repeats its request.
on_stores!(
    a_retry_never_gets_a_lease_that_then_ends,
    |lease_store| {
        let store = lease_store.open(&Clock::start()).await;
        for (number, name, batch_size) in [(10, "a", 2), (20, "b", 1)] {
            let retry = wait(number + 2, name, AcquireMode::OrWait);
            let unclaimed = release(number + 1, Some(name));
            let (results, further) = retried(&*store, (number, name), &[retry, unclaimed], batch_size).await;
            let [OperationResult::Acquired { lease, replayed: true, .. }, OperationResult::Nothing] = &results[..] else {
                panic!("{results:?}");
            };
            assert_eq!([lease.id, further], [lease_id(number + 1); 2]);
        }
        for (number, name, batch_size) in [(30, "c", 2), (40, "d", 1)] {
            let retry = wait(number + 2, name, AcquireMode::OrWait);
            let unclaimed = release(number + 1, Some(name));
            let (results, further) = retried(&*store, (number, name), &[unclaimed, retry], batch_size).await;
            let [OperationResult::Released(_), OperationResult::Acquired { lease, replayed: false, .. }] = &results[..] else {
                panic!("{results:?}");
            };
            assert_eq!([lease.id, further], [lease_id(number + 2); 2]);
        }
        store.close().await;
    },
    on_sqlite: Sqlite,
    on_postgres: Postgres,
    on_etcd: Etcd
);

// The answer to a committed acquire was lost, and the store has decided the operation again.
on_stores!(
    an_operation_finds_its_own_earlier_grant,
    |lease_store| {
        let store = lease_store.open(&Clock::start()).await;
        store.send_heartbeat().await.unwrap();
        let granted = leases(&*store, &[hold(1, "a")]).await;
        assert_eq!(granted, [Some((lease_id(1), false))]);
        assert_eq!(leases(&*store, &[hold(1, "a")]).await, granted);
        let mut waiter = wait(1, "a", AcquireMode::Waiting);
        if let Operation::Acquire(op) = &mut waiter {
            op.key = None;
        }
        assert_eq!(leases(&*store, &[waiter]).await, granted);
        // Not once it has ended.
        store.apply(Lane::Main, &[release(1, None)]).await.unwrap();
        let done = store.apply(Lane::Main, &[hold(1, "a")]).await.unwrap().done;
        assert!(matches!(done[..], [OperationResult::Lost(..)]), "{done:?}");
        store.close().await;
    },
    on_sqlite: Sqlite,
    on_postgres: Postgres,
    on_etcd: Etcd
);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_store_deletes_its_keys_without_a_pause() {
    let lease_store = LeaseStore::new(StoreKind::Sqlite).await;
    let store = lease_store.open(&Clock::start()).await;
    lease_store
        .sql(
            "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 2000)
             INSERT INTO idempotency_keys (issuer, key, fingerprint, is_claimed, created_at) SELECT 't', n, 'f', 1, n FROM numbers",
        )
        .await;
    while store.run_maintenance(&RETENTION).await.unwrap() == PruneProgress::More {}
    assert_eq!(count(&lease_store, "idempotency_keys").await, 0);
    store.close().await;
}
