//! Tasks of the workload: each repeats its work, also after its server was unreachable, until the demo ends.

use std::future::Future;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::fault::WorkloadError;
use super::rng;
use runtime::tasks;

/// Pause after a failure, with jitter, so that a recovering server is not flooded.
const PAUSE_SHORTEST: Duration = Duration::from_millis(500);
const PAUSE_LONGEST: Duration = Duration::from_millis(1_500);
/// Pause after a success, which limits the load.
const PAUSE_AFTER_SUCCESS: Duration = Duration::from_millis(100);

pub(super) struct WorkerPool {
    stop: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
    /// Stops the tasks even if `end` is not called.
    _stops: DropGuard,
}

impl WorkerPool {
    pub(super) fn new(stop: CancellationToken) -> Self {
        let _stops = stop.clone().drop_guard();
        Self {
            stop,
            tasks: Vec::new(),
            _stops,
        }
    }

    /// Repeats `work`, starting after `phase`.
    pub(super) fn supervise<F>(
        &mut self,
        name: &'static str,
        phase: Duration,
        mut work: impl FnMut() -> F + Send + 'static,
    ) where
        F: Future<Output = Result<(), WorkloadError>> + Send + 'static,
    {
        let repeated = async move {
            sleep(phase).await;
            loop {
                // Boxed: some workers are large futures, and each future around them would be as large.
                match Box::pin(work()).await {
                    Ok(()) => sleep(PAUSE_AFTER_SUCCESS).await,
                    Err(fault) => {
                        tracing::debug!(task.name = name, %fault, "the demo's {name} will try again");
                        sleep(rng::between(PAUSE_SHORTEST, PAUSE_LONGEST)).await;
                    }
                }
            }
        };
        self.tasks.push(tasks::spawn(name, self.stop.clone(), repeated));
    }

    /// Stops all tasks and waits for their end.
    pub(super) async fn end(self) {
        self.stop.cancel();
        for task in self.tasks {
            let _ = task.await;
        }
    }
}
