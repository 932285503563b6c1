//! Background tasks of the service: recording expiries, replica heartbeats, queue checks,
//! retention. Each takes no input and reads the store again on every run; none of them decides
//! who holds a lock.

use std::sync::Arc;
use std::time::Duration;

use super::core::Core;
use super::operation::Operation;
use super::store::{Lane, LeaseRetention, PruneProgress, Store};
use runtime::tasks;

const REAP_INTERVAL: Duration = Duration::from_millis(250);
/// Expiries recorded per run.
const REAP_MAX: u32 = 400;
const MAINTENANCE_INTERVAL: Duration = Duration::from_millis(400);
/// While rows past their retention are left.
const MAINTENANCE_INTERVAL_BUSY: Duration = Duration::from_millis(20);
const MAINTENANCE_INTERVAL_DOWN: Duration = Duration::from_secs(1);
/// Together with `gone_after` of the SQL statements it stays below one second.
const QUEUE_CHECK_INTERVAL: Duration = Duration::from_millis(200);
const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(150);

/// Milliseconds between regular sweeps: with several replicas, the leases of one that is gone are found by them alone.
pub(super) fn sweep_interval_ms(store: &dyn Store) -> i64 {
    if store.has_one_writer() { 5_000 } else { 2_000 }
}

pub(super) fn start(core: &Arc<Core>, retention: LeaseRetention) {
    supervise("lease expiry reaper", core, |it| async move { it.reap().await });
    supervise("lease store maintenance", core, move |it| async move {
        it.run_maintenance(&retention).await;
    });
    supervise("lease watchers", core, super::watchers::serve);
    if !core.store.has_one_writer() {
        supervise(
            "lease heartbeat",
            core,
            |it| async move { it.send_heartbeats().await },
        );
        supervise(
            "replica notifications",
            core,
            |it| async move { it.listen().await },
        );
        supervise("replica notifier", core, |it| async move {
            it.store.send_notifications().await;
        });
        supervise(
            "lease queue check",
            core,
            |it| async move { it.check_queues().await },
        );
    }
}

/// The task is restarted after a panic; its state is in the core.
fn supervise<Made: Future<Output = ()> + Send + 'static>(
    name: &'static str,
    core: &Arc<Core>,
    make: impl Fn(Arc<Core>) -> Made + Send + Sync + 'static,
) {
    let (closed, core) = (core.closed.clone(), core.clone());
    tasks::spawn_supervised(name, closed, move || make(core.clone()));
}

impl Core {
    /// **Invariant:** the reaper only cleans up. Each expiry is an operation like any other: the
    /// state machine checks it again under the lock.
    async fn reap(&self) {
        loop {
            if !self.expiries.is_due(self.clock.tick()) {
                tokio::time::sleep(REAP_INTERVAL).await;
                continue;
            }
            self.expiries.begin_sweep();
            // A failure is logged by `run_maintenance`, which queries the same store.
            let Ok(sweep) = self.store.sweep_expiries(REAP_MAX).await else {
                tokio::time::sleep(REAP_INTERVAL).await;
                continue;
            };
            let more = sweep.value.expired.len() >= usize::try_from(REAP_MAX).unwrap_or(usize::MAX);
            if !more {
                self.expiries.end_sweep(&sweep, self.clock.tick());
            }
            let notes = sweep
                .value
                .expired
                .into_iter()
                .map(|resource| self.submit_and_wait(Lane::Main, Operation::Expire { resource }));
            let noted = futures::future::join_all(notes).await;
            let failed = noted.iter().any(Result::is_err);
            if failed {
                self.expiries.require_sweep();
            }
            if !more || failed {
                tokio::time::sleep(REAP_INTERVAL).await;
            }
        }
    }

    async fn run_maintenance(&self, retention: &LeaseRetention) {
        let mut down = false;
        loop {
            let maintained = self.store.run_maintenance(retention).await;
            self.record_answer(&maintained);
            if let Err(error) = &maintained
                && !down
            {
                tracing::warn!(%error, "the lease store does not answer: {error}");
            } else if maintained.is_ok() && down {
                tracing::info!("the lease store answers again");
            }
            down = maintained.is_err();
            tokio::time::sleep(match maintained {
                Ok(PruneProgress::Done) => MAINTENANCE_INTERVAL,
                Ok(PruneProgress::More) => MAINTENANCE_INTERVAL_BUSY,
                Err(_) => MAINTENANCE_INTERVAL_DOWN,
            })
            .await;
        }
    }

    /// A failure is logged by `run_maintenance`, which queries the same server.
    async fn send_heartbeats(&self) {
        loop {
            let beaten = self.store.send_heartbeat().await;
            tokio::time::sleep(if beaten.is_ok() {
                HEARTBEAT_INTERVAL
            } else {
                MAINTENANCE_INTERVAL
            })
            .await;
        }
    }

    async fn listen(&self) {
        loop {
            let read_at = self.clock.tick();
            let news = self.store.next_notification().await;
            for head in &news.heads {
                // The notification was under way for at most the time we waited for it; an early
                // attempt is harmless, a late one is not.
                let at = if head.in_ms == 0 {
                    read_at
                } else {
                    self.clock.tick()
                };
                self.notify_waiter(head, at);
            }
            if news.missed {
                self.publish(None);
                self.notify_heads().await;
            } else if !news.changed.is_empty() {
                self.publish(Some(news.changed.into()));
            }
        }
    }

    /// A notification can be lost; the table has the head of each queue.
    async fn check_queues(&self) {
        loop {
            tokio::time::sleep(QUEUE_CHECK_INTERVAL).await;
            self.notify_heads().await;
        }
    }

    async fn notify_heads(&self) {
        let resources = self.waiting.resources();
        if resources.is_empty() {
            return;
        }
        if let Ok(read) = self.store.heads(&resources).await {
            for head in &read.value {
                self.notify_waiter(head, read.read_at);
            }
        }
    }
}
