//! From the last request to the end: each step has its time, and together they take less than ten seconds.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::doors::Doors;
use crate::history::Recording;
use crate::lease::LeaseService;
use crate::notify::Delivering;
use crate::shutdown::{self, Readiness};
use crate::tasks;

/// Open requests get this long when the server stops; event streams and waiters end at once.
const DRAIN_MAX: Duration = Duration::from_secs(4);
/// What was seen is written, what is being sent is answered.
const WRITE_MAX: Duration = Duration::from_millis(2_500);
/// What is in flight is committed.
const CLOSE_MAX: Duration = Duration::from_millis(1_500);

/// The supervisor kills after this.
const PROMISED: Duration = Duration::from_secs(10);

const _: () = {
    let all = shutdown::NOTICE.as_millis() + DRAIN_MAX.as_millis() + WRITE_MAX.as_millis();
    let all = all + CLOSE_MAX.as_millis() + shutdown::LEFTOVERS_MAX.as_millis();
    assert!(all < PROMISED.as_millis());
};

/// What is taken down after the doors are closed.
pub(super) struct Ending {
    recording: Recording,
    delivering: Delivering,
    leases: Arc<LeaseService>,
    readiness: Arc<Readiness>,
    stop: CancellationToken,
}

impl Ending {
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

    /// Serves until it is stopped, or until what it cannot live without has died; then takes everything down.
    pub(super) fn serve(self, doors: Doors, router: axum::Router) -> JoinHandle<()> {
        let (readiness, stop) = (self.readiness.clone(), self.stop.clone());
        let http = tasks::vital("http", run(doors, router, stop.clone()), move |why| {
            readiness.fail(format!("the task that takes connections died: {why}"));
            stop.cancel();
        });
        self.watch_lanes();
        tasks::spawn("end", CancellationToken::new(), async move {
            // How it died was told where it did.
            let _ended = http.await;
            self.stop.cancel();
            self.take_down().await;
        })
    }

    /// Nothing may look like a lease service that is none: the process ends, and another one begins from the store.
    fn watch_lanes(&self) {
        let (leases, readiness, stop) = (self.leases.clone(), self.readiness.clone(), self.stop.clone());
        tasks::spawn("eye on the lease lanes", self.stop.clone(), async move {
            let why = leases.died().await;
            readiness.fail(format!("the writer of leases died: {why}"));
            stop.cancel();
        });
    }

    async fn take_down(self) {
        let written = async { tokio::join!(self.recording.ended(), self.delivering.ended()) };
        if tokio::time::timeout(WRITE_MAX, written).await.is_err() {
            tracing::warn!("history or notifications were not done in time and were cut");
        }
        if tokio::time::timeout(CLOSE_MAX, self.leases.close())
            .await
            .is_err()
        {
            tracing::warn!("the store of leases was not closed in time; what it has confirmed is in it");
        }
    }
}

async fn run(doors: Doors, router: axum::Router, stop: CancellationToken) {
    let late = async {
        stop.cancelled().await;
        tokio::time::sleep(DRAIN_MAX).await;
    };
    tokio::select! {
        () = doors.serve(router, stop.clone()) => {}
        () = late => tracing::warn!("some requests did not end in time and were cut"),
    }
}
