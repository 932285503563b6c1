//! Waiters whose lane is full.

use domain::lease::{Metadata, Ttl};
use domain::names::OwnerId;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use runtime::clock::Clock;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::common::Common;
use crate::core::{Answer, QUEUE_MAX, Queues};
use crate::store::sqlite::SqliteStore;

/// Operations of one transaction.
const BATCH: usize = 512;

/// A core whose main lane commits when a test drains it.
struct ManualLane {
    core: Arc<Core>,
    queues: Queues,
    folder: tempfile::TempDir,
}

impl ManualLane {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::start();
        let path = folder.path().join("leases.db");
        let store = Box::pin(SqliteStore::open(&path, clock.clone())).await.unwrap();
        let (core, queues) = Core::new(Box::new(store), Common::new(clock, CancellationToken::new()));
        Self { core, queues, folder }
    }

    /// Commits and answers what is queued.
    async fn drain(&mut self) {
        let mut jobs = Vec::new();
        while let Ok(job) = self.queues.main[0].try_recv() {
            jobs.push(job);
        }
        while !jobs.is_empty() {
            let rest = jobs.split_off(jobs.len().min(BATCH));
            let batch = self.core.commit(Lane::Main, jobs).await;
            self.core.finish_batch(batch);
            jobs = rest;
        }
    }

    fn fill(&self) {
        let other = acquire("other", 9);
        for _ in 0..QUEUE_MAX {
            self.core.submit_detached(leave_operation(&other));
        }
    }

    /// A waiter in the queue of `r`, which another owner holds.
    async fn queued(&mut self) -> (BoxFuture<'static, ()>, Answer, LeaseId) {
        let (reply, held) = oneshot::channel();
        self.core
            .submit(Lane::Main, Operation::Acquire(acquire("r", 1)), reply);
        let (reply, answer) = oneshot::channel();
        let op = acquire("r", 2);
        let id = op.id;
        let until = self.core.clock.tick().plus(60_000);
        let mut waiter = wait(self.core.clone(), op, reply, until).boxed();
        assert!(waiter.as_mut().now_or_never().is_none());
        self.drain().await;
        assert!(held.await.unwrap().is_ok());
        assert!(waiter.as_mut().now_or_never().is_none());
        assert_eq!(self.waiters().await, 1);
        (waiter, answer, id)
    }

    /// Waiters of `r` in the store.
    async fn waiters(&self) -> usize {
        let read = self.core.store.resource(&Resource::from("r")).await;
        read.unwrap().value.waiters.len()
    }
}

fn acquire(resource: &str, id: u8) -> Box<AcquireOp> {
    Box::new(AcquireOp {
        resource: Resource::from(resource),
        id: LeaseId::from_parts(1_700_000_000_000, [id; 10]),
        owner: OwnerId::new("o"),
        issuer: "".into(),
        ttl: Ttl::parse(600, 3_600).unwrap(),
        metadata: Metadata::default(),
        key: None,
        mode: AcquireMode::Once,
    })
}

#[tokio::test]
async fn a_waiter_leaves_its_queue_through_a_full_lane() {
    // Its client disconnects. If its removal were refused, its row would reserve the lock.
    let mut lane = ManualLane::start().await;
    let (mut waiter, answer, _) = lane.queued().await;
    lane.fill();
    drop(answer);
    assert!(waiter.as_mut().now_or_never().is_none(), "it waits for room");
    lane.drain().await;
    assert!(waiter.as_mut().now_or_never().is_none(), "it is sent");
    lane.drain().await;
    assert!(waiter.as_mut().now_or_never().is_some());
    assert_eq!(lane.waiters().await, 0);
}

#[tokio::test]
async fn a_waiter_keeps_its_place_while_its_lane_is_full() {
    // It is next in the queue: it must not be answered `Overloaded`, which would leave its row in the queue.
    let mut lane = ManualLane::start().await;
    let (mut waiter, mut answer, id) = lane.queued().await;
    lane.fill();
    assert!(lane.core.waiting.hint(id, lane.core.clock.tick()));
    assert!(waiter.as_mut().now_or_never().is_none(), "it waits for room");
    assert!(answer.try_recv().is_err());
    lane.drain().await;
    assert!(waiter.as_mut().now_or_never().is_none(), "it is sent");
    lane.drain().await;
    assert!(waiter.as_mut().now_or_never().is_none(), "it is queued again");
    assert_eq!(lane.waiters().await, 1);
    assert_eq!(lane.core.waiting.count(), 1);
}

#[tokio::test]
async fn a_waiter_is_removed_once_the_store_answers() {
    // Another process holds the file during its attempt and its removal, which both fail. Its row would reserve the lock.
    let mut lane = ManualLane::start().await;
    let (mut waiter, answer, id) = lane.queued().await;
    let other = rusqlite::Connection::open(lane.folder.path().join("leases.db")).unwrap();
    assert!(lane.core.waiting.hint(id, lane.core.clock.tick()));
    assert!(waiter.as_mut().now_or_never().is_none(), "it tries");
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    lane.drain().await;
    assert!(waiter.as_mut().now_or_never().is_some(), "it is answered");
    assert_eq!(answer.await.unwrap().unwrap_err(), LeaseError::Unavailable);
    lane.drain().await;
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(lane.waiters().await, 1);
    let core = lane.core.clone();
    let drained = async {
        while lane.waiters().await > 0 {
            lane.drain().await;
            // Until the operation is repeated.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        () = core.repeat_for_abandoned_requests() => unreachable!(),
        () = drained => {}
    }
}

#[tokio::test]
async fn a_waiter_whose_task_has_ended_is_not_hinted() {
    // As after a panic: its head is then removed from the queue instead of being woken in vain.
    let mut lane = ManualLane::start().await;
    let (waiter, _answer, id) = lane.queued().await;
    drop(waiter);
    assert!(!lane.core.waiting.hint(id, lane.core.clock.tick()));
}
