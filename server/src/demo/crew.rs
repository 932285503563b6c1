//! The workload's tasks: each lives its life again and again, also after its server was away, until the demo ends.

use std::future::Future;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::chance;
use super::fault::Fault;
use crate::tasks;

/// After a failure. Spread, so that a server that comes back is not met by everybody at once.
const PAUSE_SHORTEST: Duration = Duration::from_millis(500);
const PAUSE_LONGEST: Duration = Duration::from_millis(1_500);
/// Between two lives that went well: bounds the load, whatever a life does.
const BREATH: Duration = Duration::from_millis(100);

pub(super) struct Crew {
    stop: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
    /// Ends the tasks also when nobody calls `end`.
    _stops: DropGuard,
}

impl Crew {
    pub(super) fn new(stop: CancellationToken) -> Self {
        let _stops = stop.clone().drop_guard();
        Self {
            stop,
            tasks: Vec::new(),
            _stops,
        }
    }

    /// Runs `life` for ever, the first time after `phase`.
    pub(super) fn keep<F>(
        &mut self,
        name: &'static str,
        phase: Duration,
        mut life: impl FnMut() -> F + Send + 'static,
    ) where
        F: Future<Output = Result<(), Fault>> + Send + 'static,
    {
        let work = async move {
            sleep(phase).await;
            loop {
                match life().await {
                    Ok(()) => sleep(BREATH).await,
                    Err(fault) => {
                        tracing::debug!(task.name = name, %fault, "the demo's {name} will try again");
                        sleep(chance::between(PAUSE_SHORTEST, PAUSE_LONGEST)).await;
                    }
                }
            }
        };
        self.tasks.push(tasks::spawn(name, self.stop.clone(), work));
    }

    /// Ends all of them and waits until they have ended.
    pub(super) async fn end(self) {
        self.stop.cancel();
        for task in self.tasks {
            let _ = task.await;
        }
    }
}
