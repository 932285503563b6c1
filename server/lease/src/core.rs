//! State shared by the parts of the service, and the path of an operation: submitted to a lane,
//! applied with its batch in one transaction, answered after the commit.
//!
//! **Invariant:** renewals have a lane of their own; a flood of acquires delays them by one
//! batch at most. A batch is never cancelled: a client that disconnects loses its answer and
//! nothing else.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::lease::StoreTime;
use domain::names::Resource;
use domain::tick::Tick;
use futures::FutureExt as _;
use opentelemetry::trace::SpanContext;
use tokio::sync::{SetOnce, broadcast, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::abandoned_requests::AbandonedRequests;
use super::activity_log::ActivityLog;
use super::common::{Changed, Common};
use super::error::LeaseError;
use super::expiry_schedule::ExpirySchedule;
use super::lane_route::{hash, route};
use super::metrics::LeaseMetrics;
use super::operation::{Applied, Operation, OperationResult};
use super::store::{Lane, Store, StoreError};
use super::trace_index::{Traced, Traces};
use super::waiters::WaiterRegistry;
use super::watchers::Followers;
use runtime::clock::{Clock, Stopwatch};
use runtime::tasks;
use runtime::telemetry::instruments;
use runtime::telemetry::trace::{self, Commits};

/// Operations queued per lane; further ones are answered `Overloaded`, unless a waiter submits them.
pub(super) const QUEUE_MAX: usize = 32_768;
const CONFLICT_RETRIES: usize = 5;

/// A result with the clock readings of its batch.
#[derive(Debug, Clone)]
pub(super) struct BatchReply {
    pub(super) done: OperationResult,
    pub(super) now: StoreTime,
    pub(super) read_at: Tick,
}

pub(super) type Reply = oneshot::Sender<Result<BatchReply, LeaseError>>;
pub(super) type Answer = oneshot::Receiver<Result<BatchReply, LeaseError>>;

pub(super) struct Job {
    operation: Operation,
    reply: Reply,
    /// Trace of the request, if it is sampled.
    trace: Option<Box<SpanContext>>,
}

impl Job {
    fn new(operation: Operation, reply: Reply) -> Self {
        Self {
            operation,
            reply,
            trace: trace::current_span_context().map(Box::new),
        }
    }
}

/// A batch that the store has committed or rejected.
pub(super) struct Batch {
    pub(super) operations: Vec<Operation>,
    replies: Vec<Reply>,
    pub(super) applied: Result<Applied, StoreError>,
}

impl Batch {
    /// The operations of a batch that was not written.
    pub(super) fn into_jobs(self) -> Vec<Job> {
        let jobs = self.operations.into_iter().zip(self.replies);
        jobs.map(|(operation, reply)| Job {
            operation,
            reply,
            trace: None,
        })
        .collect()
    }
}

/// The lease service on one store: its batches, waiters and background tasks. A sharded service has one for each
/// shard; what they share comes from [`Common`].
pub(super) struct Core {
    pub(super) store: Box<dyn Store>,
    pub(super) clock: Clock,
    pub(super) metrics: Arc<LeaseMetrics>,
    pub(super) activity: Arc<ActivityLog>,
    /// Trace ids of grants and releases, for history events.
    pub(super) traced: Arc<Traced>,
    pub(super) waiting: WaiterRegistry,
    pub(super) followers: Followers,
    pub(super) expiries: ExpirySchedule,
    pub(super) abandoned: AbandonedRequests,
    pub(super) changes: broadcast::Sender<Changed>,
    pub(super) stop: CancellationToken,
    pub(super) closed: CancellationToken,
    pub(super) failure: Arc<SetOnce<String>>,
    /// Whether the store did not answer the last batch or maintenance run.
    is_down: AtomicBool,
    urgent: mpsc::Sender<Job>,
    /// Operations that name the same resource go through the same lane, in order.
    main: Vec<mpsc::Sender<Job>>,
}

/// The receiving ends of the lanes.
pub(super) struct Queues {
    pub(super) urgent: mpsc::Receiver<Job>,
    pub(super) main: Vec<mpsc::Receiver<Job>>,
}

impl Core {
    pub(super) fn new(store: Box<dyn Store>, common: Common) -> (Arc<Self>, Queues) {
        let (urgent, urgent_queue) = mpsc::channel(QUEUE_MAX);
        let lanes = store.main_lanes().max(1);
        let (main, main_queues) = (0..lanes).map(|_| mpsc::channel(QUEUE_MAX)).unzip();
        let core = Arc::new(Self {
            expiries: ExpirySchedule::default(),
            abandoned: AbandonedRequests::default(),
            store,
            clock: common.clock,
            metrics: common.metrics,
            activity: common.activity,
            traced: common.traced,
            waiting: WaiterRegistry::default(),
            followers: Followers::default(),
            changes: common.changes,
            stop: common.stop,
            closed: common.closed,
            failure: common.failure,
            is_down: AtomicBool::new(false),
            urgent,
            main,
        });
        let queues = Queues {
            urgent: urgent_queue,
            main: main_queues,
        };
        (core, queues)
    }

    /// Submits an operation. It is executed even if the caller drops the reply.
    pub(super) fn submit(&self, lane: Lane, operation: Operation, reply: Reply) {
        let queue = match lane {
            Lane::Urgent => &self.urgent,
            Lane::Main => self.main_of(|| route(&operation)),
        };
        self.enqueue(queue, operation, reply);
    }

    /// As [`submit_and_wait`](Self::submit_and_wait) on the main lane, but waits while the lane is full. A waiter that is refused
    /// would leave its row in the queue, and the lock would stay reserved for it.
    pub(super) async fn submit_as_waiter(&self, operation: Operation) -> Result<BatchReply, LeaseError> {
        let (reply, answer) = oneshot::channel();
        let lane = self.main_of(|| route(&operation));
        // Fails if the lane has ended, which drops `reply`.
        let _ = lane.send(Job::new(operation, reply)).await;
        answer.await.unwrap_or(Err(LeaseError::ShuttingDown))
    }

    /// The main lane of a resource or lease.
    fn main_of(&self, route: impl FnOnce() -> u64) -> &mpsc::Sender<Job> {
        match &*self.main {
            [only] => only,
            lanes => &lanes[usize::try_from(route() % lanes.len() as u64).unwrap_or(0)],
        }
    }

    fn enqueue(&self, queue: &mpsc::Sender<Job>, operation: Operation, reply: Reply) {
        if let Err(error) = queue.try_send(Job::new(operation, reply)) {
            let (why, job) = match error {
                mpsc::error::TrySendError::Full(job) => (LeaseError::Overloaded, job),
                mpsc::error::TrySendError::Closed(job) => (LeaseError::ShuttingDown, job),
            };
            let _ = job.reply.send(Err(why));
        }
    }

    pub(super) async fn submit_and_wait(
        &self,
        lane: Lane,
        operation: Operation,
    ) -> Result<BatchReply, LeaseError> {
        let (reply, answer) = oneshot::channel();
        self.submit(lane, operation, reply);
        answer.await.unwrap_or(Err(LeaseError::ShuttingDown))
    }

    /// Submits an operation and ignores its result.
    pub(super) fn submit_detached(&self, operation: Operation) {
        let (reply, _) = oneshot::channel();
        self.submit(Lane::Main, operation, reply);
    }

    /// Submits an operation to the lane of the acquires of a resource.
    pub(super) fn submit_with_acquires(&self, resource: &Resource, operation: Operation) -> Answer {
        let (reply, answer) = oneshot::channel();
        self.enqueue(self.main_of(|| hash(resource)), operation, reply);
        answer
    }

    /// Commits a batch. Callers get their answers from [`Self::finish_batch`].
    pub(super) async fn commit(&self, lane: Lane, jobs: Vec<Job>) -> Batch {
        let traces = Traces::from_jobs(jobs.iter().map(|job| job.trace.as_deref()));
        let (operations, replies): (Vec<_>, Vec<_>) =
            jobs.into_iter().map(|job| (job.operation, job.reply)).unzip();
        let commits = Commits::begin(traces.all(), self.system(), operations.len());
        let watch = Stopwatch::start();
        let applied = self.try_apply(lane, &operations).await;
        instruments().statement(self.system(), "lease_batch", applied.is_err(), watch.seconds());
        self.record_answer(&applied);
        commits.end(applied.is_err().then_some("the store did not commit"));
        // Before the replies are sent: a reader of the store may already see this batch.
        if let Ok(applied) = &applied {
            self.expiries.record_batch(applied);
            self.traced.record(&operations, &applied.done, &traces);
        }
        Batch {
            operations,
            replies,
            applied,
        }
    }

    /// Answers the callers of a batch and publishes its changes.
    pub(super) fn finish_batch(&self, batch: Batch) {
        let Batch {
            operations,
            replies,
            applied,
        } = batch;
        match applied {
            Ok(applied) => self.reply(&operations, replies, applied),
            Err(error) => self.fail(&operations, replies, &error),
        }
    }

    /// Records whether the store answers. A conflict is an answer.
    pub(super) fn record_answer<T>(&self, answer: &Result<T, StoreError>) {
        let is_down = match answer {
            Ok(_) | Err(StoreError::Conflict) => false,
            Err(error) => LeaseError::from(error) == LeaseError::Unavailable,
        };
        self.is_down.store(is_down, Ordering::Relaxed);
    }

    /// The store did not answer the last batch or maintenance run, of which there is at least one per second.
    pub(super) fn is_down(&self) -> bool {
        self.is_down.load(Ordering::Relaxed)
    }

    /// `db.system` of traces and metrics.
    fn system(&self) -> &'static str {
        self.store.system()
    }

    async fn try_apply(&self, lane: Lane, operations: &[Operation]) -> Result<Applied, StoreError> {
        let mut tries = 0;
        loop {
            self.metrics.batches.increment();
            // A panic in a batch drops the writer or the transaction and nothing else: the next
            // batch reads the store again.
            let applied = async {
                tasks::drill_step();
                self.store.apply(lane, operations).await
            };
            let applied = AssertUnwindSafe(applied).catch_unwind().await;
            let panicked = |payload| Err(StoreError::Panicked(tasks::panicked(tasks::LEASE_BATCH, payload)));
            match applied.unwrap_or_else(panicked) {
                Err(StoreError::Conflict) if tries < CONFLICT_RETRIES => tries += 1,
                result => return result,
            }
        }
    }

    fn reply(&self, operations: &[Operation], replies: Vec<Reply>, applied: Applied) {
        self.metrics
            .operations
            .add(u64::try_from(operations.len()).unwrap_or(0));
        for head in &applied.heads {
            self.notify_waiter(head, applied.read_at);
        }
        self.activity.add(applied.activity);
        for lease in &applied.expired {
            self.metrics.expirations.increment();
            self.metrics.record_hold(lease);
        }
        for ((operation, reply), result) in operations.iter().zip(replies).zip(applied.done) {
            self.metrics.count(operation, &result);
            if result == OperationResult::Failed {
                self.refuse(operation, reply, LeaseError::Unavailable);
                continue;
            }
            let answer = BatchReply {
                done: result,
                now: applied.now,
                read_at: applied.read_at,
            };
            if let Err(Ok(release_undelivered)) = reply.send(Ok(answer)) {
                self.release_undelivered(operation, &release_undelivered.done);
            }
        }
        if !applied.changed.is_empty() {
            self.publish(Some(applied.changed.into()));
        }
    }

    /// Sets when a waiter of this process should try. A waiter that is gone is removed from the
    /// queue.
    pub(super) fn notify_waiter(&self, head: &super::operation::QueueHead, read_at: Tick) {
        if head.replica != *self.store.replica() {
            return;
        }
        if !self.waiting.hint(head.waiter, read_at.plus(head.in_ms)) {
            self.submit_detached(Operation::Leave {
                resource: head.resource.clone(),
                waiter: head.waiter,
            });
        }
    }

    pub(super) fn publish(&self, changed: Changed) {
        self.followers.notify();
        let _ = self.changes.send(changed);
    }

    /// The client disconnected before its answer.
    fn release_undelivered(&self, operation: &Operation, result: &OperationResult) {
        if let (
            Operation::Acquire(op),
            OperationResult::Acquired {
                lease,
                replayed: false,
                ..
            },
        ) = (operation, result)
            && op.is_released_undelivered()
        {
            self.release_unclaimed(op, lease.id);
        }
    }

    fn fail(&self, operations: &[Operation], replies: Vec<Reply>, error: &StoreError) {
        self.metrics.failed_batches.increment();
        self.metrics
            .unavailable
            .add(u64::try_from(operations.len()).unwrap_or(0));
        let releases = operations
            .iter()
            .filter(|operation| operation.is_release())
            .count();
        self.metrics
            .release_failures
            .add(u64::try_from(releases).unwrap_or(0));
        tracing::warn!(batch.operations = operations.len(), %error, "a batch of lease operations failed: {error}");
        for (operation, reply) in operations.iter().zip(replies) {
            self.refuse(operation, reply, LeaseError::from(error));
        }
    }

    /// Answers an operation that may or may not have been committed. If its client has disconnected, a grant is released.
    fn refuse(&self, operation: &Operation, reply: Reply, error: LeaseError) {
        if reply.send(Err(error)).is_err()
            && let Operation::Acquire(op) = operation
            && op.is_released_undelivered()
        {
            self.release_unclaimed(op, op.id);
        }
    }
}
