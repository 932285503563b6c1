//! Shutdown token for Ctrl-C and SIGTERM, and readiness for `/readyz`.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::tasks;

/// Time between "not ready" and closing the listener, so that load balancers react first.
pub const NOTICE: Duration = Duration::from_secs(1);
/// Time for blocking threads after everything has ended, for example a DNS lookup.
pub const LEFTOVERS_MAX: Duration = Duration::from_millis(500);

/// Readiness of this process.
#[derive(Debug, Default)]
pub struct Readiness {
    leaving: CancellationToken,
    failure: OnceLock<String>,
}

impl Readiness {
    /// Shutdown was requested.
    pub fn leave(&self) {
        self.leaving.cancel();
    }

    /// An essential task has failed. The first reason is kept.
    pub fn fail(&self, why: String) {
        tracing::error!("this process ends: {why}");
        let _told_before = self.failure.set(why);
    }

    pub fn is_leaving(&self) -> bool {
        self.leaving.is_cancelled()
    }

    pub fn failure(&self) -> Option<String> {
        self.failure.get().cloned()
    }
}

/// A token that is cancelled by the first Ctrl-C or SIGTERM.
///
/// # Errors
/// The signal handlers cannot be installed.
pub fn on_signal() -> io::Result<CancellationToken> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    tasks::spawn("shutdown", stop.clone(), async move {
        let name = tokio::select! {
            _ = interrupt.recv() => "Ctrl-C",
            _ = terminate.recv() => "SIGTERM",
        };
        tracing::info!(signal.name = name, "stopping: {name}");
        stopped.cancel();
    });
    Ok(stop)
}

/// After `requested` is cancelled: not ready, and `stop` is cancelled after the notice period.
pub fn watch_for_shutdown(readiness: Arc<Readiness>, requested: CancellationToken, stop: CancellationToken) {
    tasks::spawn("leave", stop.clone(), async move {
        requested.cancelled().await;
        readiness.leave();
        tokio::time::sleep(NOTICE).await;
        stop.cancel();
    });
}
