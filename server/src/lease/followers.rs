//! Who follows the fate of a lease: one task re-reads all followed leases when something changed, when the next runs
//! out, and a few times a second because another replica may have changed it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::lease::{Ending, How, Lease, LeaseId, StoreTime};
use domain::names::Resource;
use tokio::sync::{Notify, mpsc};

use super::core::Core;
use super::operation::Operation;
use super::reading::has_unstored_expiry;
use super::store::Lane;

/// Well within the second in which an owner must hear of a loss.
const EVERY: Duration = Duration::from_millis(300);
/// However much happens, followed leases are not read more often.
const GAP: Duration = Duration::from_millis(20);
const EVENTS_KEPT: usize = 64;

/// What happened to a lease.
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
    Ended(How),
}

#[derive(Default)]
pub(super) struct Followers {
    all: Mutex<HashMap<LeaseId, Followed>>,
    kick: Notify,
}

struct Followed {
    seen: Lease,
    to: Vec<mpsc::Sender<LeaseEvent>>,
}

impl Followers {
    /// From the state that the caller has just read on.
    pub(super) fn follow(&self, seen: Lease) -> mpsc::Receiver<LeaseEvent> {
        let (to, events) = mpsc::channel(EVENTS_KEPT);
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let followed = all
            .entry(seen.id)
            .or_insert_with(|| Followed { seen, to: Vec::new() });
        followed.to.push(to);
        drop(all);
        self.kick.notify_one();
        events
    }

    pub(super) fn kick(&self) {
        self.kick.notify_one();
    }

    fn ids(&self) -> Vec<LeaseId> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, followed| {
            followed.to.retain(|to| !to.is_closed());
            !followed.to.is_empty()
        });
        all.keys().copied().collect()
    }

    fn tell(&self, resource: Resource, lease: Lease, now: StoreTime) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(followed) = all.get_mut(&lease.id) else {
            return;
        };
        let what = match lease.ending_at(now) {
            Some(Ending { how, .. }) => LeaseChange::Ended(how),
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
            // A reader that cannot keep up misses renewals, never the end: space for it is kept free.
            if over || to.capacity() > 1 {
                let _ = to.try_send(event.clone());
            }
        }
        if over {
            all.remove(&id);
        }
    }
}

/// Until the service is closed.
pub(super) async fn serve(core: Arc<Core>) {
    loop {
        let ids = core.followers.ids();
        if ids.is_empty() {
            core.followers.kick.notified().await;
            continue;
        }
        if let Ok(read) = core.store.leases(&ids).await {
            let mut expired = Vec::new();
            for (resource, lease) in read.value {
                if has_unstored_expiry(&lease, read.now) {
                    expired.push(resource);
                } else {
                    core.followers.tell(resource, lease, read.now);
                }
            }
            // The event follows with the next reading: an expiry is in the store before an event reports it.
            let expired = expired
                .into_iter()
                .map(|resource| core.ask(Lane::Main, Operation::Expire { resource }));
            let stored = futures::future::join_all(expired);
            // One that another batch holds does not delay the events of the others; it is stored with a later reading.
            let _ = tokio::time::timeout(EVERY, stored).await;
        }
        tokio::time::sleep(GAP).await;
        let _ = tokio::time::timeout(EVERY, core.followers.kick.notified()).await;
    }
}
