//! What it costs to record expiries while many other leases are held: the lease service alone, without clients and pages.

use std::time::Duration;

use config::LeaseConfig;
use domain::lease::Scope;
use lease::{LeaseCaller, LeasePrincipal, LeaseService};
use runtime::clock::Clock;
use testkit::ThrowawayFolder;
use tokio_util::sync::CancellationToken;

use super::child_server::memory_mib;
use super::error::BenchError;
use super::metric::Figure;
use super::output::report;
use super::seed::acquire_many;
use super::thread_cpu::{ThreadCpu, ThreadCpuSnapshot};
use super::timer::Stopwatch;

pub(crate) const HELD: usize = 1_000_000;
pub(crate) const TIME: Duration = Duration::from_secs(30);
const FEW: usize = 1_000;
/// Held for the whole measurement.
const TTL_HELD_S: i64 = 3_600;
/// Of the leases that expire meanwhile: one is acquired at each interval.
const TTL_EXPIRING_S: i64 = 1;
const INTERVAL: Duration = Duration::from_millis(10);
const CORES_MORE_MOST: f64 = 0.02;

struct Sample {
    /// CPU time of the process per second.
    cores: f64,
    expired: u64,
    /// Of this process.
    memory_mib: f64,
}

/// # Errors
/// The temporary folder cannot be written, or a lease is not granted.
pub(crate) async fn measure(held: usize, time: Duration) -> Result<Vec<Figure>, BenchError> {
    report(&format!("{held} held leases while others expire: about 90 s"));
    let few = sample(FEW, time).await?;
    let many = sample(held, time).await?;
    let more = many.cores - few.cores;
    Ok(vec![
        Figure::plain(&format!("CPU with {FEW} held leases"), few.cores, "cores"),
        Figure::plain(&format!("CPU with {held} held leases"), many.cores, "cores"),
        Figure::at_most("more for the held ones", more, CORES_MORE_MOST, "cores"),
        Figure::plain("expiries recorded meanwhile", many.expired as f64, ""),
        Figure::plain("memory of the process", many.memory_mib, "MiB"),
    ])
}

async fn sample(held: usize, time: Duration) -> Result<Sample, BenchError> {
    let folder = ThrowawayFolder::create("bench").map_err(BenchError::io("folder"))?;
    let store = format!("sqlite:{}", folder.path().join("leases.db").display());
    let stop = CancellationToken::new();
    let service = LeaseService::open(&store, LeaseConfig::default(), Clock::start(), stop.clone()).await;
    let service = service.map_err(|error| BenchError::bad_answer("the lease service", error.to_string()))?;
    let caller = LeaseCaller {
        principal: LeasePrincipal::new("bench"),
        scope: Scope::everything(),
    };
    acquire_many(&service, &caller, "bench:held", held, || TTL_HELD_S).await?;
    let recorded = || service.metrics().expirations.read();
    let (before, cpu, watch) = (recorded(), ThreadCpuSnapshot::read(), Stopwatch::start());
    let mut round = 0;
    while watch.elapsed() < time {
        let prefix = format!("bench:expiring:{round}");
        acquire_many(&service, &caller, &prefix, 1, || TTL_EXPIRING_S).await?;
        round += 1;
        tokio::time::sleep(INTERVAL).await;
    }
    let used_us: f64 = cpu.elapsed().iter().map(ThreadCpu::sum_us).sum();
    let sample = Sample {
        cores: used_us / 1e6 / watch.elapsed().as_secs_f64(),
        expired: recorded() - before,
        memory_mib: memory_mib().map_err(BenchError::io("memory"))?,
    };
    stop.cancel();
    service.close().await;
    Ok(sample)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn leases_expire_while_others_are_held() {
        let sample = sample(2_000, Duration::from_secs(3)).await.unwrap();
        assert!(sample.expired > 0 && sample.cores > 0.0);
    }
}
