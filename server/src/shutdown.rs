//! Ctrl-C and SIGTERM become a token that everything watches; and what `/readyz` says of a process that is about to end.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::tasks;

/// From "not ready" to the end of taking connections: balancers look away first.
pub const NOTICE: Duration = Duration::from_secs(1);
/// What still blocks a thread when everything has ended, such as a look-up of a name, gets this long.
pub const LEFTOVERS_MAX: Duration = Duration::from_millis(500);

/// Whether this process is one to send requests to.
#[derive(Debug, Default)]
pub struct Readiness {
    leaving: CancellationToken,
    failure: OnceLock<String>,
}

impl Readiness {
    /// It was asked to end.
    pub fn leave(&self) {
        self.leaving.cancel();
    }

    /// What it cannot live without has died. The first reason stays.
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
/// The signals cannot be watched.
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

/// Once `asked`: not ready from now on, and `stop` a moment later.
pub fn take_leave(readiness: Arc<Readiness>, asked: CancellationToken, stop: CancellationToken) {
    tasks::spawn("leave", stop.clone(), async move {
        asked.cancelled().await;
        readiness.leave();
        tokio::time::sleep(NOTICE).await;
        stop.cancel();
    });
}
