//! Soak test: viewers and changes for an hour; memory, open files and tasks of the server once a minute.

mod slope;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::MissedTickBehavior;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::child_server::{ChildServer, Counts, Vitals, WORKERS};
use super::error::BenchError;
use super::metric::Figure;
use leasehold::identity::Secret;
use runtime::tasks;

use self::slope::per_hour;

pub(crate) use super::child_server::VIEWERS_MAX;

pub(crate) const MINUTES: u32 = 60;
pub(crate) const MINUTES_MAX: u32 = 24 * 60;
pub(crate) const VIEWERS: usize = 200;
pub(crate) const CHANGES: u32 = 200;
pub(crate) const CHANGES_MAX: u32 = 10_000;

/// Interval at which a viewer loads the first page, in addition to its stream.
const PAGE_LOAD_EVERY: Duration = Duration::from_secs(5);
const MINUTE: Duration = Duration::from_secs(60);

/// Options, each within its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    pub minutes: u32,
    pub viewers: usize,
    pub changes_per_s: u32,
}

/// Events of one minute, and the state of the server at its end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sample {
    pub minute: u32,
    pub vitals: Vitals,
    pub changes: u64,
    pub page_loads: u64,
    pub received_bytes: u64,
    pub failures: u64,
}

/// # Errors
/// The server does not start, or ends too early.
pub(crate) async fn measure(
    plan: Plan,
    on_sample: &(dyn Fn(&Sample) + Sync),
) -> Result<Vec<Figure>, BenchError> {
    let server = ChildServer::start("soak").await?;
    let counts = Arc::new(Counts::default());
    let stop = CancellationToken::new();
    let _ends_with_this: DropGuard = stop.clone().drop_guard();
    for number in 0..plan.viewers {
        view(&server, number, &counts, &stop);
    }
    for number in 0..WORKERS {
        server.change(number, plan.changes_per_s, &counts, &stop);
    }
    let mut samples = Vec::new();
    for minute in 1..=plan.minutes {
        tokio::time::sleep(MINUTE).await;
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        let sample = Sample {
            minute,
            vitals: server.vitals().await?,
            changes: take(&counts.changes),
            page_loads: take(&counts.page_loads),
            received_bytes: take(&counts.received_bytes),
            failures: take(&counts.failures),
        };
        on_sample(&sample);
        samples.push(sample);
    }
    Ok(figures(&samples))
}

/// Samples at the start that are ignored while caches fill: with a hundred new names a second, the alert baselines
/// need seventeen minutes. A third of the run, or half of one that is shorter than an hour.
const fn warm_up_samples(samples: usize) -> usize {
    if samples < 60 { samples / 2 } else { samples / 3 }
}

fn figures(samples: &[Sample]) -> Vec<Figure> {
    let after_warm_up = &samples[warm_up_samples(samples.len())..];
    let values = |value: fn(&Vitals) -> f64| -> Vec<(f64, f64)> {
        let point = |sample: &Sample| (f64::from(sample.minute), value(&sample.vitals));
        after_warm_up.iter().map(point).collect()
    };
    let last = samples.last().map(|sample| sample.vitals).unwrap_or_default();
    let (changes, failures) = samples.iter().fold((0, 0), |(changes, failures), sample| {
        (changes + sample.changes, failures + sample.failures)
    });
    #[expect(clippy::cast_precision_loss, reason = "counts of a bench, far below 2^52")]
    let per_s = changes as f64 / (samples.len().max(1) as f64 * MINUTE.as_secs_f64());
    #[expect(clippy::cast_precision_loss, reason = "counts of a bench, far below 2^52")]
    let failures = failures as f64;
    vec![
        Figure::plain("changes a second, as they were made", per_s, "/s"),
        Figure::at_most("requests and streams that failed", failures, 0.0, ""),
        Figure::plain("memory at the end (resident)", last.memory_mib, "MiB"),
        Figure::plain(
            "memory, slope once caches had time to fill",
            per_hour(&values(|it| it.memory_mib)),
            "MiB/h",
        ),
        Figure::plain("open files at the end", last.files, ""),
        Figure::plain("open files, slope", per_hour(&values(|it| it.files)), "/h"),
        Figure::plain("tasks at the end", last.tasks, ""),
        Figure::plain("tasks, slope", per_hour(&values(|it| it.tasks)), "/h"),
    ]
}

/// A viewer with an open list: the stream, and the first page periodically.
fn view(server: &ChildServer, number: usize, counts: &Arc<Counts>, stop: &CancellationToken) {
    let token = server.token_of(number);
    let (http, counts) = (server.http(), counts.clone());
    let (events, list) = (server.url("/v1/events"), server.url("/v1/inventory?limit=50"));
    // Staggered start.
    let delay = Duration::from_millis(25 * u64::try_from(number % 200).unwrap_or(0));
    tasks::spawn("bench viewer", stop.clone(), async move {
        tokio::time::sleep(delay).await;
        loop {
            if watch(&http, &token, (&events, &list), &counts).await.is_err() {
                counts.failures.fetch_add(1, Ordering::Relaxed);
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    });
}

async fn watch(
    http: &reqwest::Client,
    token: &Secret,
    (events, list): (&str, &str),
    counts: &Counts,
) -> reqwest::Result<()> {
    let get = |url: &str| http.get(url).bearer_auth(token.expose()).send();
    let mut stream = get(events).await?.error_for_status()?;
    let mut ticks = tokio::time::interval(PAGE_LOAD_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            part = stream.chunk() => match part? {
                Some(part) => {
                    counts.received_bytes.fetch_add(part.len() as u64, Ordering::Relaxed);
                }
                None => return Ok(()),
            },
            _ = ticks.tick() => {
                get(list).await?.error_for_status()?.bytes().await?;
                counts.page_loads.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}
