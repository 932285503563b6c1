//! Ctrl-C and SIGTERM become a token that everything watches.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::tasks;

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
