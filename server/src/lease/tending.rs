//! What is done now and then: leases that ran out are noted, replicas say that they are there, what is long over is
//! forgotten. Each task takes no input and reads everything anew; none of them decides who holds what.

use std::sync::Arc;
use std::time::Duration;

use super::core::Core;
use super::operation::Operation;
use super::store::Lane;
use crate::tasks;

const REAP_EVERY: Duration = Duration::from_millis(250);
/// Noted in one go; more wait for the next.
const REAP_MAX: u32 = 400;
const TEND_EVERY: Duration = Duration::from_millis(400);
const TEND_WHEN_DOWN_EVERY: Duration = Duration::from_secs(1);
/// With `gone_after` of the store's statements it is less than a second.
const LINE_EVERY: Duration = Duration::from_millis(200);
const BEAT_EVERY: Duration = Duration::from_millis(150);

pub(super) fn start(core: &Arc<Core>) {
    keep("note expiries", core, |it| async move { it.reap().await });
    keep("tend the lease store", core, |it| async move { it.tend().await });
    keep("follow leases", core, super::followers::serve);
    if !core.store.has_one_writer() {
        keep(
            "lease heartbeat",
            core,
            |it| async move { it.send_heartbeats().await },
        );
        keep(
            "hear of other replicas",
            core,
            |it| async move { it.hear().await },
        );
        keep(
            "look at lines",
            core,
            |it| async move { it.look_at_lines().await },
        );
    }
}

/// What it knows is the core's: it is made anew after a panic, and goes on.
fn keep<Made: Future<Output = ()> + Send + 'static>(
    name: &'static str,
    core: &Arc<Core>,
    make: impl Fn(Arc<Core>) -> Made + Send + Sync + 'static,
) {
    let (closed, core) = (core.closed.clone(), core.clone());
    tasks::keep(name, closed, move || make(core.clone()));
}

impl Core {
    /// **Invariant:** the reaper only cleans. Each note is an operation like any other: the state machine looks again,
    /// under the lock, whether the lease has run out.
    async fn reap(&self) {
        loop {
            let found = self.store.run_out(REAP_MAX).await.unwrap_or_default();
            let more = found.len() >= usize::try_from(REAP_MAX).unwrap_or(usize::MAX);
            let notes = found
                .into_iter()
                .map(|resource| self.ask(Lane::Main, Operation::Expire { resource }));
            let noted = futures::future::join_all(notes).await;
            let failed = noted.iter().any(Result::is_err);
            if !more || failed {
                tokio::time::sleep(REAP_EVERY).await;
            }
        }
    }

    async fn tend(&self) {
        let mut down = false;
        loop {
            let tended = self.store.tend().await;
            if let Err(error) = &tended
                && !down
            {
                tracing::warn!(%error, "the lease store does not answer: {error}");
            } else if tended.is_ok() && down {
                tracing::info!("the lease store answers again");
            }
            down = tended.is_err();
            tokio::time::sleep(if down { TEND_WHEN_DOWN_EVERY } else { TEND_EVERY }).await;
        }
    }

    /// A failure is logged by `tend`, which asks the same server.
    async fn send_heartbeats(&self) {
        loop {
            let beaten = self.store.beat().await;
            tokio::time::sleep(if beaten.is_ok() { BEAT_EVERY } else { TEND_EVERY }).await;
        }
    }

    async fn hear(&self) {
        loop {
            let read_at = self.clock.tick();
            let news = self.store.news().await;
            for head in &news.heads {
                // The notice may have travelled for as long as we waited for it, at most: better early than late.
                let at = if head.in_ms == 0 {
                    read_at
                } else {
                    self.clock.tick()
                };
                self.hint(head, at);
            }
            if news.missed {
                self.publish(None);
                self.look().await;
            } else if !news.changed.is_empty() {
                self.publish(Some(news.changed.into()));
            }
        }
    }

    /// A notice may be lost: the table tells who is first.
    async fn look_at_lines(&self) {
        loop {
            tokio::time::sleep(LINE_EVERY).await;
            self.look().await;
        }
    }

    async fn look(&self) {
        let resources = self.waiting.resources();
        if resources.is_empty() {
            return;
        }
        if let Ok(read) = self.store.heads(&resources).await {
            for head in &read.value {
                self.hint(head, read.read_at);
            }
        }
    }
}
