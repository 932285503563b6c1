//! The delivery task: finds receivers with due messages and serves them concurrently, each at most once at a time.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use domain::duration::millis;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::limits::{IDLE_POLL_INTERVAL, POLL_INTERVAL, PRUNE_EVERY, RECEIVERS_SERVED_MAX};
use super::{Notifier, outbox};
use crate::janitor::Janitor;
use runtime::db::Db;
use runtime::tasks;

/// The delivery task; ends after stop, when requests in flight are answered.
pub struct Delivering(JoinHandle<()>);

impl Delivering {
    pub(super) const fn new(task: JoinHandle<()>) -> Self {
        Self(task)
    }

    pub async fn ended(self) {
        // A panic of the task was logged by the supervisor.
        let _ended = self.0.await;
    }
}

/// Receivers being served. Outlives the delivery task, so that a restarted one does not serve a receiver twice at
/// once.
#[derive(Default)]
pub(super) struct ServedReceivers {
    busy: Mutex<HashSet<String>>,
    ended: Notify,
}

impl ServedReceivers {
    fn busy(&self) -> MutexGuard<'_, HashSet<String>> {
        self.busy.lock()
    }

    /// False if the receiver is already served, or too many are.
    fn begin(&self, id: &str) -> bool {
        let mut busy = self.busy();
        busy.len() < RECEIVERS_SERVED_MAX && busy.insert(id.to_owned())
    }
}

/// Marks a receiver as served until dropped, also by a panic.
struct ServingGuard {
    id: String,
    notifier: Arc<Notifier>,
}

impl Drop for ServingGuard {
    fn drop(&mut self) {
        self.notifier.served.busy().remove(&self.id);
        self.notifier.served.ended.notify_one();
    }
}

impl Notifier {
    pub(super) async fn deliver(self: Arc<Self>, stop: CancellationToken) {
        let mut janitor = Janitor::new("notifications", PRUNE_EVERY);
        // Nothing becomes due before this time, unless a message is enqueued.
        let mut quiet_until = 0;
        while !stop.is_cancelled() {
            if self.now_ms() >= quiet_until {
                let due = self.due().await;
                quiet_until = match due.is_empty() {
                    true => self
                        .next_due()
                        .await
                        .min(self.now_ms() + millis(IDLE_POLL_INTERVAL)),
                    false => 0,
                };
                for id in due {
                    if self.served.begin(&id) {
                        self.clone().begin(id);
                    }
                }
            }
            janitor.run(self.clock.tick(), self.prune()).await;
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.woken.notified() => quiet_until = 0,
                () = tokio::time::sleep(POLL_INTERVAL) => {}
                () = self.served.ended.notified() => quiet_until = 0,
            }
        }
        while !self.served.busy().is_empty() {
            self.served.ended.notified().await;
        }
    }

    /// When the next message becomes due. On Postgres other replicas enqueue too: always now.
    async fn next_due(&self) -> i64 {
        match self.db() {
            Db::Postgres(_) => 0,
            Db::Sqlite(_) => outbox::next_due(self.db()).await.unwrap_or(0),
        }
    }

    async fn due(&self) -> Vec<String> {
        self.query_count.fetch_add(1, Ordering::Relaxed);
        let due = outbox::due(self.db(), self.now_ms()).await;
        due.unwrap_or_else(|error| {
            tracing::warn!("the outbox of notifications cannot be read: {error}");
            Vec::new()
        })
    }

    fn begin(self: Arc<Self>, id: String) {
        let guard = ServingGuard {
            id,
            notifier: self.clone(),
        };
        // Not the server's token: a send in progress is completed, which is bounded in time.
        tasks::spawn("notification", CancellationToken::new(), async move {
            self.serve(&guard.id).await;
        });
    }
}
