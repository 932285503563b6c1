//! The expiry recorder only cleans up: it ends no live lease, however late it runs.

use ::lease::LeasePrincipal;
use ::lease::operation::{AcquireMode, AcquireOp, Operation, OperationResult};
use ::lease::store::{Lane, Store};
use domain::lease::{Metadata, Scope, Ttl};
use domain::names::{OwnerId, Resource};
use runtime::clock::Clock;

use super::lease_server::{LeaseStore, StoreKind, on_both_stores};
use testkit::eventually;

fn acquire(number: u8, ttl: i64) -> Operation {
    Operation::Acquire(Box::new(AcquireOp {
        resource: Resource::from("r"),
        id: domain::lease::LeaseId::from_parts(1_700_000_000_000, [number; 10]),
        owner: OwnerId::new("o"),
        issuer: "".into(),
        ttl: Ttl::parse(ttl, 3_600).unwrap(),
        metadata: Metadata::default(),
        key: None,
        mode: AcquireMode::Once,
    }))
}

fn renew(done: &OperationResult) -> Operation {
    let OperationResult::Acquired { lease, .. } = done else {
        panic!("{done:?}")
    };
    Operation::Renew {
        lease: lease.id,
        ttl: None,
        lifetime_ms_max: 60_000,
        principal: LeasePrincipal::new(""),
        scope: Scope::everything(),
    }
}

async fn one(store: &dyn Store, operation: Operation) -> OperationResult {
    let applied = store.apply(Lane::Main, &[operation]).await.unwrap();
    applied.done.into_iter().next().unwrap()
}

on_both_stores!(a_stalled_expiry_recorder_ends_no_live_lease, |lease_store| {
    // Trap 30: it finds an expired lease and stalls; meanwhile the next owner acquires and renews the lock.
    let store = lease_store.open(&Clock::start()).await;
    let expire = Operation::Expire {
        resource: Resource::from("r"),
    };
    let first = one(store.as_ref(), acquire(1, 1)).await;
    let found = || async { store.expired_leases(10).await.unwrap().value == [Resource::from("r")] };
    eventually("the expiry recorder finds it", found).await;
    let next = one(store.as_ref(), acquire(2, 30)).await;
    assert_eq!(
        one(store.as_ref(), expire.clone()).await,
        OperationResult::Nothing
    );
    assert!(matches!(
        one(store.as_ref(), renew(&next)).await,
        OperationResult::Renewed(_)
    ));
    assert_eq!(one(store.as_ref(), expire).await, OperationResult::Nothing);
    assert!(matches!(
        one(store.as_ref(), renew(&next)).await,
        OperationResult::Renewed(_)
    ));
    assert!(matches!(
        one(store.as_ref(), renew(&first)).await,
        OperationResult::Lost(..)
    ));
    assert_eq!(store.expired_leases(10).await.unwrap().value, []);
    store.close().await;
});
