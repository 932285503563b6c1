//! The store on real clusters: faults of members, restored snapshots, clocks, and refusals at start.

mod clocks;
mod faults;
mod queues;
mod refusals;
mod rejections;
mod restores;

use std::sync::Arc;
use std::time::Duration;

use ::config::{EtcdAddress, LeaseStoreConfig};
use domain::lease::{Lease, LeaseId, Metadata, Ttl};
use domain::names::{OwnerId, Resource};
use runtime::clock::Clock;
use runtime::random;
use testkit::{EtcdCluster, EtcdOptions, Throwaway};

use super::{EtcdStore, values};
use crate::operation::{AcquireMode, AcquireOp, Operation, OperationResult};
use crate::store::{Lane, LeaseRetention, Store, StoreError};

const TTL_SECONDS: i64 = 30;
const RETENTION: LeaseRetention = LeaseRetention {
    released: Duration::from_secs(3_600),
    ended: Duration::from_secs(3_600),
    lifetime_max: Duration::from_secs(3_600),
};

async fn cluster(members: usize, args: &[&str]) -> EtcdCluster {
    Throwaway::etcd_cluster(members, options(args)).await.unwrap()
}

fn options(args: &[&str]) -> EtcdOptions {
    EtcdOptions {
        fast: true,
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        ..EtcdOptions::default()
    }
}

fn config(addresses: &str) -> LeaseStoreConfig {
    let address = EtcdAddress::parse(&format!("etcd://{addresses}/leasehold/")).unwrap();
    LeaseStoreConfig::at(address)
}

async fn open(etcd: &EtcdCluster) -> EtcdStore {
    open_with(etcd, Clock::start()).await
}

async fn open_with(etcd: &EtcdCluster, clock: Clock) -> EtcdStore {
    EtcdStore::open(&config(&etcd.addresses()), clock).await.unwrap()
}

fn acquire(resource: &str, mode: AcquireMode) -> AcquireOp {
    AcquireOp {
        resource: Resource::from(resource),
        id: LeaseId::from_parts(1_700_000_000_000, random::bytes()),
        owner: OwnerId::new("o"),
        issuer: Arc::from("t"),
        ttl: Ttl::parse(TTL_SECONDS, 3_600).unwrap(),
        metadata: Metadata::default(),
        key: None,
        mode,
    }
}

/// One operation; fails with the store.
async fn apply(store: &EtcdStore, operation: Operation) -> Result<OperationResult, StoreError> {
    let applied = store.apply(Lane::Main, &[operation]).await?;
    Ok(applied.done.into_iter().next().unwrap())
}

async fn try_acquire(store: &EtcdStore, resource: &str) -> Result<OperationResult, StoreError> {
    let op = Box::new(acquire(resource, AcquireMode::Once));
    apply(store, Operation::Acquire(op)).await
}

/// Acquires, repeatedly while the store is not available.
async fn granted(store: &EtcdStore, resource: &str) -> Lease {
    for _ in 0..60 {
        match try_acquire(store, resource).await {
            Ok(OperationResult::Acquired { lease, .. }) => return lease,
            Ok(other) => panic!("{resource}: {other:?}"),
            // The outcome is unknown: if the lock was granted, the next attempt is refused and fails the test.
            Err(error) => eprintln!("{resource}: {error}"),
        }
    }
    panic!("{resource} was never granted");
}

fn renew(lease: LeaseId) -> Operation {
    Operation::Renew {
        lease,
        principal: crate::LeasePrincipal::new("t"),
        scope: domain::lease::Scope::everything(),
        ttl: None,
        lifetime_ms_max: 3_600_000,
    }
}

fn release(lease: LeaseId) -> Operation {
    Operation::Release {
        lease,
        principal: crate::LeasePrincipal::new("t"),
        scope: domain::lease::Scope::everything(),
        unbind: None,
    }
}

/// Writes keys directly.
async fn put_all(store: &EtcdStore, pairs: impl Iterator<Item = (Vec<u8>, Vec<u8>)>) {
    let puts: Vec<_> = pairs
        .map(|(key, value)| etcd_client::TxnOp::put(key, value, None))
        .collect();
    for puts in puts.chunks(128) {
        let txn = etcd_client::Txn::new().and_then(puts.to_vec());
        let put = store
            .readers
            .call(|client| super::identity::run(client, txn.clone()));
        put.await.unwrap();
    }
}
