//! Keeps the inventory in step with one backend: passes by the clock, refreshes by hints, rechecks of locks whose state is
//! about to turn, probes now and then.
//!
//! **Invariant:** each backend has its own tasks and nothing else waits for them: one that hangs ages alone.

use std::sync::Arc;
use std::time::Duration;

use domain::backend::Fault;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::backends::hint::Pending;
use crate::backends::{Backend, BackendError, Batch, Budget, Hints, Sink};
use crate::clock::Clock;
use crate::inventory::Feed;
use crate::tasks;

/// Between two rounds of hints: a burst becomes one refresh.
const HINT_GAP: Duration = Duration::from_millis(40);
/// The page is told at most twice a second anyway.
const HINT_GAP_MAX: Duration = Duration::from_millis(300);
/// A re-list asked for by a hint starts no sooner after the last pass.
const RELIST_GAP: Duration = Duration::from_millis(100);
/// Without a lock to read again.
const RECHECK_IDLE: Duration = Duration::from_secs(60);
const PROBE_EVERY: Duration = Duration::from_secs(60);
/// A backend that is back is shown as it is within 5 s: this, a connection and a pass must fit in.
const RETRY_MAX: Duration = Duration::from_secs(3);

/// How one backend is to be observed.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    pub poll: Duration,
    pub timeout: Duration,
    pub budget: Duration,
}

struct Observer {
    backend: Arc<dyn Backend>,
    feed: Feed,
    pace: Pace,
    clock: Clock,
    relist: Notify,
    hints: Hints,
}

/// Starts the tasks that observe one backend; they end with `stop`. What is hinted through the answer is read at once.
pub fn start(
    backend: Arc<dyn Backend>,
    feed: Feed,
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
    keep(
        "observe",
        &observer,
        stop,
        |one| async move { one.passes().await },
    );
    keep(
        "refresh",
        &observer,
        stop,
        |one| async move { one.refreshes().await },
    );
    keep(
        "recheck",
        &observer,
        stop,
        |one| async move { one.rechecks().await },
    );
    keep("watch", &observer, stop, |one| async move {
        one.backend.watch(one.hints.clone()).await;
    });
    keep("probe", &observer, stop, |one| async move { one.probes().await });
    hints
}

/// What it knows is the inventory's: it is made anew after a panic, and reads everything again.
fn keep<Made: Future<Output = ()> + Send + 'static>(
    what: &'static str,
    observer: &Arc<Observer>,
    stop: &CancellationToken,
    make: impl Fn(Arc<Observer>) -> Made + Send + Sync + 'static,
) {
    let name = tasks::Name::of(what, observer.feed.backend().as_str());
    let observer = observer.clone();
    tasks::keep(name, stop.clone(), move || make(observer.clone()));
}

/// Hands batches straight to the inventory.
struct Through<'a>(&'a Feed, &'a Clock);

impl Sink for Through<'_> {
    fn accept(&mut self, batch: Batch) {
        self.0.receive(batch, self.1.tick());
    }
}

impl Observer {
    async fn passes(&self) {
        let mut failures = 0;
        loop {
            let began = self.clock.tick();
            self.feed.begin(self.clock.now());
            let failed = self.pass().await;
            failures = if failed { failures + 1 } else { 0 };
            let spent = u64::try_from(self.clock.tick().since(began)).unwrap_or(0);
            let rest = if failed {
                retry_after(failures, self.pace.poll)
            } else {
                self.pace.poll
            };
            let rest = rest.saturating_sub(Duration::from_millis(spent)).max(RELIST_GAP);
            tokio::time::sleep(RELIST_GAP).await;
            let _woken = tokio::time::timeout(rest.saturating_sub(RELIST_GAP), self.relist.notified()).await;
        }
    }

    /// One pass; answers whether it failed.
    async fn pass(&self) -> bool {
        let budget = Budget {
            time_max: self.pace.budget,
        };
        let patience = self.pace.budget + self.pace.timeout;
        let mut sink = Through(&self.feed, &self.clock);
        let pass = tokio::time::timeout(patience, self.backend.observe(budget, &mut sink)).await;
        let error = match pass {
            Ok(Ok(pass)) => {
                self.feed.end(pass, self.clock.now());
                return false;
            }
            Ok(Err(error)) => error,
            Err(_) => BackendError::NoAnswer {
                after_ms: u64::try_from(patience.as_millis()).unwrap_or(u64::MAX),
            },
        };
        self.note(&error);
        true
    }

    fn note(&self, error: &BackendError) {
        let refused = match error {
            BackendError::Denied { .. } | BackendError::Misconfigured { .. } => true,
            BackendError::Unreachable { .. }
            | BackendError::NoAnswer { .. }
            | BackendError::Protocol { .. } => false,
        };
        let at = self.clock.now().wall;
        let fault = Fault {
            message: error.to_string(),
            mend: error.mend(),
            at,
            times: 1,
        };
        self.feed.failed(fault, refused);
    }

    async fn refreshes(&self) {
        loop {
            let Pending { relist, names, state } = self.hints.take().await;
            if let Some(state) = state {
                self.feed.watching(state);
            }
            let began = self.clock.tick();
            if !names.is_empty() {
                let names: Vec<_> = names.into_iter().collect();
                let mut sink = Through(&self.feed, &self.clock);
                let refresh = self.backend.refresh(&names, &mut sink);
                // A refresh that fails is made good by the next pass, which also says why.
                let refreshed = tokio::time::timeout(self.pace.timeout, refresh).await;
                self.feed.refreshed(&names, self.clock.now());
                if !matches!(refreshed, Ok(Ok(()))) {
                    self.relist.notify_one();
                }
            }
            if relist {
                self.relist.notify_one();
            }
            let spent = u64::try_from(self.clock.tick().since(began)).unwrap_or(0);
            tokio::time::sleep(hint_gap(Duration::from_millis(spent))).await;
        }
    }

    /// Reads a lock again at the moment when time alone would give it another state.
    async fn rechecks(&self) {
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

    async fn probes(&self) {
        let mut failures = 0;
        loop {
            let probe = tokio::time::timeout(self.pace.timeout, self.backend.probe()).await;
            if let Ok(Ok(probe)) = probe {
                failures = 0;
                self.feed.probed(probe);
                tokio::time::sleep(PROBE_EVERY).await;
            } else {
                failures += 1;
                tokio::time::sleep(retry_after(failures, self.pace.poll)).await;
            }
        }
    }
}

/// Nine times as long as the refresh took, within bounds: however much changes, reading it takes a tenth of the time.
fn hint_gap(spent: Duration) -> Duration {
    spent.saturating_mul(9).clamp(HINT_GAP, HINT_GAP_MAX)
}

/// Doubling from the poll period up to [`RETRY_MAX`]; never quicker than the poll period.
fn retry_after(failures: u32, poll: Duration) -> Duration {
    poll.saturating_mul(1 << failures.saturating_sub(1).min(5))
        .min(RETRY_MAX.max(poll))
}
