//! Behaviours of workers: renew continuously, never renew, fall silent, come and go, leave the lock behind. The same
//! on every system; `scenarios.rs` selects systems and names.

use std::time::Duration;

use tokio::time::sleep;

use super::fault::WorkloadError;
use super::leases::Leases;
use super::rng;

/// Delay after a refused acquire or a failed renewal.
const RETRY: Duration = Duration::from_secs(1);
/// Time between the expiry of a lease and the next acquisition.
const GAP: Duration = Duration::from_millis(1_500);
/// Renewals before a worker dies: enough to learn its cadence.
const RENEWALS_BEFORE_DEATH: u32 = 4;

#[derive(Debug, Clone, Copy)]
pub(super) struct LeaseTiming {
    pub(super) ttl: Duration,
    pub(super) interval: Duration,
}

impl LeaseTiming {
    pub(super) const fn secs(ttl: u64, interval: u64) -> Self {
        Self {
            ttl: Duration::from_secs(ttl),
            interval: Duration::from_secs(interval),
        }
    }
}

/// Holds the lease as long as possible, and acquires it again after a loss.
pub(super) async fn renew_continuously<L: Leases>(
    leases: L,
    resource: String,
    owner: String,
    timing: LeaseTiming,
) -> Result<(), WorkloadError> {
    match leases.acquire(&resource, &owner, timing.ttl).await? {
        Some(held) => renew(&leases, &held, timing.interval, u32::MAX).await,
        None => sleep(RETRY).await,
    }
    Ok(())
}

/// Renews a few times and dies without releasing; another owner acquires it after the expiry.
pub(super) async fn stop_renewing<L: Leases>(
    leases: L,
    resource: String,
    owner: String,
    timing: LeaseTiming,
) -> Result<(), WorkloadError> {
    match leases.acquire(&resource, &owner, timing.ttl).await? {
        Some(held) => {
            renew(&leases, &held, timing.interval, RENEWALS_BEFORE_DEATH).await;
            sleep(timing.ttl + GAP).await;
        }
        None => sleep(RETRY).await,
    }
    Ok(())
}

/// Never renews: the lease expires and is acquired again.
pub(super) async fn never_renew<L: Leases>(
    leases: L,
    resource: String,
    owner: String,
    ttl: Duration,
) -> Result<(), WorkloadError> {
    match leases.acquire(&resource, &owner, ttl).await? {
        Some(_) => sleep(ttl + GAP).await,
        None => sleep(RETRY).await,
    }
    Ok(())
}

/// A short job: holds the lock for some seconds and releases it.
pub(super) async fn run_short_job<L: Leases>(
    leases: L,
    resource: String,
    owner: String,
) -> Result<(), WorkloadError> {
    if let Some(held) = leases.acquire(&resource, &owner, Duration::from_secs(15)).await? {
        sleep(rng::between(Duration::from_secs(2), Duration::from_secs(10))).await;
        leases.release(held).await?;
    }
    sleep(rng::between(RETRY, 4 * RETRY)).await;
    Ok(())
}

/// Acquires the lock and stops. On a system that keeps expired records, one remains.
pub(super) async fn abandon<L: Leases>(
    leases: L,
    resource: String,
    owner: String,
) -> Result<(), WorkloadError> {
    leases.acquire(&resource, &owner, Duration::from_secs(5)).await?;
    std::future::pending().await
}

/// Renews `times` times or until the lease is lost. Retries an unreachable server, which may be back before the
/// lease expires.
async fn renew<L: Leases>(leases: &L, held: &L::Held, interval: Duration, times: u32) {
    let mut done = 0;
    let mut wait = interval;
    while done < times {
        sleep(rng::about(wait)).await;
        match leases.renew(held).await {
            Ok(true) => (done, wait) = (done + 1, interval),
            Ok(false) => return,
            Err(fault) => {
                tracing::debug!(%fault, "a renewal of the demo's workload failed and is tried again");
                wait = RETRY;
            }
        }
    }
}
