//! Starts background tasks: each has a name, its panic is logged and counted, and it ends with the shutdown token, or by
//! itself.

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
    #[expect(clippy::disallowed_methods, reason = "this is the one starter of tasks")]
    let inner = tokio::spawn(async move {
        tokio::select! {
            () = stop.cancelled() => {}
            () = work => {}
        }
    });
    watched(name, async move {
        match inner.await {
            Err(error) if error.is_panic() => Err(error.to_string()),
            // What the runtime cut off when it ended did not fail.
            _ => Ok(()),
        }
    })
}

/// Runs `work`, which may block, on a thread of its own until it ends. Its timers and connections are the runtime's.
pub fn spawn_thread(name: &'static str, work: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    let (done, ended) = tokio::sync::oneshot::channel::<()>();
    let runtime = tokio::runtime::Handle::current();
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        // Dropped without a word if the work panics.
        runtime.block_on(work);
        let _ = done.send(());
    });
    watched(name, async move {
        match started {
            Ok(_thread) => ended.await.map_err(|_| "its thread ended".to_owned()),
            Err(error) => Err(format!("its thread could not be started: {error}")),
        }
    })
}

/// The inner work is what may panic; this outer task sees that and says so.
fn watched(
    name: &'static str,
    inner: impl Future<Output = Result<(), String>> + Send + 'static,
) -> JoinHandle<()> {
    #[expect(clippy::disallowed_methods, reason = "this is the one starter of tasks")]
    tokio::spawn(async move {
        if let Err(error) = inner.await {
            PANICS.fetch_add(1, Ordering::Relaxed);
            tracing::error!(task.name = name, "background task {name} panicked: {error}");
        }
    })
}
