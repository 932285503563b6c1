//! The loops that gather what was handed over while the previous batch committed, and hand it to the core in one piece.
//!
//! **Invariant:** renewals wait for one batch at most: with one writer they are in the next one, otherwise they have a lane
//! of their own. What was handed over before the service closed is done.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::core::{Core, Job, Queues};
use super::store::Lane;
use crate::tasks;

/// Operations of one transaction.
const BATCH_MAX: usize = 512;

/// Serves the lanes until the service is closed and what was handed over is done. A store with one writer blocks while it
/// writes: its batches have a thread of their own, where no task of the runtime comes between a commit and the next batch.
pub(super) fn start(core: &Arc<Core>, queues: Queues) -> JoinHandle<()> {
    let it = core.clone();
    let died = move |why| {
        // Told once: there is one set of lanes.
        let _ = it.dead.set(why);
    };
    // The lanes end by themselves once closed: nothing may cut a batch in two.
    if core.store.has_one_writer() {
        tasks::vital_thread("lease writer", serve_one(core.clone(), queues), died)
    } else {
        tasks::vital("lease lanes", serve(core.clone(), queues), died)
    }
}

async fn serve_one(core: Arc<Core>, queues: Queues) {
    let Queues { mut urgent, main } = queues;
    let Some(mut main) = main.into_iter().next() else {
        return;
    };
    // Renewals first: whatever is asked of the main lane, they are in the very next batch.
    while let Some(first) = next(&core, &mut urgent, Some(&mut main)).await {
        let mut jobs = vec![first];
        gather(&mut urgent, &mut jobs, BATCH_MAX);
        gather(&mut main, &mut jobs, BATCH_MAX);
        core.apply(Lane::Main, jobs).await;
    }
}

async fn serve(core: Arc<Core>, queues: Queues) {
    let Queues { urgent, main } = queues;
    let one = |lane: Lane, mut queue: mpsc::Receiver<Job>| {
        let core = core.clone();
        async move {
            while let Some(first) = next(&core, &mut queue, None).await {
                let mut jobs = vec![first];
                gather(&mut queue, &mut jobs, BATCH_MAX);
                core.apply(lane, jobs).await;
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

fn gather(queue: &mut mpsc::Receiver<Job>, jobs: &mut Vec<Job>, most: usize) {
    while jobs.len() < most
        && let Ok(job) = queue.try_recv()
    {
        jobs.push(job);
    }
}
