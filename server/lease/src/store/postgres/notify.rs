//! NOTIFY between replicas, after the commit and on a connection of its own: in the transaction of a batch it would make
//! Postgres commit the batches of all replicas one after the other. Changes that are committed while a notification is
//! sent go into the next one.
//!
//! A hint that shortens a wait: the tables are the truth, and a notification that is lost is replaced by the check of the
//! queues.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::lease::LeaseId;
use domain::names::Resource;
use serde::{Deserialize, Serialize};
use sqlx::postgres::{PgConnection, PgListener};

use super::PostgresStore;
use crate::operation::{Applied, QueueHead};
use crate::store::rows::{from_json, to_json};
use crate::store::{StoreError, StoreNotification};

const CHANNEL: &str = "leasehold_leases";
/// Postgres limits a payload to 8000 bytes; names are escaped as JSON.
const PAYLOAD_BYTES_MAX: usize = 7_500;
/// Resources of one round; with more, the other replicas read everything.
const RESOURCES_MAX: usize = 2_000;

/// Payload of a notification.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Notice {
    from: String,
    changed: Vec<String>,
    /// Resource, waiter, its replica, milliseconds until it may try.
    heads: Vec<(String, LeaseId, String, i64)>,
    missed: bool,
}

/// Committed changes of which the other replicas are not notified yet.
#[derive(Debug, Default)]
pub(super) struct PendingNotices {
    changed: HashSet<Resource>,
    heads: HashMap<Resource, QueueHead>,
    is_cut: bool,
}

impl PendingNotices {
    fn add(&mut self, applied: &Applied) {
        if self.changed.len() + self.heads.len() > RESOURCES_MAX {
            self.changed.clear();
            self.is_cut = true;
        }
        if !self.is_cut {
            self.changed.extend(applied.changed.iter().cloned());
        }
        let heads = applied.heads.iter().cloned();
        self.heads.extend(heads.map(|head| (head.resource.clone(), head)));
    }

    /// The payloads, each within the limit of Postgres.
    fn into_payloads(self, from: &str) -> Result<Vec<String>, StoreError> {
        let mut payloads = Vec::new();
        let empty = || Notice {
            from: from.to_owned(),
            ..Notice::default()
        };
        let mut notice = Notice {
            missed: self.is_cut,
            ..empty()
        };
        let mut bytes = 0;
        let heads = self.heads.into_values().map(|head| {
            let replica = head.replica.to_string();
            Item::Head((head.resource.text(), head.waiter, replica, head.in_ms))
        });
        let changed = self.changed.iter().map(|resource| Item::Changed(resource.text()));
        for item in heads.chain(changed) {
            let size = to_json(&item)?.len() + 1;
            if bytes + size > PAYLOAD_BYTES_MAX - HEAD_BYTES {
                payloads.push(to_json(&std::mem::replace(&mut notice, empty()))?);
                bytes = 0;
            }
            bytes += size;
            match item {
                Item::Head(head) => notice.heads.push(head),
                Item::Changed(name) => notice.changed.push(name),
            }
        }
        if bytes > 0 || notice.missed {
            payloads.push(to_json(&notice)?);
        }
        Ok(payloads)
    }
}

/// After a failure.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);
/// Bytes of a payload without its items.
const HEAD_BYTES: usize = 200;

#[derive(Serialize)]
#[serde(untagged)]
enum Item {
    Head((String, LeaseId, String, i64)),
    Changed(String),
}

impl PostgresStore {
    /// Call after the commit.
    pub(super) fn enqueue_notice(&self, applied: &Applied) {
        if !self.others.load(Ordering::Relaxed) || (applied.changed.is_empty() && applied.heads.is_empty()) {
            return;
        }
        self.notices.lock().add(applied);
        self.notices_added.notify_one();
    }

    /// Sends pending notices until it is dropped.
    pub(super) async fn send_notices(&self) {
        let mut connection = None;
        loop {
            self.notices_added.notified().await;
            let pending = std::mem::take(&mut *self.notices.lock());
            if let Err(error) = self.send_pending(&mut connection, pending).await {
                // The failure itself is logged by the maintenance task, which queries the same server.
                tracing::debug!(%error, "could not notify the other replicas: {error}");
                connection = None;
                self.notices.lock().is_cut = true;
                // The others learn that they missed something without waiting for the next change.
                tokio::time::sleep(RETRY_INTERVAL).await;
                self.notices_added.notify_one();
            }
        }
    }

    async fn send_pending(
        &self,
        slot: &mut Option<PgConnection>,
        pending: PendingNotices,
    ) -> Result<(), StoreError> {
        let payloads = pending.into_payloads(&self.replica)?;
        super::with_timeout(async {
            let connection = match slot {
                Some(connection) => connection,
                None => slot.insert(self.connect_not_durable().await?),
            };
            for payload in payloads {
                let notify = sqlx::query("SELECT pg_notify($1, $2)");
                notify
                    .bind(CHANNEL)
                    .bind(payload)
                    .execute(&mut *connection)
                    .await?;
            }
            Ok(())
        })
        .await
    }

    pub(super) async fn receive(&self) -> Result<StoreNotification, StoreError> {
        let mut slot = self.listener.lock().await;
        if slot.is_none() {
            let mut listener = PgListener::connect_with(&self.readers).await?;
            listener.listen(CHANNEL).await?;
            *slot = Some(listener);
            return Ok(StoreNotification {
                missed: true,
                ..StoreNotification::default()
            });
        }
        let Some(listener) = slot.as_mut() else {
            return Ok(StoreNotification::default());
        };
        let Some(notification) = listener.try_recv().await? else {
            return Ok(StoreNotification {
                missed: true,
                ..StoreNotification::default()
            });
        };
        let notice: Notice = from_json(notification.payload())?;
        if notice.from == *self.replica {
            return Ok(StoreNotification::default());
        }
        let head = |(resource, waiter, replica, in_ms): (String, LeaseId, String, i64)| QueueHead {
            resource: Resource::from(resource.as_str()),
            waiter,
            replica: replica.into(),
            in_ms,
        };
        Ok(StoreNotification {
            changed: notice
                .changed
                .iter()
                .map(|name| Resource::from(name.as_str()))
                .collect(),
            heads: notice.heads.into_iter().map(head).collect(),
            missed: notice.missed,
        })
    }
}

#[cfg(test)]
mod tests;
