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
pub(super) struct Rhythm {
    pub(super) ttl: Duration,
    pub(super) every: Duration,
}

impl Rhythm {
    pub(super) const fn secs(ttl: u64, every: u64) -> Self {
        Self {
            ttl: Duration::from_secs(ttl),
            every: Duration::from_secs(every),
        }
    }
}

/// Holds the lease as long as possible, and acquires it again after a loss.
pub(super) async fn steady<L: Leases>(
    leases: L,
    resource: String,
    owner: String,
    rhythm: Rhythm,
) -> Result<(), WorkloadError> {
    match leases.acquire(&resource, &owner, rhythm.ttl).await? {
        Some(held) => renew(&leases, &held, rhythm.every, u32::MAX).await,
        None => sleep(RETRY).await,
    }
    Ok(())
}

/// Renews a few times and dies without releasing; another owner acquires it after the expiry.
pub(super) async fn falls_silent<L: Leases>(
    leases: L,
    resource: String,
    owner: String,
    rhythm: Rhythm,
) -> Result<(), WorkloadError> {
    match leases.acquire(&resource, &owner, rhythm.ttl).await? {
        Some(held) => {
            renew(&leases, &held, rhythm.every, RENEWALS_BEFORE_DEATH).await;
            sleep(rhythm.ttl + GAP).await;
        }
        None => sleep(RETRY).await,
    }
    Ok(())
}

/// Never renews: the lease expires and is acquired again.
pub(super) async fn runs_out<L: Leases>(
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
pub(super) async fn comes_and_goes<L: Leases>(
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
pub(super) async fn left_behind<L: Leases>(
    leases: L,
    resource: String,
    owner: String,
) -> Result<(), WorkloadError> {
    leases.acquire(&resource, &owner, Duration::from_secs(5)).await?;
    std::future::pending().await
}

/// Renews `times` times or until the lease is lost. Retries an unreachable server, which may be back before the
/// lease expires.
async fn renew<L: Leases>(leases: &L, held: &L::Held, every: Duration, times: u32) {
    let mut done = 0;
    let mut wait = every;
    while done < times {
        sleep(rng::about(wait)).await;
        match leases.renew(held).await {
            Ok(true) => (done, wait) = (done + 1, every),
            Ok(false) => return,
            Err(fault) => {
                tracing::debug!(%fault, "a renewal of the demo's workload failed and is tried again");
                wait = RETRY;
            }
        }
    }
}
