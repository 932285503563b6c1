//! Subscriptions to leases: one task re-reads all followed leases when something changed, and a few times a second
//! because another replica may have changed them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use domain::lease::{EndCause, Lease, LeaseEnd, LeaseId, StoreTime};
use domain::names::Resource;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};

use super::core::Core;
use super::operation::Operation;
use super::queries::has_unstored_expiry;
use super::store::Lane;

/// Well below one second, the limit for telling an owner that its lease was lost.
const EVERY: Duration = Duration::from_millis(300);
/// Minimum time between two reads of the followed leases.
const GAP: Duration = Duration::from_millis(20);
const EVENTS_KEPT: usize = 64;

/// A change of a followed lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseEvent {
    pub resource: Resource,
    pub lease: Lease,
    pub at: StoreTime,
    pub what: LeaseChange,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseChange {
    Renewed { remaining_ms: i64 },
    Ended(EndCause),
}

#[derive(Default)]
pub(super) struct Followers {
    all: Mutex<HashMap<LeaseId, Followed>>,
    changed: Notify,
}

struct Followed {
    seen: Lease,
    to: Vec<mpsc::Sender<LeaseEvent>>,
}

impl Followers {
    /// Follows a lease from the state that the caller has just read.
    pub(super) fn follow(&self, seen: Lease) -> mpsc::Receiver<LeaseEvent> {
        let (to, events) = mpsc::channel(EVENTS_KEPT);
        let mut all = self.all.lock();
        let followed = all
            .entry(seen.id)
            .or_insert_with(|| Followed { seen, to: Vec::new() });
        followed.to.push(to);
        drop(all);
        self.changed.notify_one();
        events
    }

    pub(super) fn notify(&self) {
        self.changed.notify_one();
    }

    fn ids(&self) -> Vec<LeaseId> {
        let mut all = self.all.lock();
        all.retain(|_, followed| {
            followed.to.retain(|to| !to.is_closed());
            !followed.to.is_empty()
        });
        all.keys().copied().collect()
    }

    fn publish(&self, resource: Resource, lease: Lease, now: StoreTime) {
        let mut all = self.all.lock();
        let Some(followed) = all.get_mut(&lease.id) else {
            return;
        };
        let what = match lease.ending_at(now) {
            Some(LeaseEnd { how, .. }) => LeaseChange::Ended(how),
            None if lease.renewals > followed.seen.renewals => LeaseChange::Renewed {
                remaining_ms: lease.remaining_ms(now),
            },
            None => return,
        };
        let at = lease.ending_at(now).map_or(lease.renewed_at, |ending| ending.at);
        let over = matches!(what, LeaseChange::Ended(_));
        let id = lease.id;
        followed.seen = lease.clone();
        let event = LeaseEvent {
            resource,
            lease,
            at,
            what,
        };
        for to in &followed.to {
            // A slow reader misses renewals, never the end: one slot is reserved for it.
            if over || to.capacity() > 1 {
                let _ = to.try_send(event.clone());
            }
        }
        if over {
            all.remove(&id);
        }
    }
}

/// Runs until the service is closed.
pub(super) async fn serve(core: Arc<Core>) {
    loop {
        let ids = core.followers.ids();
        if ids.is_empty() {
            core.followers.changed.notified().await;
            continue;
        }
        if let Ok(read) = core.store.leases(&ids).await {
            let mut expired = Vec::new();
            for (resource, lease) in read.value {
                if has_unstored_expiry(&lease, read.now) {
                    expired.push(resource);
                } else {
                    core.followers.publish(resource, lease, read.now);
                }
            }
            // The event follows with the next read: an expiry is stored before an event reports it.
            let expired = expired
                .into_iter()
                .map(|resource| core.submit_and_wait(Lane::Main, Operation::Expire { resource }));
            let stored = futures::future::join_all(expired);
            // A resource locked by another batch does not delay other events; its expiry is stored after a later
            // read.
            let _ = tokio::time::timeout(EVERY, stored).await;
        }
        tokio::time::sleep(GAP).await;
        let _ = tokio::time::timeout(EVERY, core.followers.changed.notified()).await;
    }
}
