//! Observes one backend for the inventory: periodic scans, refreshes after change notifications, rechecks of locks
//! whose state is about to change, periodic probes, and the members of a replicated backend.
//!
//! **Invariant:** each backend has its own tasks, so a backend that hangs delays no other.

use std::sync::Arc;
use std::time::Duration;

use domain::backend::BackendFailure;
use domain::duration::millis;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use backends::change_notification::Pending;
use backends::{Backend, BackendError, Batch, Budget, Hints, NamePredicate, Sink};
use domain::names::Source;
use inventory::InventoryWriter;
use runtime::clock::Clock;
use runtime::tasks;

/// Minimum interval between refreshes: combines a burst of notifications.
const HINT_GAP: Duration = Duration::from_millis(40);
/// Pages are updated at most twice a second anyway.
const HINT_GAP_MAX: Duration = Duration::from_millis(300);
/// Minimum interval between the last scan and one requested by a notification.
const RELIST_GAP: Duration = Duration::from_millis(100);
/// Recheck interval without a due lock.
const RECHECK_IDLE: Duration = Duration::from_secs(60);
const PROBE_EVERY: Duration = Duration::from_secs(60);
const CLUSTER_INTERVAL: Duration = Duration::from_secs(2);
/// A recovered backend must be shown within 5 s: this interval, a connection and a scan must fit in.
const RETRY_MAX: Duration = Duration::from_secs(3);

/// Intervals and timeouts of one backend.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    pub poll_interval: Duration,
    pub timeout: Duration,
    pub scan_timeout: Duration,
}

struct Observer {
    backend: Arc<dyn Backend>,
    feed: InventoryWriter,
    pace: Pace,
    clock: Clock,
    relist: Notify,
    hints: Hints,
}

/// Starts the tasks that observe one backend; they end with `stop`. Notifications sent to the returned handle cause
/// an immediate read.
pub fn start(
    backend: Arc<dyn Backend>,
    feed: InventoryWriter,
    pace: Pace,
    clock: Clock,
    stop: &CancellationToken,
) -> Hints {
    let hints = Hints::default();
    let observer = Arc::new(Observer {
        backend,
        feed,
        pace,
        clock,
        relist: Notify::new(),
        hints: hints.clone(),
    });
    supervise("observe", &observer, stop, |observer| async move {
        observer.run_scans().await
    });
    supervise("refresh", &observer, stop, |observer| async move {
        observer.run_refreshes().await
    });
    supervise("recheck", &observer, stop, |observer| async move {
        observer.run_rechecks().await
    });
    supervise("watch", &observer, stop, |observer| async move {
        observer.backend.watch(observer.hints.clone()).await;
    });
    supervise("probe", &observer, stop, |observer| async move {
        observer.run_probes().await
    });
    supervise("members", &observer, stop, |observer| async move {
        observer.poll_members().await
    });
    hints
}

/// A task is restarted after a panic and reads everything again; its state is in the inventory.
fn supervise<Task: Future<Output = ()> + Send + 'static>(
    name: &'static str,
    observer: &Arc<Observer>,
    stop: &CancellationToken,
    make: impl Fn(Arc<Observer>) -> Task + Send + Sync + 'static,
) {
    let name = tasks::Name::new(name, observer.feed.backend().as_str());
    let observer = observer.clone();
    tasks::spawn_supervised(name, stop.clone(), move || make(observer.clone()));
}

/// Passes batches to the inventory.
struct InventorySink<'a>(&'a InventoryWriter, &'a Clock);

impl Sink for InventorySink<'_> {
    fn accept(&mut self, batch: Batch) {
        self.0.receive(batch, self.1.tick());
    }

    fn read_part(&mut self, source: &Source, covers: NamePredicate) {
        self.0.read_part(source, covers);
    }

    fn mark_undecided(&mut self, source: &Source) {
        self.0.mark_undecided(source);
    }
}

impl Observer {
    async fn run_scans(&self) {
        let mut failures = 0;
        loop {
            let began = self.clock.tick();
            self.feed.begin(self.clock.now());
            let failed = self.scan().await;
            failures = if failed { failures + 1 } else { 0 };
            let elapsed_ms = u64::try_from(self.clock.tick().since(began)).unwrap_or(0);
            let pause = if failed {
                retry_after(failures, self.pace.poll_interval)
            } else {
                self.pace.poll_interval
            };
            let pause = pause
                .saturating_sub(Duration::from_millis(elapsed_ms))
                .max(RELIST_GAP);
            tokio::time::sleep(RELIST_GAP).await;
            let _woken = tokio::time::timeout(pause.saturating_sub(RELIST_GAP), self.relist.notified()).await;
        }
    }

    /// One scan; returns whether it failed.
    async fn scan(&self) -> bool {
        let budget = Budget {
            time_max: self.pace.scan_timeout,
        };
        let timeout = self.pace.scan_timeout + self.pace.timeout;
        let mut sink = InventorySink(&self.feed, &self.clock);
        let pass = tokio::time::timeout(timeout, self.backend.observe(budget, &mut sink)).await;
        let error = match pass {
            Ok(Ok(pass)) => {
                self.feed.end(pass, self.clock.now());
                return false;
            }
            Ok(Err(error)) => error,
            Err(_) => BackendError::NoAnswer {
                after_ms: millis(timeout).unsigned_abs(),
            },
        };
        self.log_error(&error);
        true
    }

    fn log_error(&self, error: &BackendError) {
        let is_rejected = match error {
            BackendError::Denied { .. } | BackendError::Misconfigured { .. } => true,
            BackendError::Unreachable { .. }
            | BackendError::NoAnswer { .. }
            | BackendError::Unavailable { .. }
            | BackendError::Protocol { .. } => false,
        };
        let at = self.clock.now().wall;
        let fault = BackendFailure {
            message: error.to_string(),
            remedy: error.remedy(),
            at,
            times: 1,
        };
        self.feed.failed(fault, is_rejected);
    }

    async fn run_refreshes(&self) {
        loop {
            let Pending { relist, names, state } = self.hints.take().await;
            if let Some(state) = state {
                self.feed.watching(state);
            }
            let began = self.clock.tick();
            if !names.is_empty() {
                let names: Vec<_> = names.into_iter().collect();
                let mut sink = InventorySink(&self.feed, &self.clock);
                let refresh = self.backend.refresh(&names, &mut sink);
                // A failed refresh is repaired by the next scan, which also reports the error.
                let refreshed = tokio::time::timeout(self.pace.timeout, refresh).await;
                self.feed.refreshed(&names, self.clock.now());
                if !matches!(refreshed, Ok(Ok(()))) {
                    self.relist.notify_one();
                }
            }
            if relist {
                self.relist.notify_one();
            }
            let elapsed_ms = u64::try_from(self.clock.tick().since(began)).unwrap_or(0);
            tokio::time::sleep(hint_gap(Duration::from_millis(elapsed_ms))).await;
        }
    }

    /// Reads a lock again at the time when its state would change by time alone.
    async fn run_rechecks(&self) {
        loop {
            let now = self.clock.now();
            let due = self.feed.due_rechecks(now);
            for (source, resource) in due.names {
                self.hints.changed(source, resource);
            }
            let wait = due.next.map_or(RECHECK_IDLE, |next| {
                Duration::from_millis(u64::try_from(next.since(now.tick)).unwrap_or(0).max(1))
            });
            let _sooner = tokio::time::timeout(wait, self.feed.recheck_sooner()).await;
        }
    }

    async fn run_probes(&self) {
        let mut failures = 0;
        loop {
            let probe = tokio::time::timeout(self.pace.timeout, self.backend.probe()).await;
            if let Ok(Ok(probe)) = probe {
                failures = 0;
                self.feed.probed(probe);
                tokio::time::sleep(PROBE_EVERY).await;
            } else {
                failures += 1;
                tokio::time::sleep(retry_after(failures, self.pace.poll_interval)).await;
            }
        }
    }

    /// Ends at the first answer of a backend that has no members.
    async fn poll_members(&self) {
        while let Some(clusters) = self.backend.clusters().await {
            self.feed.clusters(clusters, self.clock.tick());
            tokio::time::sleep(CLUSTER_INTERVAL).await;
        }
    }
}

/// Nine times the duration of the last refresh, within limits: refreshes use a tenth of the time at most.
fn hint_gap(elapsed: Duration) -> Duration {
    elapsed.saturating_mul(9).clamp(HINT_GAP, HINT_GAP_MAX)
}

/// Doubles from the poll interval up to [`RETRY_MAX`]; never below the poll interval.
fn retry_after(failures: u32, poll_interval: Duration) -> Duration {
    poll_interval
        .saturating_mul(1 << failures.saturating_sub(1).min(5))
        .min(RETRY_MAX.max(poll_interval))
}
