//! 50,000 leases that expire within one second, while others are renewed: renewals must not wait for the cleanup.

use std::time::Duration;

use domain::lease::LeaseId;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::error::BenchError;
use super::http::Http;
use super::metric::Figure;
use super::seed::fill;
use super::test_server::Served;
use super::timer::{Stopwatch, micros, percentile};
use runtime::tasks;

pub(crate) const LEASES: usize = 50_000;
/// Live leases, each renewed at this interval by its own client.
const RENEWED: usize = 64;
const RENEW_EVERY: Duration = Duration::from_millis(20);
/// Seconds from the first acquire to the second in which all of them expire.
pub(crate) const LEAD_S: i64 = 14;
const P99_MS_GOAL: f64 = 250.0;
const RECORDED_POLL: Duration = Duration::from_millis(20);
const RECORDED_MAX: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Expiry {
    pub leases: usize,
    /// Expiries recorded by the end of the measurement.
    pub recorded: u64,
    /// Milliseconds from the first possible expiry until all were recorded.
    pub recorded_ms: f64,
    pub renewed: usize,
    pub p99_ms: f64,
    pub longest_ms: f64,
}

impl Expiry {
    pub(crate) fn figures(&self) -> Vec<Figure> {
        let leases = self.leases;
        vec![
            Figure::at_most(
                &format!("p99 of renewals while {leases} leases expire within a second"),
                self.p99_ms,
                P99_MS_GOAL,
                "ms",
            ),
            Figure::plain("the longest of them", self.longest_ms, "ms"),
            Figure::plain("renewals meanwhile", self.renewed as f64, ""),
            Figure::at_least("expiries recorded", self.recorded as f64, leases as f64, ""),
            Figure::plain(
                "from the first expiry until all were recorded",
                self.recorded_ms,
                "ms",
            ),
        ]
    }
}

/// # Errors
/// The server does not start, or a living lease is lost.
pub(crate) async fn measure(leases: usize, lead_s: i64) -> Result<Expiry, BenchError> {
    let (served, _folder) = Served::on_sqlite().await?;
    let living = fill(&served, "bench:living", RENEWED, || 600).await?;
    let watch = Stopwatch::start();
    let lead_ms = lead_s * 1_000;
    // Whole seconds, rounded up: all expire in the second after the lead.
    let ttl_s = || {
        let left_ms = lead_ms - i64::try_from(watch.elapsed().as_millis()).unwrap_or(lead_ms);
        (left_ms.max(0) / 1_000) + 1
    };
    fill(&served, "bench:dying", leases, ttl_s).await?;
    let lead = Duration::from_millis(lead_ms.unsigned_abs());
    tokio::time::sleep(lead.saturating_sub(watch.elapsed())).await;
    let (sender, mut results) = mpsc::channel(RENEWED);
    let stop = CancellationToken::new();
    for lease in living {
        let http = served.connect().await?;
        let (sender, stop) = (sender.clone(), stop.clone());
        tasks::spawn("load client", CancellationToken::new(), async move {
            let _ = sender.send(renew(http, lease, stop).await).await;
        });
    }
    drop(sender);
    let started = Stopwatch::start();
    let expirations = || served.leases().metrics().expirations.read();
    while expirations() < leases as u64 && started.elapsed() < RECORDED_MAX {
        tokio::time::sleep(RECORDED_POLL).await;
    }
    let recorded_ms = started.ms();
    stop.cancel();
    let mut latencies_us = Vec::new();
    while let Some(result) = results.recv().await {
        latencies_us.extend(result?);
    }
    let recorded = expirations();
    served.end().await;
    latencies_us.sort_unstable();
    Ok(Expiry {
        leases,
        recorded,
        recorded_ms,
        renewed: latencies_us.len(),
        p99_ms: f64::from(percentile(&latencies_us, 99)) / 1_000.0,
        longest_ms: f64::from(percentile(&latencies_us, 100)) / 1_000.0,
    })
}

async fn renew(mut http: Http, lease: LeaseId, stop: CancellationToken) -> Result<Vec<u32>, BenchError> {
    let path = format!("/v1/locks/{lease}/renew");
    let mut latencies_us = Vec::new();
    while !stop.is_cancelled() {
        let watch = Stopwatch::start();
        http.post(&path, "").await?;
        latencies_us.push(micros(watch.elapsed()));
        tokio::time::sleep(RENEW_EVERY).await;
    }
    Ok(latencies_us)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn every_expiry_is_recorded_and_live_leases_are_renewed() {
        // 300 leases; the bench uses 50,000.
        let measured = measure(300, 1).await.unwrap();
        assert_eq!(measured.recorded, 300, "{measured:?}");
        assert!(measured.renewed >= 64, "{measured:?}");
    }
}
