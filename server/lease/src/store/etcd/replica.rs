//! The registration of this replica: a key and the waiters of its clients, on an etcd lease that it keeps alive. When
//! the replica dies, etcd removes them.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicI64, Ordering};

use domain::lease::LeaseId;
use domain::names::Resource;
use domain::tick::Tick;
use etcd_client::{Client, LeaseTimeToLiveOptions, PutOptions};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::connection::Link;
use super::error::{EtcdError, EtcdErrorKind};
use super::keys::Keys;
use crate::store::StoreError;

/// TTL of the etcd lease. etcd grants at least 1.5 election timeouts, which is 2 s unless configured.
const LEASE_SECONDS: i64 = 3;
/// Between two renewals, in milliseconds.
const KEEP_ALIVE_INTERVAL_MS: i64 = 800;
/// Between two searches for unknown waiters, in milliseconds.
const SEARCH_INTERVAL_MS: i64 = 3_000;

#[derive(Default)]
pub(super) struct Registration {
    lease: AtomicI64,
    renewed_at: Mutex<Option<Tick>>,
    /// Serializes registrations.
    turn: tokio::sync::Mutex<()>,
    waiters: Mutex<HashMap<Resource, HashSet<LeaseId>>>,
    /// Waiters whose keys went with an expired lease, which join again; and unknown ones, which join or leave.
    lost: Mutex<Vec<(Resource, LeaseId)>>,
    pub(super) lost_added: Notify,
    searched_at: Mutex<Option<Tick>>,
}

impl Registration {
    /// The etcd lease of the waiters.
    pub(super) fn lease(&self) -> i64 {
        self.lease.load(Ordering::Acquire)
    }

    /// Call when a waiter has been written with the etcd lease `written_with`.
    pub(super) fn join(&self, resource: &Resource, waiter: LeaseId, written_with: i64) {
        let mut waiters = self.waiters.lock();
        // `register` replaces the lease before it takes the waiters.
        if self.lease() == written_with {
            waiters.entry(resource.clone()).or_default().insert(waiter);
        } else {
            self.lost.lock().push((resource.clone(), waiter));
            self.lost_added.notify_one();
        }
    }

    pub(super) fn leave(&self, resource: &Resource, waiter: LeaseId) {
        let mut waiters = self.waiters.lock();
        if let Some(queue) = waiters.get_mut(resource) {
            queue.remove(&waiter);
            if queue.is_empty() {
                waiters.remove(resource);
            }
        }
    }

    pub(super) fn has_waiters(&self, resource: &Resource) -> bool {
        self.waiters.lock().contains_key(resource)
    }

    pub(super) fn take_lost(&self) -> Vec<(Resource, LeaseId)> {
        std::mem::take(&mut *self.lost.lock())
    }

    /// Registers this replica with a new lease.
    ///
    /// # Errors
    /// etcd does not answer.
    pub(super) async fn register(&self, link: &Link, keys: &Keys, replica: &str) -> Result<(), EtcdError> {
        let granted =
            link.call(|mut client: Client| async move { client.lease_grant(LEASE_SECONDS, None).await });
        let lease = granted.await?.id();
        let key = keys.replica(replica);
        let put = link.call(|mut client: Client| {
            let key = key.clone();
            async move {
                client
                    .put(key, "{}", Some(PutOptions::new().with_lease(lease)))
                    .await
            }
        });
        put.await?;
        self.lease.store(lease, Ordering::Release);
        let lost_queues = std::mem::take(&mut *self.waiters.lock());
        if !lost_queues.is_empty() {
            let lost_waiters = lost_queues.into_iter().flat_map(|(resource, queue)| {
                queue.into_iter().map(move |waiter| (resource.clone(), waiter))
            });
            self.lost.lock().extend(lost_waiters);
            self.lost_added.notify_one();
        }
        Ok(())
    }

    /// Registers again after the lease `seen` was found to be gone, unless another task has.
    ///
    /// # Errors
    /// etcd does not answer.
    pub(super) async fn register_again(
        &self,
        link: &Link,
        keys: &Keys,
        replica: &str,
        seen: i64,
    ) -> Result<(), EtcdError> {
        let _turn = self.turn.lock().await;
        if self.lease() == seen {
            self.register(link, keys, replica).await?;
        }
        Ok(())
    }

    /// Renews the lease if it is time to.
    ///
    /// # Errors
    /// etcd does not answer.
    pub(super) async fn keep_alive(
        &self,
        link: &Link,
        keys: &Keys,
        replica: &str,
        now: Tick,
    ) -> Result<(), EtcdError> {
        let is_due = |renewed: Tick| now.since(renewed) >= KEEP_ALIVE_INTERVAL_MS;
        if !self.renewed_at.lock().is_none_or(is_due) {
            return Ok(());
        }
        let lease = self.lease();
        let renewed =
            link.call(|mut client: Client| async move { client.lease_keep_alive(lease).await.map(drop) });
        match renewed.await {
            Ok(()) => {}
            Err(fault) if fault.kind == EtcdErrorKind::NoLease => {
                self.register_again(link, keys, replica, lease).await?;
            }
            Err(fault) => return Err(fault),
        }
        *self.renewed_at.lock() = Some(now);
        Ok(())
    }

    /// Finds waiters on our etcd lease that are not registered: the answer to the transaction that wrote them was lost, or a
    /// snapshot with them was restored. The lease keeps them in their queue, and no other replica may remove them.
    ///
    /// # Errors
    /// etcd does not answer.
    pub(super) async fn find_unknown_waiters(
        &self,
        link: &Link,
        keys: &Keys,
        now: Tick,
    ) -> Result<(), StoreError> {
        let is_due = |searched: Tick| now.since(searched) >= SEARCH_INTERVAL_MS;
        if !self.searched_at.lock().is_none_or(is_due) {
            return Ok(());
        }
        let lease = self.lease();
        let held = link.call(|mut client: Client| async move {
            let options = LeaseTimeToLiveOptions::new().with_keys();
            client.lease_time_to_live(lease, Some(options)).await
        });
        let held = held.await?;
        *self.searched_at.lock() = Some(now);
        let mut unknown: Vec<_> = held.keys().iter().filter_map(|key| keys.waiter_of(key)).collect();
        let waiters = self.waiters.lock();
        unknown
            .retain(|(resource, waiter)| !waiters.get(resource).is_some_and(|queue| queue.contains(waiter)));
        drop(waiters);
        if !unknown.is_empty() {
            self.lost.lock().extend(unknown);
            self.lost_added.notify_one();
        }
        Ok(())
    }

    /// Removes the replica and its waiters.
    pub(super) async fn revoke(&self, link: &Link) {
        let lease = self.lease();
        let _ = link
            .call(|mut client: Client| async move { client.lease_revoke(lease).await })
            .await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiter_written_with_a_replaced_lease_is_lost() {
        let registration = Registration::default();
        registration.lease.store(2, Ordering::Release);
        let resource = Resource::from("r");
        let [first, second] = [1, 2].map(|number| LeaseId::from_parts(1_700_000_000_000, [number; 10]));
        registration.join(&resource, first, 1);
        registration.join(&resource, second, 2);
        assert_eq!(registration.take_lost(), [(resource.clone(), first)]);
        assert!(registration.has_waiters(&resource));
    }
}
