//! The loops that gather what was handed over while the previous batch committed, and hand it to the core in one piece.
//!
//! **Invariant:** renewals wait for one batch at most: with one writer they are in the next one, otherwise they have a lane
//! of their own. What was handed over before the service closed is done, and whoever asked is told.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::core::{Batch, Core, Job, Queues};
use super::store::Lane;
use crate::tasks;

/// Operations that one transaction takes of one queue.
const BATCH_MAX: usize = 512;
/// Not worth a second transaction.
const BATCH_WHOLE: usize = 32;

/// Batches that are through with the store, for whoever tells. No more wait there than callers for their answers.
type Settled = mpsc::UnboundedSender<Batch>;

/// Serves the lanes until the service is closed, what was handed over is done, and everybody was told.
///
/// They have a thread of their own, because one writer blocks while it writes; and connections are heard by that thread alone:
/// their answers would wait until a worker is through with the requests that it has. Telling is a task of the runtime: from
/// another thread each answer would cost a turn of threads, from within it one does for the whole batch, and the next batch is
/// on its way meanwhile. When both have ended, neither holds the store any more.
pub(super) fn start(core: &Arc<Core>, queues: Queues) -> [JoinHandle<()>; 2] {
    let died = |core: Arc<Core>| {
        move |why| {
            // Told once: who dies first takes the other along.
            let _ = core.dead.set(why);
        }
    };
    let (settled, batches) = mpsc::unbounded_channel();
    // The lanes end by themselves once closed, and so does the telling: nothing may cut a batch in two.
    let lanes = if core.store.has_one_writer() {
        let writer = serve_one(core.clone(), queues, settled);
        tasks::vital_thread("lease writer", writer, died(core.clone()))
    } else {
        let lanes = serve(core.clone(), queues, settled);
        tasks::vital_runtime("lease lanes", lanes, died(core.clone()))
    };
    let answers = tasks::vital("lease answers", tell(core.clone(), batches), died(core.clone()));
    [lanes, answers]
}

async fn tell(core: Arc<Core>, mut batches: mpsc::UnboundedReceiver<Batch>) {
    while let Some(batch) = batches.recv().await {
        core.settle(batch);
    }
}

async fn serve_one(core: Arc<Core>, queues: Queues, settled: Settled) {
    let Queues { mut urgent, main } = queues;
    let Some(mut main) = main.into_iter().next() else {
        return;
    };
    // Renewals first: whatever is asked of the main lane, they are in the very next batch.
    while let Some(first) = next(&core, &mut urgent, Some(&mut main)).await {
        let mut jobs = vec![first];
        gather(&mut urgent, &mut jobs, BATCH_MAX);
        let share = share(main.len());
        gather(&mut main, &mut jobs, share);
        if settled.send(core.commit(Lane::Main, jobs).await).is_err() {
            return;
        }
    }
}

async fn serve(core: Arc<Core>, queues: Queues, settled: Settled) {
    let Queues { urgent, main } = queues;
    let one = |lane: Lane, mut queue: mpsc::Receiver<Job>| {
        let (core, settled) = (core.clone(), settled.clone());
        async move {
            while let Some(first) = next(&core, &mut queue, None).await {
                let mut jobs = vec![first];
                let most = match lane {
                    Lane::Urgent => BATCH_MAX,
                    Lane::Main => share(queue.len()),
                };
                gather(&mut queue, &mut jobs, most);
                if settled.send(core.commit(lane, jobs).await).is_err() {
                    return;
                }
            }
        }
    };
    let main = main.into_iter().map(|queue| one(Lane::Main, queue));
    tokio::join!(one(Lane::Urgent, urgent), futures::future::join_all(main));
}

async fn next(
    core: &Core,
    one: &mut mpsc::Receiver<Job>,
    other: Option<&mut mpsc::Receiver<Job>>,
) -> Option<Job> {
    let other = async {
        match other {
            Some(queue) => queue.recv().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        job = one.recv() => job,
        job = other => job,
        () = core.closed.cancelled() => None,
    }
}

/// How many of those that wait go into the next batch: half of many. Otherwise callers fall into step: all of them wait
/// for one large batch, whose processor is the only one with anything to do, and then the store for all of them.
fn share(waiting: usize) -> usize {
    (waiting / 2).clamp(BATCH_WHOLE, BATCH_MAX)
}

fn gather(queue: &mut mpsc::Receiver<Job>, jobs: &mut Vec<Job>, most: usize) {
    let most = jobs.len() + most;
    while jobs.len() < most
        && let Ok(job) = queue.try_recv()
    {
        jobs.push(job);
    }
}

#[cfg(test)]
mod tests {
    use super::{BATCH_MAX, share};

    #[test]
    fn few_go_together_and_of_many_one_half() {
        let shares = [0, 1, 32, 64, 65, 200, 10_000].map(share);
        assert_eq!(shares, [32, 32, 32, 32, 32, 100, BATCH_MAX]);
    }
}
