//! Waiters of this process: one small task each, without a database connection. The store decides which one is
//! first; this module holds when each should try.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::lease::LeaseId;
use domain::names::Resource;
use domain::tick::Tick;
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};

use super::activity_log::{Activity, ActivityEntry, GrantedAfter};
use super::core::{BatchReply, Core};
use super::error::LeaseError;
use super::operation::{AcquireMode, AcquireOp, Operation, OperationResult};
use super::store::Lane;

const NEVER: Tick = Tick(i64::MAX);
/// Interval in which the waiter of a repeated idempotency key checks whether the earlier request has got its grant: if that
/// was on another replica, nothing else notifies this one. Milliseconds.
const KEY_CHECK_MS: i64 = 500;

#[derive(Default)]
pub(super) struct WaiterRegistry(Mutex<HashMap<LeaseId, WaiterSlot>>);

struct WaiterSlot {
    resource: Resource,
    try_at: watch::Sender<Tick>,
}

impl WaiterRegistry {
    fn register(&self, id: LeaseId, resource: Resource) -> watch::Receiver<Tick> {
        let (try_at, try_at_changes) = watch::channel(NEVER);
        let place = WaiterSlot { resource, try_at };
        self.lock().insert(id, place);
        try_at_changes
    }

    fn remove(&self, id: LeaseId) {
        self.lock().remove(&id);
    }

    /// Changes when a waiter should try. False if it does not wait in this process.
    fn set(&self, id: LeaseId, change: impl FnOnce(&mut Tick)) -> bool {
        match self.lock().get(&id) {
            // Its task holds the receiver until it ends.
            Some(place) if !place.try_at.is_closed() => {
                place.try_at.send_modify(change);
                true
            }
            _ => false,
        }
    }

    /// The waiter is at the head of its queue. False if it does not wait in this process.
    pub(super) fn hint(&self, id: LeaseId, at: Tick) -> bool {
        self.set(id, |try_at| *try_at = at)
    }

    /// Every waiter of this process should try.
    pub(super) fn hint_all(&self, at: Tick) {
        for place in self.lock().values() {
            place.try_at.send_replace(at);
        }
    }

    pub(super) fn resources(&self) -> Vec<Resource> {
        let mut names: Vec<Resource> = self.lock().values().map(|place| place.resource.clone()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    pub(super) fn count(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, HashMap<LeaseId, WaiterSlot>> {
        self.0.lock()
    }
}

/// Why a wait for the head of the queue ended.
enum WakeReason {
    Head,
    Disconnected,
    TimedOut,
    ShuttingDown,
}

/// Waits in the queue until granted, timed out, disconnected or shut down; then answers the request.
pub(super) async fn wait(
    core: Arc<Core>,
    mut op: Box<AcquireOp>,
    mut reply: oneshot::Sender<Result<BatchReply, LeaseError>>,
    until: Tick,
) {
    let mut try_at_changes = core.waiting.register(op.id, op.resource.clone());
    let started_at = core.clock.tick();
    op.mode = AcquireMode::OrWait;
    let mut checks_key = false;
    let answer = loop {
        core.waiting.set(op.id, |try_at| *try_at = NEVER);
        let attempt = Operation::Acquire(op.clone());
        let answer = if op.mode == AcquireMode::Waiting {
            core.submit_as_waiter(attempt).await
        } else {
            core.submit_and_wait(Lane::Main, attempt).await
        };
        let (retry_after_ms, ahead, read_at) = match &answer {
            Ok(BatchReply {
                done:
                    OperationResult::Queued {
                        refusal,
                        ahead,
                        is_repeated,
                    },
                read_at,
                ..
            }) => {
                checks_key |= *is_repeated;
                (refusal.retry_after_ms, *ahead, *read_at)
            }
            _ => break answer,
        };
        op.mode = AcquireMode::Waiting;
        if ahead == 0 {
            let at = read_at.plus(retry_after_ms);
            core.waiting.set(op.id, |try_at| *try_at = at.min(*try_at));
        }
        let check_at = if checks_key {
            core.clock.tick().plus(KEY_CHECK_MS)
        } else {
            NEVER
        };
        match wait_until_head(&core, &mut try_at_changes, &mut reply, check_at, until).await {
            WakeReason::Head => core.metrics.grant_attempts.increment(),
            WakeReason::Disconnected => {
                core.metrics.waiters_gone.increment();
                break leave(&core, &op).await;
            }
            // The grant may have come since the last check.
            WakeReason::TimedOut if checks_key => checks_key = false,
            WakeReason::TimedOut => break leave(&core, &op).await,
            WakeReason::ShuttingDown => break Err(LeaseError::ShuttingDown),
        }
    };
    core.waiting.remove(op.id);
    if op.mode == AcquireMode::Waiting {
        let now = core.clock.now();
        let ms = now.tick.since(started_at);
        core.metrics.waits.increment();
        core.metrics.wait_ms.add_ms(ms);
        core.activity.add(wait_activity(&op, (ms, now.wall), &answer));
    }
    deliver(&core, &op, reply, answer, until).await;
}

/// Activity of an ended wait, with a refusal after a timeout.
fn wait_activity(
    op: &AcquireOp,
    (ms, at): (i64, DateTime<Utc>),
    answer: &Result<BatchReply, LeaseError>,
) -> Vec<ActivityEntry> {
    let entry = |what| ActivityEntry {
        resource: op.resource.clone(),
        what,
    };
    let (outcome, granted) = match answer.as_ref().map(|answer| &answer.done) {
        Ok(OperationResult::Acquired { lease, .. }) => (
            "acquired",
            Some(Box::new(GrantedAfter {
                at,
                owner: lease.owner.clone(),
                token: lease.token,
            })),
        ),
        Ok(OperationResult::Refused { .. }) => ("timeout", None),
        _ => ("error", None),
    };
    let mut entries = vec![entry(Activity::Waited { ms, outcome, granted })];
    if outcome == "timeout" {
        entries.push(entry(Activity::TimedOut));
    }
    entries
}

/// Answers the request. A grant that is too late or that no client receives is released.
async fn deliver(
    core: &Core,
    op: &AcquireOp,
    reply: oneshot::Sender<Result<BatchReply, LeaseError>>,
    answer: Result<BatchReply, LeaseError>,
    until: Tick,
) {
    let granted = match &answer {
        Ok(BatchReply {
            done:
                OperationResult::Acquired {
                    lease,
                    replayed: false,
                    ..
                },
            ..
        }) => Some(lease.id),
        Err(LeaseError::Unavailable) => {
            // It may be queued or even granted: neither may outlive this request.
            core.release_unclaimed(op, op.id);
            core.leave_until_answered(&op.resource, op.id);
            let _ = reply.send(answer);
            return;
        }
        Ok(BatchReply {
            done: OperationResult::Refused { .. } | OperationResult::Acquired { .. },
            ..
        }) => None,
        // Another end of a wait, such as a key that is used for another request, leaves the waiter in its queue.
        _ if op.mode == AcquireMode::Waiting => {
            core.leave_until_answered(&op.resource, op.id);
            None
        }
        _ => None,
    };
    let is_late = op.mode == AcquireMode::Waiting && core.clock.tick() > until;
    if let Some(lease) = granted.filter(|_| is_late || core.stop.is_cancelled()) {
        core.release_unclaimed(op, lease);
        let answer = if core.stop.is_cancelled() {
            Err(LeaseError::ShuttingDown)
        } else {
            leave(core, op).await
        };
        let _ = reply.send(answer);
    } else if let (Err(_), Some(lease)) = (reply.send(answer), granted) {
        core.release_unclaimed(op, lease);
    }
}

fn leave_operation(op: &AcquireOp) -> Operation {
    Operation::Leave {
        resource: op.resource.clone(),
        waiter: op.id,
    }
}

async fn leave(core: &Core, op: &AcquireOp) -> Result<BatchReply, LeaseError> {
    core.submit_as_waiter(leave_operation(op)).await
}

async fn wait_until_head(
    core: &Core,
    try_at_changes: &mut watch::Receiver<Tick>,
    reply: &mut oneshot::Sender<Result<BatchReply, LeaseError>>,
    check_at: Tick,
    until: Tick,
) -> WakeReason {
    loop {
        let try_at = (*try_at_changes.borrow_and_update()).min(check_at);
        let now = core.clock.tick();
        if try_at <= now && now < until {
            return WakeReason::Head;
        }
        let next = try_at.min(until);
        tokio::select! {
            biased;
            () = reply.closed() => return WakeReason::Disconnected,
            () = core.stop.cancelled() => return WakeReason::ShuttingDown,
            _ = try_at_changes.changed() => {}
            () = tokio::time::sleep(until_tick(now, next)) => {
                if core.clock.tick() >= until {
                    return WakeReason::TimedOut;
                }
            }
        }
    }
}

fn until_tick(now: Tick, then: Tick) -> Duration {
    Duration::from_millis(u64::try_from(then.since(now).max(1)).unwrap_or(1))
}

#[cfg(test)]
mod tests;
