//! What the parts of the service share, and the way of an operation: handed over to a lane, applied with its batch as one
//! transaction, and answered after its COMMIT.
//!
//! **Invariant:** renewals have a lane of their own; no flood of acquires delays them by more than one batch. A batch is
//! never cancelled: a client that hangs up loses its answer, nothing else.

use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use domain::lease::{How, LeaseId, Scope, StoreTime};
use domain::names::Resource;
use domain::observation::Tick;
use futures::FutureExt as _;
use opentelemetry::trace::SpanContext;
use tokio::sync::{SetOnce, broadcast, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::caller::LeasePrincipal;
use super::error::LeaseError;
use super::followers::Followers;
use super::metrics::LeaseMetrics;
use super::operation::{AcquireOp, Applied, Done, Operation, Turn};
use super::store::{Lane, Store, StoreError};
use super::tally::Tally;
use super::traced::{Traced, Traces};
use super::waiting::Waiting;
use crate::clock::{Clock, Stopwatch};
use crate::tasks;
use crate::telemetry::meters;
use crate::telemetry::trace::{self, Commits};

/// Operations that may wait for a transaction.
const QUEUE_MAX: usize = 32_768;
const CONFLICT_RETRIES: usize = 5;
const CHANGES_KEPT: usize = 1_024;

/// An answer with the clocks of its batch.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) done: Done,
    pub(super) now: StoreTime,
    pub(super) read_at: Tick,
}

pub(super) type Reply = oneshot::Sender<Result<Answer, LeaseError>>;

pub(super) struct Job {
    operation: Operation,
    reply: Reply,
    /// The trace that asks, if there is one.
    trace: Option<Box<SpanContext>>,
}

/// A batch that is through with the store.
pub(super) struct Batch {
    operations: Vec<Operation>,
    replies: Vec<Reply>,
    applied: Result<Applied, StoreError>,
}

/// Names that look different now; none: something may have been missed.
pub(super) type Changed = Option<Arc<[Resource]>>;

pub(super) struct Core {
    pub(super) store: Box<dyn Store>,
    pub(super) clock: Clock,
    pub(super) metrics: LeaseMetrics,
    pub(super) tally: Tally,
    /// Which trace did what, for the events of history.
    pub(super) traced: Traced,
    pub(super) waiting: Waiting,
    pub(super) followers: Followers,
    pub(super) changes: broadcast::Sender<Changed>,
    /// The server shuts down: who waits is sent away.
    pub(super) stop: CancellationToken,
    /// The service is closed: the lanes finish what they have, and end.
    pub(super) closed: CancellationToken,
    /// The lanes have died of a panic: nothing is granted, renewed or released any more, and why.
    pub(super) dead: SetOnce<String>,
    urgent: mpsc::Sender<Job>,
    /// What concerns one resource goes through one of them, in order.
    main: Vec<mpsc::Sender<Job>>,
}

/// The receiving ends, for whoever starts the lanes.
pub(super) struct Queues {
    pub(super) urgent: mpsc::Receiver<Job>,
    pub(super) main: Vec<mpsc::Receiver<Job>>,
}

impl Core {
    pub(super) fn new(store: Box<dyn Store>, clock: Clock, stop: CancellationToken) -> (Arc<Self>, Queues) {
        let (urgent, urgent_queue) = mpsc::channel(QUEUE_MAX);
        let lanes = store.main_lanes().max(1);
        let (main, main_queues) = (0..lanes).map(|_| mpsc::channel(QUEUE_MAX)).unzip();
        let core = Arc::new(Self {
            store,
            clock,
            metrics: LeaseMetrics::default(),
            tally: Tally::default(),
            traced: Traced::default(),
            waiting: Waiting::default(),
            followers: Followers::default(),
            changes: broadcast::Sender::new(CHANGES_KEPT),
            stop,
            closed: CancellationToken::new(),
            dead: SetOnce::new(),
            urgent,
            main,
        });
        let queues = Queues {
            urgent: urgent_queue,
            main: main_queues,
        };
        (core, queues)
    }

    /// Hands an operation over. It will be done even if nobody waits for the answer.
    pub(super) fn submit(&self, lane: Lane, operation: Operation, reply: Reply) {
        let queue = match lane {
            Lane::Urgent => &self.urgent,
            Lane::Main => self.main_of(|| route(&operation)),
        };
        self.hand_over(queue, operation, reply);
    }

    /// The main lane of what concerns one resource.
    fn main_of(&self, route: impl FnOnce() -> u64) -> &mpsc::Sender<Job> {
        match &*self.main {
            [only] => only,
            lanes => &lanes[usize::try_from(route() % lanes.len() as u64).unwrap_or(0)],
        }
    }

    fn hand_over(&self, queue: &mpsc::Sender<Job>, operation: Operation, reply: Reply) {
        if let Err(error) = queue.try_send(Job {
            operation,
            reply,
            trace: trace::here().map(Box::new),
        }) {
            let (why, job) = match error {
                mpsc::error::TrySendError::Full(job) => (LeaseError::Overloaded, job),
                mpsc::error::TrySendError::Closed(job) => (LeaseError::ShuttingDown, job),
            };
            let _ = job.reply.send(Err(why));
        }
    }

    pub(super) async fn ask(&self, lane: Lane, operation: Operation) -> Result<Answer, LeaseError> {
        let (reply, answer) = oneshot::channel();
        self.submit(lane, operation, reply);
        answer.await.unwrap_or(Err(LeaseError::ShuttingDown))
    }

    /// Hands an operation over whose answer nobody needs.
    pub(super) fn forget(&self, operation: Operation) {
        let (reply, _) = oneshot::channel();
        self.submit(Lane::Main, operation, reply);
    }

    /// A grant that nobody takes is released at once, and its key forgotten.
    pub(super) fn give_back(&self, op: &AcquireOp, lease: LeaseId) {
        self.metrics.given_back.one();
        let release = Operation::Release {
            lease,
            principal: LeasePrincipal::new(op.issuer.clone()),
            scope: Scope::everything(),
            unbind: op.key.as_ref().map(|key| key.name.clone()),
        };
        // Behind the acquire, which may not have been done yet.
        let (reply, _) = oneshot::channel();
        self.hand_over(self.main_of(|| hash(&op.resource)), release, reply);
    }

    /// Commits a batch, or fails to. Nobody is told before [`Self::settle`].
    pub(super) async fn commit(&self, lane: Lane, jobs: Vec<Job>) -> Batch {
        let traces = Traces::of(jobs.iter().map(|job| job.trace.as_deref()));
        let (operations, replies): (Vec<_>, Vec<_>) =
            jobs.into_iter().map(|job| (job.operation, job.reply)).unzip();
        let commits = Commits::begin(traces.all(), self.system(), operations.len());
        let watch = Stopwatch::start();
        let applied = self.try_apply(lane, &operations).await;
        meters().statement(self.system(), "lease_batch", applied.is_err(), watch.seconds());
        commits.end(applied.is_err().then_some("the store did not commit"));
        // At once: whoever looks at the store may see what this batch did before its callers hear of it.
        if let Ok(applied) = &applied {
            self.traced.note(&operations, &applied.done, &traces);
        }
        Batch {
            operations,
            replies,
            applied,
        }
    }

    /// Tells everybody what has become of a batch.
    pub(super) fn settle(&self, batch: Batch) {
        let Batch {
            operations,
            replies,
            applied,
        } = batch;
        match applied {
            Ok(applied) => self.answer(&operations, replies, applied),
            Err(error) => self.fail(&operations, replies, &error),
        }
    }

    /// Of the store, as traces and metrics say it.
    fn system(&self) -> &'static str {
        if self.store.has_one_writer() {
            "sqlite"
        } else {
            "postgresql"
        }
    }

    async fn try_apply(&self, lane: Lane, operations: &[Operation]) -> Result<Applied, StoreError> {
        let mut tries = 0;
        loop {
            self.metrics.batches.one();
            // What panics in a batch takes the writer or the transaction with it, and nothing else: the next batch reads
            // the store anew.
            let applied = async {
                tasks::drill_step();
                self.store.apply(lane, operations).await
            };
            let applied = AssertUnwindSafe(applied).catch_unwind().await;
            let panicked = |payload| Err(StoreError::Panicked(tasks::panicked(tasks::LEASE_BATCH, payload)));
            match applied.unwrap_or_else(panicked) {
                Err(StoreError::Conflict) if tries < CONFLICT_RETRIES => tries += 1,
                done => return done,
            }
        }
    }

    fn answer(&self, operations: &[Operation], replies: Vec<Reply>, applied: Applied) {
        self.metrics
            .operations
            .add(u64::try_from(operations.len()).unwrap_or(0));
        for head in &applied.heads {
            self.hint(head, applied.read_at);
        }
        self.tally.add(applied.tally);
        for lease in &applied.expired {
            self.metrics.expirations.one();
            self.metrics.held(lease);
        }
        for ((operation, reply), done) in operations.iter().zip(replies).zip(applied.done) {
            self.count(operation, &done);
            let answer = Answer {
                done,
                now: applied.now,
                read_at: applied.read_at,
            };
            if let Err(Ok(untaken)) = reply.send(Ok(answer)) {
                self.untaken(operation, &untaken.done);
            }
        }
        if !applied.changed.is_empty() {
            self.publish(Some(applied.changed.into()));
        }
    }

    /// Tells a waiter of ours when to try. One that is not there any more is taken out of the line.
    pub(super) fn hint(&self, head: &super::operation::Head, read_at: Tick) {
        if head.replica != *self.store.replica() {
            return;
        }
        if !self.waiting.hint(head.waiter, read_at.plus(head.in_ms)) {
            self.forget(Operation::Leave {
                resource: head.resource.clone(),
                waiter: head.waiter,
            });
        }
    }

    pub(super) fn publish(&self, changed: Changed) {
        self.followers.kick();
        let _ = self.changes.send(changed);
    }

    /// The client hung up before its answer. With an idempotency key it will ask again, and must find its lease.
    fn untaken(&self, operation: &Operation, done: &Done) {
        if let (
            Operation::Acquire(op),
            Done::Acquired {
                lease,
                replayed: false,
                ..
            },
        ) = (operation, done)
            && (op.key.is_none() || op.turn != Turn::Once)
        {
            self.give_back(op, lease.id);
        }
    }

    fn fail(&self, operations: &[Operation], replies: Vec<Reply>, error: &StoreError) {
        self.metrics.failed_batches.one();
        self.metrics
            .unavailable
            .add(u64::try_from(operations.len()).unwrap_or(0));
        let releases = operations
            .iter()
            .filter(|operation| is_release(operation))
            .count();
        self.metrics
            .release_failures
            .add(u64::try_from(releases).unwrap_or(0));
        tracing::warn!(batch.operations = operations.len(), %error, "a batch of lease operations failed: {error}");
        for reply in replies {
            let _ = reply.send(Err(LeaseError::from(error)));
        }
    }

    fn count(&self, operation: &Operation, done: &Done) {
        let metrics = &self.metrics;
        match done {
            Done::Acquired { replayed: true, .. } => metrics.replayed.one(),
            Done::Acquired { reclaimed, .. } => {
                metrics.granted.one();
                metrics.reclaims.add(u64::from(*reclaimed));
            }
            Done::Refused { .. } => metrics.refused.one(),
            Done::Renewed(_) => metrics.renewals.one(),
            Done::Released(lease) => {
                metrics.releases.one();
                metrics.held(lease);
            }
            Done::Revoked(lease) => {
                metrics.revocations.one();
                metrics.held(lease);
            }
            Done::Lost(_, ending) if matches!(operation, Operation::Renew { .. }) => {
                metrics.losses.one();
                meters().lost(super::events::cause(&ending.how));
            }
            // Released twice is released.
            Done::Lost(_, ending) if is_release(operation) && !matches!(ending.how, How::Released) => {
                metrics.release_failures.one();
            }
            Done::Lost(..)
            | Done::Expired(_)
            | Done::Queued { .. }
            | Done::KeyReused
            | Done::LifetimeReached(_)
            | Done::NotFound
            | Done::Nothing => {}
        }
    }
}

const fn is_release(operation: &Operation) -> bool {
    matches!(operation, Operation::Release { .. })
}

/// Which of the main lanes an operation takes: that of its resource where it names one. Who names a lease has had the
/// answer to its acquire.
fn route(operation: &Operation) -> u64 {
    match operation {
        Operation::Acquire(op) => hash(&op.resource),
        Operation::Expire { resource } | Operation::Leave { resource, .. } => hash(resource),
        Operation::Reject(rejection) => hash(&rejection.resource),
        Operation::Renew { lease, .. }
        | Operation::Release { lease, .. }
        | Operation::Revoke { lease, .. } => hash(lease),
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
