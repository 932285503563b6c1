//! Leases in etcd, for any number of replicas: one transaction per resource, compared with the state that it was decided
//! on, and committed by a majority of the members before it is answered.
//!
//! The fencing token is a counter in the key of its resource, not an etcd revision: a revision is known only after the
//! commit, and goes back when a snapshot is restored. Expiry is judged by the clocks of the replicas (`store_clock`),
//! not by etcd leases, which have whole seconds and are extended by a change of leader.
//!
//! **Invariants**: reads are linearizable; a write compares the revisions of all that it replaces; no answer of a
//! restored cluster is used before the epoch is raised (`restore_guard`).

mod apply;
mod cache_updates;
mod clock_sync;
mod cluster;
mod commit;
mod connection;
mod error;
mod identity;
mod import;
mod keys;
mod lease_resources;
mod open;
mod prune;
mod reads;
mod rejections;
mod replica;
mod restore_guard;
mod snapshot;
mod state_cache;
mod store_clock;
mod transaction_plan;
mod values;
mod watch;
mod writes;

use std::collections::HashSet;
use std::sync::Arc;

use domain::backend::ClusterView;
use domain::lease::scope::NameRange;
use domain::lease::{Lease, LeaseId, StoreTime};
use domain::names::Resource;
use etcd_cluster::ClusterReader;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use runtime::clock::Clock;

use self::connection::{Link, with_timeout};
use self::keys::Keys;
use self::replica::Registration;
use self::restore_guard::Guard;
use self::state_cache::EtcdStateCache;
use self::store_clock::StoreClock;
use super::retention::{LeaseRetention, PruneCursors};
use super::{
    HeldRow, Lane, PruneProgress, Read, RejectionCount, RejectionQuery, RejectionRange, RejectionRow,
    ResourceView, StaleWrite, Store, StoreError, StoreFuture, StoreNotification,
};
use crate::operation::{Applied, Operation, QueueHead};

#[cfg(test)]
mod tests;

pub use cluster::EtcdReport;
pub(crate) use import::Import;
pub(crate) use open::{check, find_shard};
pub use open::{inspect_store, raise_epoch};

/// Batches in flight. Few, so that the operations that arrive meanwhile share a transaction, which saves CPU time.
const MAIN_LANES: usize = 2;
const BATCH_MAX: usize = 64;
const OWN_REVISIONS_MAX: usize = 65_536;

pub struct EtcdStore {
    keys: Keys,
    /// Connections of the lanes, which have a runtime of their own, and those of all other tasks.
    lanes: Link,
    readers: Link,
    /// Reads the members one by one, for the Backends page.
    members: ClusterReader,
    guard: Guard,
    clock: Clock,
    store_clock: StoreClock,
    /// Time after an expiry in which its lock is not granted, in milliseconds.
    margin_ms: i64,
    replica: Arc<str>,
    registration: Registration,
    cache: Mutex<EtcdStateCache>,
    /// Revisions of our own commits, which the watch shows too.
    own_revisions: Mutex<HashSet<i64>>,
    watch: tokio::sync::Mutex<Option<watch::Watch>>,
    /// Serializes recoveries.
    raising: tokio::sync::Mutex<()>,
    prune_cursors: Mutex<PruneCursors>,
    key_cursor: Mutex<Option<Vec<u8>>>,
    /// Where the next search for expired leases continues.
    expiry_cursor: Mutex<Option<Resource>>,
}

impl EtcdStore {
    /// Remembers the revision of one of our commits, so that the watch skips it. If one is forgotten, this process gets one
    /// needless notification.
    fn remember_revision(&self, revision: i64) {
        let mut own = self.own_revisions.lock();
        if own.len() >= OWN_REVISIONS_MAX {
            own.clear();
        }
        own.insert(revision);
    }
}

impl Store for EtcdStore {
    fn apply<'a>(&'a self, _lane: Lane, operations: &'a [Operation]) -> StoreFuture<'a, Applied> {
        Box::pin(self.write(&self.lanes, operations))
    }

    fn has_one_writer(&self) -> bool {
        false
    }

    fn system(&self) -> &'static str {
        "etcd"
    }

    fn main_lanes(&self) -> usize {
        MAIN_LANES
    }

    fn batch_max(&self) -> usize {
        BATCH_MAX
    }

    fn resource<'a>(&'a self, resource: &'a Resource) -> StoreFuture<'a, Read<ResourceView>> {
        Box::pin(with_timeout(self.read_resource(resource)))
    }

    fn leases<'a>(&'a self, ids: &'a [LeaseId]) -> StoreFuture<'a, Read<Vec<(Resource, Lease)>>> {
        Box::pin(with_timeout(self.read_leases(ids)))
    }

    fn held_leases<'a>(
        &'a self,
        range: &'a NameRange,
        after: Option<&'a Resource>,
        limit: u32,
    ) -> StoreFuture<'a, Read<Vec<HeldRow>>> {
        Box::pin(with_timeout(self.read_held(range, after, limit)))
    }

    fn held_by_names<'a>(&'a self, names: &'a [Resource]) -> StoreFuture<'a, Read<Vec<HeldRow>>> {
        Box::pin(with_timeout(self.read_held_names(names)))
    }

    fn expired_leases(&self, limit: u32) -> StoreFuture<'_, Read<Vec<Resource>>> {
        Box::pin(with_timeout(self.read_expired(limit)))
    }

    fn heads<'a>(&'a self, resources: &'a [Resource]) -> StoreFuture<'a, Read<Vec<QueueHead>>> {
        Box::pin(with_timeout(self.read_heads(resources)))
    }

    fn rejections<'a>(&'a self, filter: &'a RejectionQuery) -> StoreFuture<'a, Vec<RejectionRow>> {
        Box::pin(with_timeout(self.find_rejections(filter)))
    }

    fn rejection_counts<'a>(&'a self, range: &'a RejectionRange) -> StoreFuture<'a, Vec<RejectionCount>> {
        Box::pin(with_timeout(self.count_rejections(range)))
    }

    fn last_rejection_before(&self, recorded: StoreTime) -> StoreFuture<'_, i64> {
        Box::pin(with_timeout(self.last_before(recorded)))
    }

    fn stale_writes(&self, since: StoreTime) -> StoreFuture<'_, Vec<StaleWrite>> {
        Box::pin(with_timeout(self.find_stale_writes(since)))
    }

    fn run_maintenance<'a>(&'a self, retention: &'a LeaseRetention) -> StoreFuture<'a, PruneProgress> {
        Box::pin(async move {
            // Without a limit of the whole: after a restore this reads every token. Each of its calls has a limit.
            match self.publish_time(&self.readers).await {
                // The epoch was raised, which is the purpose of this check.
                Ok(()) | Err(StoreError::Conflict) => {}
                Err(error) => return Err(error),
            }
            let now = self.clock.tick();
            with_timeout(
                self.registration
                    .find_unknown_waiters(&self.readers, &self.keys, now),
            )
            .await?;
            with_timeout(self.prune(retention)).await
        })
    }

    fn send_heartbeat(&self) -> StoreFuture<'_, ()> {
        Box::pin(with_timeout(async move {
            let now = self.clock.tick();
            self.registration
                .keep_alive(&self.readers, &self.keys, &self.replica, now)
                .await?;
            Ok(())
        }))
    }

    fn next_notification(&self) -> BoxFuture<'_, StoreNotification> {
        Box::pin(self.receive())
    }

    /// The watch of each replica shows the commits of the others.
    fn send_notifications(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    fn replica(&self) -> &Arc<str> {
        &self.replica
    }

    fn version(&self) -> StoreFuture<'_, String> {
        Box::pin(with_timeout(async move {
            let status = self
                .readers
                .call(|mut client: etcd_client::Client| async move { client.status().await });
            Ok(format!("etcd {}", status.await?.version()))
        }))
    }

    fn cluster(&self) -> BoxFuture<'_, Option<ClusterView>> {
        Box::pin(async move { Some(self.members.read().await) })
    }

    fn token_floor(&self) -> Option<u64> {
        Some(self.guard.token_floor())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.members.close();
            self.registration.revoke(&self.readers).await;
            *self.watch.lock().await = None;
            self.readers.close();
            self.lanes.close();
        })
    }
}
