//! Starts background tasks: each has a name, ends with the shutdown token or by itself, and its panic is logged and counted.
//!
//! Three sorts. [`spawn`]: a piece of work that is done once; who waits for it sees that it is gone. [`keep`] and
//! [`keep_to_end`]: what must never be missing; it is made anew after a panic, ever more slowly, and never given up.
//! [`vital`]: what cannot be made anew without its memory; whoever started it is told of its death and decides.

mod kept;
mod rest;

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::FutureExt as _;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use self::kept::Place;
pub use self::kept::{Fallen, Name, fallen};
use self::rest::Rest;

/// Panics of background tasks since the process started.
pub static PANICS: AtomicU64 = AtomicU64::new(0);

/// Runs `work` until it ends or `stop` is cancelled.
pub fn spawn(
    name: &'static str,
    stop: CancellationToken,
    work: impl Future<Output = ()> + Send + 'static,
) -> JoinHandle<()> {
    bare(async move {
        if let Err(why) = caught(until(&stop, work)).await {
            note(&name, &why);
        }
    })
}

/// Keeps what `make` makes running until `stop` is cancelled or it ends by itself. After a panic it is made anew.
pub fn keep<Made: Future<Output = ()> + Send + 'static>(
    name: impl Into<Name>,
    stop: CancellationToken,
    make: impl Fn() -> Made + Send + Sync + 'static,
) -> JoinHandle<()> {
    let cut = stop.clone();
    supervise(name.into(), stop, move || {
        let (cut, made) = (cut.clone(), make());
        async move { until(&cut, made).await }
    })
}

/// Like [`keep`] for work that looks at `stop` itself, because it has something to bring to its end. What panics after
/// `stop` is not made anew.
pub fn keep_to_end<Made: Future<Output = ()> + Send + 'static>(
    name: impl Into<Name>,
    stop: CancellationToken,
    make: impl Fn() -> Made + Send + Sync + 'static,
) -> JoinHandle<()> {
    supervise(name.into(), stop, make)
}

/// Runs `work` until it ends. If it panics, `died` is told why.
pub fn vital(
    name: &'static str,
    work: impl Future<Output = ()> + Send + 'static,
    died: impl FnOnce(String) + Send + 'static,
) -> JoinHandle<()> {
    bare(async move {
        if let Err(why) = caught(drilled(name.into(), work)).await {
            note(&name, &why);
            died(why);
        }
    })
}

/// [`vital`] on a thread of its own, because `work` may block. Its timers and connections are the runtime's.
pub fn vital_thread(
    name: &'static str,
    work: impl Future<Output = ()> + Send + 'static,
    died: impl FnOnce(String) + Send + 'static,
) -> JoinHandle<()> {
    let runtime = tokio::runtime::Handle::current();
    let work = drilled(name.into(), work);
    on_thread(name, move || runtime.block_on(caught(work)), died)
}

/// [`vital`] on a thread with timers and connections of its own: what comes in on them does not wait until a worker of the
/// runtime has time to look. They end with `work`.
pub fn vital_runtime(
    name: &'static str,
    work: impl Future<Output = ()> + Send + 'static,
    died: impl FnOnce(String) + Send + 'static,
) -> JoinHandle<()> {
    let work = drilled(name.into(), work);
    let run = move || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let built = builder.enable_all().build();
        let runtime = built.map_err(|error| format!("its runtime could not be started: {error}"))?;
        let ended = runtime.block_on(caught(work));
        // Somebody may still look up a name there.
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
    let (done, ended) = tokio::sync::oneshot::channel::<Result<(), String>>();
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        let _ = done.send(run());
    });
    bare(async move {
        let ended = match started {
            Ok(_thread) => ended.await.unwrap_or_else(|_| Err("its thread ended".to_owned())),
            Err(error) => Err(format!("its thread could not be started: {error}")),
        };
        if let Err(why) = ended {
            note(&name, &why);
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
        let place = Place::take(name.clone());
        let mut rest = Rest::default();
        loop {
            let began = place.began();
            // Making it may panic too.
            let made = async { make().await };
            let Err(why) = caught(drilled(name.clone(), made)).await else {
                break;
            };
            note(&name, &why);
            let pause = rest.after(place.lived_since(began));
            place.fell(why, pause);
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

/// What it shares is guarded by locks whose readers do not mind a panic, or is made anew.
async fn caught(work: impl Future<Output = ()>) -> Result<(), String> {
    let ended = AssertUnwindSafe(work).catch_unwind().await;
    ended.map_err(|payload| words(payload.as_ref()))
}

/// For who catches a panic by itself: logs and counts it, and answers its words.
pub fn panicked(name: &str, payload: Box<dyn Any + Send>) -> String {
    let why = words(payload.as_ref());
    note(&name, &why);
    why
}

/// Ends with a panic when the test that is named so asks for it.
async fn drilled(name: Name, work: impl Future<Output = ()>) {
    tokio::select! {
        () = kept::drill_of(name) => {}
        () = work => {}
    }
}

fn words(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "it left no word".to_owned())
}

fn note(name: &dyn std::fmt::Display, why: &str) {
    PANICS.fetch_add(1, Ordering::Relaxed);
    tracing::error!(task.name = %name, "background task {name} panicked: {why}");
}

pub use kept::{LEASE_BATCH, drill, drill_step};
