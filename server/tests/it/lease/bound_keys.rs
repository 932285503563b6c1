//! Idempotency keys in batches: new keys are inserted without being looked up, so a batch that contains a bound one has
//! to be decided again, on what is stored.

use ::lease::LeasePrincipal;
use ::lease::operation::{AcquireMode, AcquireOp, IdempotencyKey, KeyName, Operation, OperationResult};
use ::lease::store::{Lane, Store};
use domain::lease::{LeaseId, Metadata, Scope, Ttl};
use domain::names::{OwnerId, Resource};

use super::lease_server::{LeaseStore, StoreKind, on_both_stores};
use super::model::RETENTION;
use super::reaper::open;
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
    let store = open(lease_store).await;
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
    let store = open(lease_store).await;
    leases(&*store, &[acquire(1, "a", "f"), acquire(2, "b", "f")]).await;
    let release = Operation::Release {
        lease: lease_id(1),
        principal: LeasePrincipal::new("t"),
        scope: Scope::everything(),
        unbind: None,
    };
    store.apply(Lane::Main, &[release]).await.unwrap();
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
