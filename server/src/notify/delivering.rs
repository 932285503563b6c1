//! The task that sends: looks for what is due, gives each receiver its turn, beside the others and never twice at once.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::limits::{LOOK_ANYWAY, LOOK_EVERY, TEND_EVERY, TURNS_MAX};
use super::{Notifier, ms, queue};
use crate::db::Db;
use crate::tasks;

/// The sender, until it was stopped and what was on its way has been answered.
pub struct Delivering(JoinHandle<()>);

impl Delivering {
    pub(super) const fn new(task: JoinHandle<()>) -> Self {
        Self(task)
    }

    pub async fn ended(self) {
        // A panic of the task was logged where it happened.
        let _ended = self.0.await;
    }
}

/// Receivers that are being sent to. Outlives the task that looks for what is due: one that is made anew sends to nobody
/// a second time at once.
#[derive(Default)]
pub(super) struct Turns {
    busy: Mutex<HashSet<String>>,
    over: Notify,
}

impl Turns {
    fn busy(&self) -> MutexGuard<'_, HashSet<String>> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Unless it has one, or too many have.
    fn begin(&self, id: &str) -> bool {
        let mut busy = self.busy();
        busy.len() < TURNS_MAX && busy.insert(id.to_owned())
    }
}

/// A receiver's turn. It is over however it ends, a panic included.
struct Turn {
    id: String,
    of: Arc<Notifier>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.of.turns.busy().remove(&self.id);
        self.of.turns.over.notify_one();
    }
}

impl Notifier {
    pub(super) async fn deliver(self: Arc<Self>, stop: CancellationToken) {
        let mut tended_at = 0;
        // Until then nothing falls due, unless somebody says so.
        let mut quiet_until = 0;
        while !stop.is_cancelled() {
            if self.now_ms() >= quiet_until {
                let due = self.due().await;
                quiet_until = match due.is_empty() {
                    true => self.next_due().await.min(self.now_ms() + ms(LOOK_ANYWAY)),
                    false => 0,
                };
                for id in due {
                    if self.turns.begin(&id) {
                        self.clone().begin(id);
                    }
                }
            }
            if self.now_ms() - tended_at >= ms(TEND_EVERY) {
                tended_at = self.now_ms();
                self.prune().await;
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.woken.notified() => quiet_until = 0,
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = self.turns.over.notified() => quiet_until = 0,
            }
        }
        while !self.turns.busy().is_empty() {
            self.turns.over.notified().await;
        }
    }

    /// When something falls due by itself. On Postgres others put messages into the outbox, too: always now.
    async fn next_due(&self) -> i64 {
        match self.db() {
            Db::Postgres(_) => 0,
            Db::Sqlite(_) => queue::next_due(self.db()).await.unwrap_or(0),
        }
    }

    async fn due(&self) -> Vec<String> {
        self.looks.fetch_add(1, Ordering::Relaxed);
        let due = queue::due(self.db(), self.now_ms()).await;
        due.unwrap_or_else(|error| {
            tracing::warn!("the outbox of notifications cannot be read: {error}");
            Vec::new()
        })
    }

    fn begin(self: Arc<Self>, id: String) {
        let turn = Turn { id, of: self.clone() };
        // Not the server's token: what is being sent is brought to its end, which is bounded.
        tasks::spawn("notification", CancellationToken::new(), async move {
            self.serve(&turn.id).await;
        });
    }
}
