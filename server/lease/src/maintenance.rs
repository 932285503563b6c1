//! Background tasks of the service: recording expiries, replica heartbeats, queue checks,
//! retention. Each takes no input and reads the store again on every run; none of them decides
//! who holds a lock.

use std::sync::Arc;
use std::time::Duration;

use domain::names::Resource;

use super::core::Core;
use super::operation::Operation;
use super::store::{Lane, LeaseRetention, PruneProgress};
use runtime::tasks;

const RECORD_INTERVAL: Duration = Duration::from_millis(250);
/// Expiries recorded per run.
const RECORD_MAX: u32 = 400;
/// Between sweeps, which find the expired leases that this process does not know of.
const SWEEP_INTERVAL_MS: i64 = 1_000;
/// A sweep reads every held lease, so sweeps take at most 1/200 of the time.
const SWEEP_SHARE: i64 = 200;
const MAINTENANCE_INTERVAL: Duration = Duration::from_millis(400);
/// Interval while rows past their retention are left.
const MAINTENANCE_INTERVAL_BUSY: Duration = Duration::from_millis(20);
const MAINTENANCE_INTERVAL_DOWN: Duration = Duration::from_secs(1);
/// Together with `gone_after` of the SQL statements it stays below one second.
const QUEUE_CHECK_INTERVAL: Duration = Duration::from_millis(200);
const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(150);
/// Half of the time after which another replica deletes the waiters of one without a heartbeat.
const HEARTBEAT_GAP_MS_MAX: i64 = 5_000;

pub(super) fn start(core: &Arc<Core>, retention: LeaseRetention) {
    supervise("lease expiry recorder", core, |core| async move {
        core.record_due_expiries().await
    });
    supervise("lease store maintenance", core, move |core| async move {
        core.run_maintenance(&retention).await;
    });
    supervise("lease watchers", core, super::watchers::serve);
    supervise("abandoned lease requests", core, |core| async move {
        core.repeat_for_abandoned_requests().await
    });
    if !core.store.has_one_writer() {
        supervise("lease heartbeat", core, |core| async move {
            core.send_heartbeats().await
        });
        supervise("replica notifications", core, |core| async move {
            core.listen().await
        });
        supervise("replica notifier", core, |core| async move {
            core.store.send_notifications().await;
        });
        supervise("lease queue check", core, |core| async move {
            core.check_queues().await
        });
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
    /// **Invariant:** the expiry recorder only cleans up. Each expiry is an operation like any other: the
    /// state machine checks it again under the lock.
    async fn record_due_expiries(&self) {
        let due_max = usize::try_from(RECORD_MAX).unwrap_or(usize::MAX);
        let mut sweep_at = self.clock.tick();
        loop {
            let due = self.expiries.take_due(self.clock.tick(), due_max);
            let mut is_full = due.len() >= due_max;
            let mut is_stored = self.record_expiries(due).await;
            let started_at = self.clock.tick();
            if !is_full && started_at >= sweep_at {
                let found = match self.store.expired_leases(RECORD_MAX).await {
                    Ok(found) => found.value,
                    Err(error) => {
                        tracing::debug!(%error, "expired leases cannot be searched for: {error}");
                        Vec::new()
                    }
                };
                is_full = found.len() >= due_max;
                if !is_full {
                    let ended = self.clock.tick();
                    sweep_at = ended.plus(SWEEP_INTERVAL_MS.max(ended.since(started_at) * SWEEP_SHARE));
                }
                is_stored &= self.record_expiries(found).await;
            }
            if !is_full || !is_stored {
                tokio::time::sleep(RECORD_INTERVAL).await;
            }
        }
    }

    /// Whether the store answered for all of them.
    async fn record_expiries(&self, resources: Vec<Resource>) -> bool {
        let records = resources.into_iter().map(async |resource| {
            let expire = Operation::Expire {
                resource: resource.clone(),
            };
            let answer = self.submit_and_wait(Lane::Main, expire).await;
            let is_stored = answer.is_ok();
            self.expiries
                .record_attempt(resource, answer.ok().map(|applied| applied.now));
            is_stored
        });
        let stored = futures::future::join_all(records).await;
        stored.into_iter().all(|is_stored| is_stored)
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
        let mut last_sent = self.clock.tick();
        loop {
            let sent = self.clock.tick();
            let result = self.store.send_heartbeat().await;
            if result.is_ok() {
                if sent.since(last_sent) > HEARTBEAT_GAP_MS_MAX {
                    // The rows of our waiters may have been deleted: each tries at once, and joins its queue again.
                    self.waiting.hint_all(self.clock.tick());
                }
                last_sent = sent;
            }
            tokio::time::sleep(if result.is_ok() {
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
            let notification = self.store.next_notification().await;
            for head in &notification.heads {
                // A delay counts from the receipt: the time that the notification was under way makes
                // the attempt late, until the queue check corrects it.
                let at = if head.in_ms == 0 {
                    read_at
                } else {
                    self.clock.tick()
                };
                self.notify_waiter(head, at);
            }
            if notification.missed {
                self.publish(None);
                self.notify_heads().await;
            } else if !notification.changed.is_empty() {
                self.publish(Some(notification.changed.into()));
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
