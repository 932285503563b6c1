//! The task that sends: looks for what is due, gives each receiver its turn, beside the others and never twice at once.

use std::collections::HashSet;
use std::sync::Arc;

use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::limits::{LOOK_EVERY, TEND_EVERY, TURNS_MAX};
use super::{Notifier, ms, queue};
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

/// A receiver's turn. It is over however it ends, a panic included.
struct Turn {
    id: String,
    over: UnboundedSender<String>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        // Nobody listens any more when everything has stopped.
        let _ = self.over.send(std::mem::take(&mut self.id));
    }
}

impl Notifier {
    pub(super) async fn deliver(self: Arc<Self>, stop: CancellationToken) {
        let (over, mut turns) = mpsc::unbounded_channel();
        let mut busy = HashSet::new();
        let mut tended_at = 0;
        while !stop.is_cancelled() {
            for id in self.due().await {
                if busy.len() < TURNS_MAX && busy.insert(id.clone()) {
                    self.clone().begin(Turn {
                        id,
                        over: over.clone(),
                    });
                }
            }
            if self.now_ms() - tended_at >= ms(TEND_EVERY) {
                tended_at = self.now_ms();
                self.prune().await;
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.woken.notified() => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
                Some(id) = turns.recv() => {
                    busy.remove(&id);
                }
            }
        }
        drop(over);
        while turns.recv().await.is_some() {}
    }

    async fn due(&self) -> Vec<String> {
        let due = queue::due(self.db(), self.now_ms()).await;
        due.unwrap_or_else(|error| {
            tracing::warn!("the outbox of notifications cannot be read: {error}");
            Vec::new()
        })
    }

    fn begin(self: Arc<Self>, turn: Turn) {
        // Not the server's token: what is being sent is brought to its end, which is bounded.
        tasks::spawn("notification", CancellationToken::new(), async move {
            self.serve(&turn.id).await;
        });
    }
}
