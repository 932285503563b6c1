//! NOTIFY between replicas. A hint that shortens a wait: the tables are the truth.

use std::sync::atomic::Ordering;

use domain::lease::LeaseId;
use domain::names::Resource;
use serde::{Deserialize, Serialize};
use sqlx::postgres::PgListener;

use super::PostgresStore;
use crate::batch::BatchResult;
use crate::operation::QueueHead;
use crate::store::rows::{from_json, to_json};
use crate::store::{StoreError, StoreNotification};

/// Same name as in the function `save_lease_batch`.
const CHANNEL: &str = "leasehold_leases";
/// Postgres limits a payload to 8000 bytes.
const NOTICE_BYTES_MAX: usize = 7_500;

/// Payload of a notification.
#[derive(Serialize, Deserialize)]
struct Notice {
    from: String,
    changed: Vec<String>,
    /// Resource, waiter, its replica, milliseconds until it may try.
    heads: Vec<(String, LeaseId, String, i64)>,
    missed: bool,
}

impl PostgresStore {
    /// Payload for the batch; sent when it commits. `None` if no other replica is alive.
    pub(super) fn notice(&self, ran: &BatchResult) -> Result<Option<String>, StoreError> {
        if !self.others.load(Ordering::Relaxed) || (ran.changed.is_empty() && ran.heads.is_empty()) {
            return Ok(None);
        }
        let head = |head: &QueueHead| {
            (
                head.resource.text(),
                head.waiter,
                head.replica.to_string(),
                head.in_ms,
            )
        };
        let mut notice = Notice {
            from: self.replica.to_string(),
            changed: ran.changed.iter().map(Resource::text).collect(),
            heads: ran.heads.iter().map(head).collect(),
            missed: false,
        };
        let mut text = to_json(&notice)?;
        if text.len() > NOTICE_BYTES_MAX {
            notice.changed.clear();
            notice.heads.truncate(50);
            notice.missed = true;
            text = to_json(&notice)?;
        }
        Ok(Some(text))
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
