//! Shutdown sequence: each step has a timeout; together less than ten seconds. The last push of telemetry follows.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::listener::Listener;
use crate::history::Recording;
use crate::http::lease::direct::WithDirectLeases;
use crate::notify::Delivering;
use lease::LeaseService;
use runtime::shutdown::{self, Readiness};
use runtime::tasks;
use runtime::telemetry;

/// Timeout for open requests; event streams and waiters end at once.
const DRAIN_MAX: Duration = Duration::from_secs(4);
/// Timeout for writing history and answering notifications in flight.
const WRITE_MAX: Duration = Duration::from_millis(2_500);
/// Timeout for committing operations in flight.
const CLOSE_MAX: Duration = Duration::from_millis(1_500);

/// Without the last push of telemetry.
const PROMISED: Duration = Duration::from_secs(10);
/// Time after which the supervisors of docs/deploy kill the process.
const KILLED_AFTER: Duration = Duration::from_secs(15);

const _: () = {
    let all = shutdown::NOTICE.as_millis() + DRAIN_MAX.as_millis() + WRITE_MAX.as_millis();
    let all = all + CLOSE_MAX.as_millis() + shutdown::LEFTOVERS_MAX.as_millis();
    assert!(all < PROMISED.as_millis());
    assert!(all + telemetry::FLUSH_MAX.as_millis() < KILLED_AFTER.as_millis());
};

/// Components that are shut down after the listener.
pub(super) struct ShutdownSequence {
    recording: Recording,
    delivering: Delivering,
    leases: Arc<LeaseService>,
    readiness: Arc<Readiness>,
    stop: CancellationToken,
}

impl ShutdownSequence {
    pub(super) fn new(
        (recording, delivering): (Recording, Delivering),
        leases: &Arc<LeaseService>,
        readiness: &Arc<Readiness>,
        stop: CancellationToken,
    ) -> Self {
        Self {
            recording,
            delivering,
            leases: leases.clone(),
            readiness: readiness.clone(),
            stop,
        }
    }

    /// Serves until stopped, or until an essential task has failed; then shuts down.
    pub(super) fn serve(self, listener: Listener, service: WithDirectLeases) -> JoinHandle<()> {
        let (readiness, stop) = (self.readiness.clone(), self.stop.clone());
        let http = tasks::vital("http", run(listener, service, stop.clone()), move |why| {
            readiness.fail(format!("the task that accepts connections died: {why}"));
            stop.cancel();
        });
        self.watch_lanes();
        tasks::spawn("end", CancellationToken::new(), async move {
            // The reason was already logged.
            let _ended = http.await;
            self.stop.cancel();
            self.take_down().await;
        })
    }

    /// A lease service without its lanes must not appear healthy: the process exits, and its successor continues
    /// from the store.
    fn watch_lanes(&self) {
        let (leases, readiness, stop) = (self.leases.clone(), self.readiness.clone(), self.stop.clone());
        tasks::spawn("lease writer monitor", self.stop.clone(), async move {
            let why = leases.failed().await;
            readiness.fail(format!("the lease writer died: {why}"));
            stop.cancel();
        });
    }

    async fn take_down(self) {
        let written = async { tokio::join!(self.recording.ended(), self.delivering.ended()) };
        if tokio::time::timeout(WRITE_MAX, written).await.is_err() {
            tracing::warn!("history or notifications did not finish in time and were stopped");
        }
        if tokio::time::timeout(CLOSE_MAX, self.leases.close())
            .await
            .is_err()
        {
            tracing::warn!("the lease store was not closed in time; every confirmed change is stored");
        }
    }
}

async fn run(listener: Listener, service: WithDirectLeases, stop: CancellationToken) {
    let late = async {
        stop.cancelled().await;
        tokio::time::sleep(DRAIN_MAX).await;
    };
    tokio::select! {
        () = listener.serve(service, stop.clone()) => {}
        () = late => tracing::warn!("some requests did not finish in time and were aborted"),
    }
}
