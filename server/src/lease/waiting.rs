//! Waiters of this process: each is a small task with no database connection. Who is first is the store's word; here is
//! only who must be told, and when to try.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::lease::LeaseId;
use domain::names::Resource;
use domain::observation::Tick;
use tokio::sync::{oneshot, watch};

use super::core::{Answer, Core};
use super::error::LeaseError;
use super::operation::{AcquireOp, Done, Operation, Turn};
use super::store::Lane;
use super::tally::{GrantedAfter, Tallied, What};

const NEVER: Tick = Tick(i64::MAX);

#[derive(Default)]
pub(super) struct Waiting(Mutex<HashMap<LeaseId, Place>>);

struct Place {
    resource: Resource,
    try_at: watch::Sender<Tick>,
}

impl Waiting {
    fn stand(&self, id: LeaseId, resource: Resource) -> watch::Receiver<Tick> {
        let (try_at, told) = watch::channel(NEVER);
        let place = Place { resource, try_at };
        self.lock().insert(id, place);
        told
    }

    fn go(&self, id: LeaseId) {
        self.lock().remove(&id);
    }

    /// When a waiter should try. True only if it is not ours.
    fn set(&self, id: LeaseId, change: impl FnOnce(&mut Tick)) -> bool {
        match self.lock().get(&id) {
            Some(place) => {
                place.try_at.send_modify(change);
                true
            }
            None => false,
        }
    }

    /// The store says that this one is first. False when nobody of that name waits here.
    pub(super) fn hint(&self, id: LeaseId, at: Tick) -> bool {
        self.set(id, |try_at| *try_at = at)
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

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<LeaseId, Place>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How the wait for a turn ended.
enum Woken {
    Turn,
    HungUp,
    OutOfPatience,
    ShuttingDown,
}

/// Stands in line until granted, out of patience, hung up on, or sent away; then answers.
pub(super) async fn wait(
    core: Arc<Core>,
    mut op: Box<AcquireOp>,
    mut reply: oneshot::Sender<Result<Answer, LeaseError>>,
    until: Tick,
) {
    let mut told = core.waiting.stand(op.id, op.resource.clone());
    let began = core.clock.tick();
    op.turn = Turn::OrWait;
    let answer = loop {
        core.waiting.set(op.id, |try_at| *try_at = NEVER);
        let answer = core.ask(Lane::Main, Operation::Acquire(op.clone())).await;
        let (retry_after_ms, ahead, read_at) = match &answer {
            Ok(Answer {
                done: Done::Queued { refusal, ahead },
                read_at,
                ..
            }) => (refusal.retry_after_ms, *ahead, *read_at),
            _ => break answer,
        };
        op.turn = Turn::Waiting;
        if ahead == 0 {
            let at = read_at.plus(retry_after_ms);
            core.waiting.set(op.id, |try_at| *try_at = at.min(*try_at));
        }
        match turn(&core, &mut told, &mut reply, until).await {
            Woken::Turn => core.metrics.grant_attempts.one(),
            Woken::HungUp => {
                core.metrics.waiters_gone.one();
                break leave(&core, &op).await;
            }
            Woken::OutOfPatience => break leave(&core, &op).await,
            Woken::ShuttingDown => {
                core.forget(leaving(&op));
                break Err(LeaseError::ShuttingDown);
            }
        }
    };
    core.waiting.go(op.id);
    if op.turn == Turn::Waiting {
        let now = core.clock.now();
        let ms = now.tick.since(began);
        core.metrics.waits.one();
        core.metrics.wait_ms.ms(ms);
        core.tally.add(waited(&op, (ms, now.wall), &answer));
    }
    deliver(&core, &op, reply, answer, until).await;
}

/// A wait that ended, and a refusal where it was in vain.
fn waited(
    op: &AcquireOp,
    (ms, at): (i64, DateTime<Utc>),
    answer: &Result<Answer, LeaseError>,
) -> Vec<Tallied> {
    let of = |what| Tallied {
        resource: op.resource.clone(),
        what,
    };
    let (outcome, granted) = match answer.as_ref().map(|answer| &answer.done) {
        Ok(Done::Acquired { lease, .. }) => (
            "acquired",
            Some(Box::new(GrantedAfter {
                at,
                owner: lease.owner.clone(),
                token: lease.token,
            })),
        ),
        Ok(Done::Refused { .. }) => ("timeout", None),
        _ => ("error", None),
    };
    let mut all = vec![of(What::Waited { ms, outcome, granted })];
    if outcome == "timeout" {
        all.push(of(What::TimedOut));
    }
    all
}

/// Hands the answer over. A grant that came too late, or that nobody takes, is given back.
async fn deliver(
    core: &Core,
    op: &AcquireOp,
    reply: oneshot::Sender<Result<Answer, LeaseError>>,
    answer: Result<Answer, LeaseError>,
    until: Tick,
) {
    let granted = match &answer {
        Ok(Answer {
            done:
                Done::Acquired {
                    lease,
                    replayed: false,
                    ..
                },
            ..
        }) => Some(lease.id),
        Err(LeaseError::Unavailable) => {
            // It may stand in line, or even have been granted: neither may outlive this request.
            core.forget(leaving(op));
            core.give_back(op, op.id);
            None
        }
        _ => None,
    };
    let late = op.turn == Turn::Waiting && core.clock.tick() > until;
    if let Some(lease) = granted.filter(|_| late || core.stop.is_cancelled()) {
        core.give_back(op, lease);
        let answer = if core.stop.is_cancelled() {
            Err(LeaseError::ShuttingDown)
        } else {
            leave(core, op).await
        };
        let _ = reply.send(answer);
    } else if let (Err(_), Some(lease)) = (reply.send(answer), granted) {
        core.give_back(op, lease);
    }
}

fn leaving(op: &AcquireOp) -> Operation {
    Operation::Leave {
        resource: op.resource.clone(),
        waiter: op.id,
    }
}

async fn leave(core: &Core, op: &AcquireOp) -> Result<Answer, LeaseError> {
    core.ask(Lane::Main, leaving(op)).await
}

async fn turn(
    core: &Core,
    told: &mut watch::Receiver<Tick>,
    reply: &mut oneshot::Sender<Result<Answer, LeaseError>>,
    until: Tick,
) -> Woken {
    loop {
        let try_at = *told.borrow_and_update();
        let now = core.clock.tick();
        if try_at <= now && now < until {
            return Woken::Turn;
        }
        let next = try_at.min(until);
        tokio::select! {
            biased;
            () = reply.closed() => return Woken::HungUp,
            () = core.stop.cancelled() => return Woken::ShuttingDown,
            _ = told.changed() => {}
            () = tokio::time::sleep(until_tick(now, next)) => {
                if core.clock.tick() >= until {
                    return Woken::OutOfPatience;
                }
            }
        }
    }
}

fn until_tick(now: Tick, then: Tick) -> Duration {
    Duration::from_millis(u64::try_from(then.since(now).max(1)).unwrap_or(1))
}
