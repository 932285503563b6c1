//! 10,000 leases, each renewed every 10 s over HTTP: none may be lost, and renewals are fast.

use std::sync::Arc;
use std::time::Duration;

use domain::lease::LeaseId;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::error::BenchError;
use super::http::Http;
use super::load::CLIENTS;
use super::metric::Figure;
use super::seed::fill;
use super::test_server::Served;
use super::timer::{Stopwatch, micros, percentile};
use runtime::tasks;

pub(crate) const LEASES: usize = 10_000;
pub(crate) const EVERY: Duration = Duration::from_secs(10);
pub(crate) const NORMAL: Duration = Duration::from_secs(60);
pub(crate) const LONG: Duration = Duration::from_secs(600);
/// Renewed after a third of it, as clients do.
const TTL_S: i64 = 30;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Renewals {
    pub leases: usize,
    pub time: Duration,
    pub renewed: usize,
    /// Refused renewals and expired leases.
    pub lost: u64,
    pub p99_ms: f64,
}

impl Renewals {
    pub(crate) fn figures(&self) -> Vec<Figure> {
        let Self { leases, time, .. } = self;
        let every = EVERY.as_secs();
        let name = format!(
            "spurious expiries of {leases} leases renewed every {every} s for {} s",
            time.as_secs()
        );
        vec![
            Figure::at_most(&name, self.lost as f64, 0.0, ""),
            Figure::plain("renewals meanwhile", self.renewed as f64, ""),
            Figure::plain("p99 of these renewals", self.p99_ms, "ms"),
        ]
    }
}

/// # Errors
/// The server does not start, or a connection breaks.
pub(crate) async fn measure(leases: usize, time: Duration) -> Result<Renewals, BenchError> {
    let (served, _folder) = Served::on_sqlite().await?;
    let ids = fill(&served, "bench:renewed", leases, || TTL_S).await?;
    let (sender, mut results) = mpsc::channel(CLIENTS);
    let stop = CancellationToken::new();
    let share = leases.div_ceil(CLIENTS).max(1);
    for part in ids.chunks(share) {
        let http = served.connect().await?;
        let (sender, part, stop) = (sender.clone(), Arc::from(part), stop.clone());
        tasks::spawn("load client", CancellationToken::new(), async move {
            let _ = sender.send(renew_all(http, part, stop).await).await;
        });
    }
    drop(sender);
    tokio::time::sleep(time).await;
    let expired = served.leases().metrics().expirations.read();
    stop.cancel();
    let (mut latencies_us, mut lost) = (Vec::new(), expired);
    while let Some((times, refused)) = results.recv().await {
        latencies_us.extend(times);
        lost += refused;
    }
    served.end().await;
    latencies_us.sort_unstable();
    Ok(Renewals {
        leases,
        time,
        renewed: latencies_us.len(),
        lost,
        p99_ms: f64::from(percentile(&latencies_us, 99)) / 1_000.0,
    })
}

/// Renews in turn, spread over the interval. Returns durations in microseconds, and the number of refusals.
async fn renew_all(mut http: Http, leases: Arc<[LeaseId]>, stop: CancellationToken) -> (Vec<u32>, u64) {
    let gap = EVERY / u32::try_from(leases.len()).unwrap_or(u32::MAX);
    let mut ticks = tokio::time::interval(gap);
    // Late renewals are caught up: each lease is renewed once per interval.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let (mut latencies_us, mut refused) = (Vec::new(), 0);
    for lease in leases.iter().cycle() {
        tokio::select! {
            _ = ticks.tick() => {}
            () = stop.cancelled() => break,
        }
        let watch = Stopwatch::start();
        match http.post(&format!("/v1/locks/{lease}/renew"), "").await {
            Ok(_) => latencies_us.push(micros(watch.elapsed())),
            Err(_) => refused += 1,
        }
    }
    (latencies_us, refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn renewed_leases_are_not_lost() {
        // A few leases for a moment: the measurement completes, and no lease is lost.
        let measured = measure(200, Duration::from_secs(2)).await.unwrap();
        assert_eq!(measured.lost, 0, "{measured:?}");
        assert!(measured.renewed > 0, "{measured:?}");
    }
}
