//! Starts background tasks: each has a name, ends with the shutdown token or by itself, and its panic is logged and
//! counted.
//!
//! Three kinds. [`spawn`]: one piece of work; its caller notices when it is gone. [`spawn_supervised`] and
//! [`spawn_until_finished`]: permanent tasks, restarted after a panic with growing delay. [`vital`]: tasks that
//! cannot be restarted without their memory; the caller is notified and decides.

mod panic_registry;
mod restart_backoff;

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::FutureExt as _;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use self::panic_registry::TaskLocation;
pub use self::panic_registry::{Name, PanickedTask, panicked_tasks};
use self::restart_backoff::RestartBackoff;

/// Panics of background tasks since the process started.
pub static PANICS: AtomicU64 = AtomicU64::new(0);

/// Runs `work` until it ends or `stop` is cancelled.
pub fn spawn(
    name: &'static str,
    stop: CancellationToken,
    work: impl Future<Output = ()> + Send + 'static,
) -> JoinHandle<()> {
    bare(async move {
        if let Err(why) = catch_panic(until(&stop, work)).await {
            log_panic(&name, &why);
        }
    })
}

/// Supervises the task made by `make` until `stop` is cancelled or it ends by itself. Restarted after a panic.
pub fn spawn_supervised<Made: Future<Output = ()> + Send + 'static>(
    name: impl Into<Name>,
    stop: CancellationToken,
    make: impl Fn() -> Made + Send + Sync + 'static,
) -> JoinHandle<()> {
    let stopped = stop.clone();
    supervise(name.into(), stop, move || {
        let (stopped, task) = (stopped.clone(), make());
        async move { until(&stopped, task).await }
    })
}

/// Like [`spawn_supervised`] for a task that observes `stop` itself, because it has work to finish. Not restarted
/// after `stop`.
pub fn spawn_until_finished<Made: Future<Output = ()> + Send + 'static>(
    name: impl Into<Name>,
    stop: CancellationToken,
    make: impl Fn() -> Made + Send + Sync + 'static,
) -> JoinHandle<()> {
    supervise(name.into(), stop, make)
}

/// Runs `work` until it ends. After a panic, `died` is called with the reason.
pub fn vital(
    name: &'static str,
    work: impl Future<Output = ()> + Send + 'static,
    died: impl FnOnce(String) + Send + 'static,
) -> JoinHandle<()> {
    bare(async move {
        if let Err(why) = catch_panic(run_with_drill(name.into(), work)).await {
            log_panic(&name, &why);
            died(why);
        }
    })
}

/// [`vital`] on a thread of its own, because `work` may block. Its timers and connections belong to the main
/// runtime.
pub fn vital_thread(
    name: &'static str,
    work: impl Future<Output = ()> + Send + 'static,
    died: impl FnOnce(String) + Send + 'static,
) -> JoinHandle<()> {
    let runtime = tokio::runtime::Handle::current();
    let work = run_with_drill(name.into(), work);
    on_thread(name, move || runtime.block_on(catch_panic(work)), died)
}

/// [`vital`] on a thread with a runtime of its own: events on its connections do not wait for a worker of the main
/// runtime. Ends with `work`.
pub fn vital_runtime(
    name: &'static str,
    work: impl Future<Output = ()> + Send + 'static,
    died: impl FnOnce(String) + Send + 'static,
) -> JoinHandle<()> {
    let work = run_with_drill(name.into(), work);
    let run = move || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let built = builder.enable_all().build();
        let runtime = built.map_err(|error| format!("its runtime could not be started: {error}"))?;
        let ended = runtime.block_on(catch_panic(work));
        // A DNS lookup may still be running there.
        runtime.shutdown_background();
        ended
    };
    on_thread(name, run, died)
}

fn on_thread(
    name: &'static str,
    run: impl FnOnce() -> Result<(), String> + Send + 'static,
    died: impl FnOnce(String) + Send + 'static,
) -> JoinHandle<()> {
    let (result_tx, ended) = tokio::sync::oneshot::channel::<Result<(), String>>();
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        let _ = result_tx.send(run());
    });
    bare(async move {
        let ended = match started {
            Ok(_thread) => ended.await.unwrap_or_else(|_| Err("its thread ended".to_owned())),
            Err(error) => Err(format!("its thread could not be started: {error}")),
        };
        if let Err(why) = ended {
            log_panic(&name, &why);
            died(why);
        }
    })
}

fn supervise<Made: Future<Output = ()> + Send + 'static>(
    name: Name,
    stop: CancellationToken,
    make: impl Fn() -> Made + Send + Sync + 'static,
) -> JoinHandle<()> {
    bare(async move {
        let place = TaskLocation::take(name.clone());
        let mut backoff = RestartBackoff::default();
        loop {
            let started_at = place.start_run();
            // Making the future may panic too.
            let task = async { make().await };
            let Err(why) = catch_panic(run_with_drill(name.clone(), task)).await else {
                break;
            };
            log_panic(&name, &why);
            let pause = backoff.next_delay(place.run_duration(started_at));
            place.record_panic(why, pause);
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep(pause) => {}
            }
        }
    })
}

#[expect(clippy::disallowed_methods, reason = "this is the one starter of tasks")]
fn bare(work: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    tokio::spawn(work)
}

async fn until(stop: &CancellationToken, work: impl Future<Output = ()>) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = work => {}
    }
}

/// Shared state is protected by locks that ignore poisoning, or is rebuilt.
async fn catch_panic(work: impl Future<Output = ()>) -> Result<(), String> {
    let ended = AssertUnwindSafe(work).catch_unwind().await;
    ended.map_err(|payload| panic_message(payload.as_ref()))
}

/// For callers that catch a panic themselves: logs and counts it, and returns its message.
pub fn panicked(name: &str, payload: Box<dyn Any + Send>) -> String {
    let why = panic_message(payload.as_ref());
    log_panic(&name, &why);
    why
}

/// Panics when a test requests it for this name.
async fn run_with_drill(name: Name, work: impl Future<Output = ()>) {
    tokio::select! {
        () = panic_registry::drill_of(name) => {}
        () = work => {}
    }
}

fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no panic message".to_owned())
}

fn log_panic(name: &dyn std::fmt::Display, why: &str) {
    PANICS.fetch_add(1, Ordering::Relaxed);
    tracing::error!(task.name = %name, "background task {name} panicked: {why}");
}

pub use panic_registry::{LEASE_BATCH, drill, drill_step};
