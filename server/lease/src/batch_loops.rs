//! Loops that collect the operations submitted while the previous batch commits, and run them as
//! the next batch.
//!
//! **Invariant:** a renewal waits for one batch at most: with a single writer it is part of the
//! next batch, otherwise renewals have a lane of their own. Operations submitted before the
//! service is closed are executed and answered. An inconsistency of one resource fails no
//! operation on another: its batch is repeated in halves, for which later operations of the lane
//! wait.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::core::{Batch, Core, Job, Queues};
use super::store::{Lane, StoreError};
use runtime::tasks;

/// Operations taken from one queue per transaction.
const BATCH_MAX: usize = 512;
/// A queue up to this length is taken whole: a second transaction would cost more than it saves.
const BATCH_WHOLE: usize = 32;

/// Batches that the store has committed or rejected, on their way to the reply task. Unbounded,
/// but never longer than the number of callers that wait for an answer.
type FinishedBatches = mpsc::UnboundedSender<Batch>;

/// Serves the lanes until the service is closed and every submitted operation is executed and
/// answered.
///
/// The lanes have their own thread because a single writer blocks while it writes, and because
/// connections polled by a shared runtime worker would wait for the requests queued on it.
/// Replies are sent by a task of the main runtime: from another thread each reply would cost one
/// thread switch, from within the runtime one switch serves the whole batch, and the next batch
/// runs meanwhile. When both handles have ended, neither holds the store.
pub(super) fn start(core: &Arc<Core>, queues: Queues) -> [JoinHandle<()>; 2] {
    let failed = |core: Arc<Core>| {
        move |why| {
            // Set once: the first failure ends both tasks.
            let _ = core.failure.set(why);
        }
    };
    let (finished_tx, finished_rx) = mpsc::unbounded_channel();
    // Lanes and reply task end by themselves after `closed`; aborting them could split a batch.
    let lanes = if core.store.has_one_writer() {
        let writer = serve_single_writer(core.clone(), queues, finished_tx);
        tasks::vital_thread("lease writer", writer, failed(core.clone()))
    } else {
        let lanes = serve_lanes(core.clone(), queues, finished_tx);
        tasks::vital_runtime("lease lanes", lanes, failed(core.clone()))
    };
    let answers = tasks::vital(
        "lease answers",
        reply_loop(core.clone(), finished_rx),
        failed(core.clone()),
    );
    [lanes, answers]
}

async fn reply_loop(core: Arc<Core>, mut batches: mpsc::UnboundedReceiver<Batch>) {
    while let Some(batch) = batches.recv().await {
        core.finish_batch(batch);
    }
}

async fn serve_single_writer(core: Arc<Core>, queues: Queues, finished_tx: FinishedBatches) {
    let Queues { mut urgent, main } = queues;
    let Some(mut main) = main.into_iter().next() else {
        return;
    };
    // Renewals first: they are part of the next batch whatever the length of the main queue.
    while let Some(first) = next(&core, &mut urgent, Some(&mut main)).await {
        let mut jobs = vec![first];
        gather(&mut urgent, &mut jobs, BATCH_MAX);
        let size = next_batch_size(main.len());
        gather(&mut main, &mut jobs, size);
        if !commit(&core, Lane::Main, jobs, &finished_tx).await {
            return;
        }
    }
}

async fn serve_lanes(core: Arc<Core>, queues: Queues, finished_tx: FinishedBatches) {
    let Queues { urgent, main } = queues;
    let serve_lane = |lane: Lane, mut queue: mpsc::Receiver<Job>| {
        let (core, finished_tx) = (core.clone(), finished_tx.clone());
        async move {
            while let Some(first) = next(&core, &mut queue, None).await {
                let mut jobs = vec![first];
                let jobs_max = match lane {
                    Lane::Urgent => core.store.batch_max(),
                    Lane::Main => next_batch_size(queue.len()).min(core.store.batch_max()),
                };
                gather(&mut queue, &mut jobs, jobs_max);
                if !commit(&core, lane, jobs, &finished_tx).await {
                    return;
                }
            }
        }
    };
    let main = main.into_iter().map(|queue| serve_lane(Lane::Main, queue));
    tokio::join!(serve_lane(Lane::Urgent, urgent), futures::future::join_all(main));
}

/// Commits a batch. One that was not written because of an inconsistency is repeated in halves, in order. Returns whether
/// the reply task still runs.
async fn commit(core: &Core, lane: Lane, jobs: Vec<Job>, finished_tx: &FinishedBatches) -> bool {
    let mut pending = vec![jobs];
    while let Some(jobs) = pending.pop() {
        let batch = core.commit(lane, jobs).await;
        if is_inconsistent(&batch) && batch.operations.len() > 1 {
            let mut first = batch.into_jobs();
            let second = first.split_off(first.len() / 2);
            pending.extend([second, first]);
        } else if finished_tx.send(batch).is_err() {
            return false;
        }
    }
    true
}

fn is_inconsistent(batch: &Batch) -> bool {
    matches!(batch.applied, Err(StoreError::Broken(_) | StoreError::Corrupt(_)))
}

async fn next(
    core: &Core,
    first: &mut mpsc::Receiver<Job>,
    second: Option<&mut mpsc::Receiver<Job>>,
) -> Option<Job> {
    let second = async {
        match second {
            Some(queue) => queue.recv().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        job = first.recv() => job,
        job = second => job,
        () = core.closed.cancelled() => None,
    }
}

/// How many of the queued operations go into the next batch: half of a long queue. Taking all of
/// them would synchronize the callers: CPU and disk would then alternate instead of overlapping.
fn next_batch_size(waiting: usize) -> usize {
    (waiting / 2).clamp(BATCH_WHOLE, BATCH_MAX)
}

fn gather(queue: &mut mpsc::Receiver<Job>, jobs: &mut Vec<Job>, added_max: usize) {
    let jobs_max = jobs.len() + added_max;
    while jobs.len() < jobs_max
        && let Ok(job) = queue.try_recv()
    {
        jobs.push(job);
    }
}

#[cfg(test)]
mod tests {
    use super::{BATCH_MAX, next_batch_size};

    #[test]
    fn a_short_queue_is_drained_and_a_long_one_halved() {
        let shares = [0, 1, 32, 64, 65, 200, 10_000].map(next_batch_size);
        assert_eq!(shares, [32, 32, 32, 32, 32, 100, BATCH_MAX]);
    }
}
