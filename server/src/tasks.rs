//! Starts background tasks: each has a name, its panic is logged and counted, and it ends with the shutdown token.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Panics of background tasks since the process started.
pub static PANICS: AtomicU64 = AtomicU64::new(0);

/// Runs `work` until it ends or `stop` is cancelled.
pub fn spawn(
    name: &'static str,
    stop: CancellationToken,
    work: impl Future<Output = ()> + Send + 'static,
) -> JoinHandle<()> {
    // The inner task is what may panic; the outer one sees that and says so.
    #[expect(clippy::disallowed_methods, reason = "this is the one starter of tasks")]
    tokio::spawn(async move {
        let inner = tokio::spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = work => {}
            }
        });
        if let Err(error) = inner.await
            && error.is_panic()
        {
            PANICS.fetch_add(1, Ordering::Relaxed);
            tracing::error!(task.name = name, "background task {name} panicked: {error}");
        }
    })
}
