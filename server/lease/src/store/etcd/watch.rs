//! Changes by other replicas, from a watch on the keys of the store. A hint that shortens a wait: reads are the truth,
//! and a watch that breaks or meets a compaction is replaced by a new one and a resync.

use std::time::Duration;

use domain::names::Resource;
use etcd_client::{Client, EventType, WatchOptions, WatchResponse, WatchStream};

use super::EtcdStore;
use super::error::EtcdError;
use super::values::{ClockValue, decode};
use crate::operation::QueueHead;
use crate::store::{StoreError, StoreNotification};

const RETRY_INTERVAL: Duration = Duration::from_millis(300);

pub(super) struct Watch {
    stream: WatchStream,
    /// The member that serves it.
    index: usize,
}

impl EtcdStore {
    pub(super) async fn receive(&self) -> StoreNotification {
        let received = tokio::select! {
            () = self.registration.lost_added.notified() => Ok(self.lost_waiters()),
            received = self.receive_changes() => received,
        };
        match received {
            Ok(notification) => notification,
            Err(error) => {
                tracing::debug!(%error, "the watch of the lease store broke: {error}");
                *self.watch.lock().await = None;
                tokio::time::sleep(RETRY_INTERVAL).await;
                missed()
            }
        }
    }

    /// The keys of these waiters are gone, or they are unknown: each tries, and so joins again, or leaves if it does not wait.
    fn lost_waiters(&self) -> StoreNotification {
        let head = |(resource, waiter)| QueueHead {
            resource,
            waiter,
            replica: self.replica.clone(),
            in_ms: 0,
        };
        StoreNotification {
            heads: self.registration.take_lost().into_iter().map(head).collect(),
            ..StoreNotification::default()
        }
    }

    async fn receive_changes(&self) -> Result<StoreNotification, StoreError> {
        let mut slot = self.watch.lock().await;
        let index = self.readers.index();
        let Some(watch) = slot.as_mut().filter(|watch| watch.index == index) else {
            *slot = Some(self.open_watch(index).await?);
            return Ok(missed());
        };
        let message = watch.stream.message().await.map_err(EtcdError::from)?;
        let Some(response) = message else {
            return Err(StoreError::Etcd("the watch ended".to_owned()));
        };
        if response.canceled() {
            let why = format!(
                "{} (compacted: {})",
                response.cancel_reason(),
                response.compact_revision()
            );
            return Err(StoreError::Etcd(why));
        }
        self.read_events(&response).await
    }

    async fn open_watch(&self, index: usize) -> Result<Watch, StoreError> {
        let prefix = self.keys.prefix().to_owned();
        let opened = self.readers.call_member(index, |mut client: Client| async move {
            let options = WatchOptions::new().with_prefix().with_fragment();
            client.watch(prefix, Some(options)).await
        });
        match opened.await {
            Ok(stream) => Ok(Watch { stream, index }),
            Err(fault) => {
                self.readers.abandon(index);
                Err(fault.into())
            }
        }
    }

    async fn read_events(&self, response: &WatchResponse) -> Result<StoreNotification, StoreError> {
        let mut changed: Vec<Resource> = Vec::new();
        let mut latest = 0;
        {
            let own = self.own_revisions.lock();
            for event in response.events() {
                let Some(pair) = event.kv() else { continue };
                latest = latest.max(pair.mod_revision());
                if own.contains(&pair.mod_revision()) {
                    continue;
                }
                if pair.key() == self.keys.clock() && event.event_type() == EventType::Put {
                    let clock: ClockValue = decode(pair.key(), pair.value())?;
                    self.store_clock.follow(clock.ms);
                    self.guard.clock_seen(pair.mod_revision());
                }
                changed.extend(self.keys.resource_of(pair.key()));
            }
        }
        // A revision can be split over several answers: the last one stays.
        self.own_revisions.lock().retain(|revision| *revision >= latest);
        changed.sort_unstable();
        changed.dedup();
        let waited_for: Vec<Resource> = changed
            .iter()
            .filter(|resource| self.registration.has_waiters(resource))
            .cloned()
            .collect();
        let heads = if waited_for.is_empty() {
            Vec::new()
        } else {
            self.read_heads(&waited_for).await?.value
        };
        Ok(StoreNotification {
            changed,
            heads,
            missed: false,
        })
    }
}

fn missed() -> StoreNotification {
    StoreNotification {
        missed: true,
        ..StoreNotification::default()
    }
}
